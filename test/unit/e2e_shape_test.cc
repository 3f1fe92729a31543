// LABELS: vulkan
// Views, cumulative and linear-algebra ops on the device: situations that other systems were reported to get wrong, and
// axes too long for anything quadratic.
#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

using agc::Tensor;
using ::testing::ElementsAre;

template <typename F>
Program Traced(F fn) {
  Module m("m");
  m.Graph("g", fn);
  EXPECT_TRUE(m.status().ok()) << m.status();
  return Clone(m.program());
}

// S1 and its kind: no dispatch without work, identities where nothing is reduced.
TEST(ShapeOnDevice, NothingIsLegal) {
  const Program p = Traced([](Trace& t) {
    const Tensor e = t.Input("e", kF32, {2, 0, 3}), k = t.Input("k", kF32, {0, 4});
    t.Output("padded", Pad(Flip(e, {1}), 2, {0, 1, 0}, {0, 1, 0}));
    t.Output("stacked", Stack({e, e}, 1));
    t.Output("sums", CumSum(e, 1));
    t.Output("any", ReduceAny(Less(e, 0.0), {1}));
    t.Output("product", Einsum("ijk,jl->il", {e, k}));
    t.Output("dk", Gradient(ReduceSum(Matmul(Reshape(e, {2, 3, 0}), k)), k));
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  const EvalResult got = OnDevice(p, "g", in);
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in), 1e-9), "");
  EXPECT_THAT(Numbers(got.outputs.at("product")), testing::Each(0));
}

// S5: bytes are joined as they are.
TEST(ShapeOnDevice, BytesAreJoined) {
  const Program p = Traced([](Trace& t) {
    const Tensor x = t.Input("x", kU8, {2, 3}), y = t.Input("y", kU8, {2, 1}), z = t.Input("z", kU8, {2, 5});
    t.Output("joined", Concat({x, y, z}, 1));
    t.Output("turned", Roll(Flip(Concat({z, x, y}, 1), {0, 1}), {2}, {1}));
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], 0, 255);
  const EvalResult want = Evaluated(p, "g", in, EvalMode::kExact);
  EXPECT_EQ(Difference(OnDevice(p, "g", in), want, 0), "");
  EXPECT_EQ(Difference(OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses, .optimize = 0}), want, 0), "");
}

// S3 and its kind: any axis.
TEST(ShapeOnDevice, ScansAndNormsAlongAnyAxis) {
  const Program p = Traced([](Trace& t) {
    const Tensor x = t.Input("x", kF32, {2, 3, 4, 5});
    for (int64_t axis : {0, 1, -2, 3}) {
      t.Output(absl::StrCat("sum", axis), CumSum(x, axis, {.reverse = axis == 1}));
      t.Output(absl::StrCat("std", axis), ReduceStd(x, {axis}));
      t.Output(absl::StrCat("last", axis), ArgMaxLast(x, axis));
    }
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -9, 9);
  EXPECT_EQ(Difference(OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses}), Evaluated(p, "g", in), 4e-6), "");
}

// Blocks keep long axes cheap and their sums accurate; two runs give the same bits.
TEST(ShapeOnDevice, AHundredThousandElements) {
  constexpr int64_t n = 100000;
  const Program p = Traced([](Trace& t) {
    const Tensor x = t.Input("x", kF32, {n});
    const Tensor y = CumSum(x, 0);
    t.Output("sum", y);
    t.Output("max", CumMax(x, 0));
    t.Output("count", CumSum(Cast(Less(x, 0.0), kI32), 0, {.reverse = true}));
    t.Output("d", Gradient(ReduceSum(y * x), x));
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  const EvalResult got = OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses});
  EXPECT_EQ(Difference(OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses}), got, 0), "");
  const std::vector<double> x = Numbers(in.params.at("x"));
  double sum = 0, most = -1, total = 0, worst = 0;
  int64_t left = 0;
  for (double v : x) left += v < 0 ? 1 : 0, total += v;
  for (int64_t k = 0; k < n; ++k) {
    const double v = x[static_cast<size_t>(k)], before = sum;
    sum += v;
    most = std::max(most, v);
    worst = std::max(worst, std::abs(got.outputs.at("sum").at(k).f() - sum));
    worst = std::max(worst, std::abs(got.outputs.at("d").at(k).f() - (sum + total - before)));
    ASSERT_EQ(got.outputs.at("max").at(k).f(), most);
    ASSERT_EQ(got.outputs.at("count").at(k).i(), left);
    left -= v < 0 ? 1 : 0;
  }
  EXPECT_LE(worst, 2e-4);  // of sums of a few hundred
}

}  // namespace
}  // namespace agc::test
