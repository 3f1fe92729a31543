// LABELS: vulkan
// Scatters and sorts of real sizes on the device, against plain loops: where the op samples are small, these take the
// paths of large ones.
#include <algorithm>
#include <numeric>

#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

// Indices at and beyond both ends, next to what fuses with reads and writes; the device never leaves the tensor.
TEST(IndexOnDevice, IndicesOutOfRange) {
  const Program p = Parsed(R"(module @m {
  graph @g(input %t: f32[10,3], input %i: i32[8], input %j: u8[4,2], input %u: f32[8,3], input %s: i32[2], input %w: f32[3,2]) ->
      (%a: f32[8,3], %b: f32[4,2,2], %c: f32[8,3], %d: f32[10,3], %e: f32[10,3], %f: f32[10,3], %h: f32[4,2], %k: i32[8]) {
    %0: f32[8,3] = take %t, %i
    %1: f32[8,3] = add %0, %u
    %2: f32[8,3] = relu %1
    %3: f32[4,2,3] = take %t, %j
    %4: f32[4,2,3] = softmax %3
    %5: f32[8,3] = reshape %4 {shape = [8, 3]}
    %6: f32[8,2] = matmul %5, %w
    %7: f32[4,2,2] = reshape %6 {shape = [4, 2, 2]}
    %8: i32[8,1] = reshape %i {shape = [8, 1]}
    %9: i32[8,3] = broadcast %8 {shape = [8, 3]}
    %10: f32[8,3] = take_along_axis %t, %9 {axis = 0}
    %11: f32[10,3] = index_update %t, %i, %2
    %12: f32[10,3] = index_update %t, %i, %u {mode = "add"}
    %13: f32[10,3] = relu %12
    %14: f32[10,3] = scatter_nd %t, %8, %u {mode = "max"}
    %15: f32[4,2] = dynamic_slice %t, %s {sizes = [4, 2]}
    %16: i32[8] = wrap_index %i {size = 10, outside = "drop"}
    output %a = %2
    output %b = %7
    output %c = %10
    output %d = %11
    output %e = %13
    output %f = %14
    output %h = %15
    output %k = %16
  }
})");
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  in.params["i"] = TensorOf({DType::kI32, {8}}, {0, 9, 10, -1, -10, -11, 100, -2147483648.0});
  in.params["j"] = TensorOf({DType::kU8, {4, 2}}, {0, 9, 10, 255, 1, 2, 3, 4});
  in.params["s"] = TensorOf({DType::kI32, {2}}, {-3, 2147483647});
  for (BufferAbi abi : {BufferAbi::kBindings, BufferAbi::kAddresses})
    EXPECT_EQ(Difference(OnDevice(p, "g", in, {.abi = abi}), Evaluated(p, "g", in), 1e-6), "");
  EXPECT_EQ(Difference(Executed(p, "g", in), Evaluated(p, "g", in), 1e-6), "");
}

// The gradient of an embedding of 32,000 rows for 4,096 tokens, a quarter of them one token: the bits of a loop.
TEST(IndexOnDevice, EmbeddingGradientHasTheBitsOfALoop) {
  const Program p = Parsed(R"(module @m {
  graph @g(input %w: f32[32000,16], input %ids: i32[4096], input %g: f32[4096,16]) -> (%d: f32[32000,16]) {
    %0: f32[4096,16] = embedding %w, %ids
    %1: f32[4096,16] = mul %0, %g
    %2: f32[] = reduce_sum %1
    %3: f32[32000,16] = gradient %2, %w
    output %d = %3
  }
})");
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  HostTensor& ids = in.params["ids"];
  ids = Random({DType::kI32, {4096}}, -32000, 31999, 5);
  for (int64_t k = 0; k < 4096; k += 4) ids.set(k, Scalar::Int(DType::kI32, 17));
  const HostTensor& g = in.params["g"];
  std::vector<float> want(32000 * 16);
  for (int64_t k = 0; k < 4096; ++k) {
    const int64_t row = ids.at(k).i() < 0 ? ids.at(k).i() + 32000 : ids.at(k).i();
    for (int64_t d = 0; d < 16; ++d) want[row * 16 + d] += static_cast<float>(g.at(k * 16 + d).f());
  }
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(p), TheTarget(), {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
  ASSERT_TRUE(s.ok()) << s.status();
  const EvalResult first = Checked(RunSession(*s, p, p.graphs[0], in)),
                   second = Checked(RunSession(*s, p, p.graphs[0], in));
  EXPECT_TRUE(first.outputs.at("d").bytes == second.outputs.at("d").bytes);
  EXPECT_EQ(Numbers(first.outputs.at("d")), std::vector<double>(want.begin(), want.end()));
}

// Five rounds of merges, a last run of another length, NaN and many equals.
TEST(IndexOnDevice, SortsLongRows) {
  constexpr int64_t kN = 20011;
  const Program p = Parsed(R"(module @m {
  graph @g(input %x: f32[20011]) -> (%y: f32[20011], %o: i32[20011], %t: i32[50]) {
    %0: f32[20011] = sort %x
    %1: i32[20011] = argsort %x
    %2: (f32[50], i32[50]) = top_k %x {k = 50, largest = false}
    %3: i32[50] = get %2 {index = 1}
    output %y = %0
    output %o = %1
    output %t = %3
  }
})");
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  HostTensor& x = in.params["x"];
  for (int64_t k = 0; k < kN; k += 7) x.set(k, Scalar::Float(DType::kF32, static_cast<double>(k % 5) / 8));
  for (int64_t k = 3; k < kN; k += 1000) x.set(k, Scalar::Float(DType::kF32, std::nan("")));
  std::vector<int64_t> order(kN);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double u = x.at(a).f(), v = x.at(b).f();
    return u < v || (std::isnan(v) && !std::isnan(u));
  });
  const EvalResult got = OnDevice(p, "g", in);
  const std::vector<double> want(order.begin(), order.end());
  EXPECT_EQ(Numbers(got.outputs.at("o")), want);
  EXPECT_EQ(Numbers(got.outputs.at("t")), std::vector<double>(want.begin(), want.begin() + 50));
  const HostTensor& y = got.outputs.at("y");
  for (int64_t k = 0; k < kN; ++k) {
    const double v = x.at(order[k]).f();
    ASSERT_TRUE(y.at(k).f() == v || (std::isnan(v) && std::isnan(y.at(k).f()))) << k;
  }
}

}  // namespace
}  // namespace agc::test
