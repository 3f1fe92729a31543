// LABELS: vulkan
// Every dtype on the device: casts between every pair and arithmetic, with values at the edges, equal to the evaluator
// bit for bit - as the device is, and as if it had neither narrow storage nor 64-bit integers.
#include <limits>

#include "runtime/spirv_scan.h"
#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

constexpr DType kAll[] = {kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool};

enum class Has { kAll, kLittle };

Target TargetWith(Has has) {
  Target target = TheTarget();
  if (has == Has::kAll) return target;
  std::vector<std::string> kept;
  for (const std::string& f : target.features) {
    const bool keeps_nan = f.rfind("signed_zero_inf_nan_preserve", 0) == 0;
    if (keeps_nan || f == "buffer_device_address" || f == "shader_float64" || f == "subgroup_shuffle")
      kept.push_back(f);
  }
  target.features = kept;
  return target;
}

// Whole numbers at the ends of the ranges, ties of every rounding and f64 just above some, subnormals of f16 and bf16,
// infinities and NaN; what a dtype does not hold becomes what its conversion makes of it.
HostTensor Edges(DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {
      0,    -0.0,     1,     -1,    0.5,   -0.5,       1.5,   2.5,   3,          127,   128,         255,    256,
      -128, -129,     32767, 32768, 65504, 65519,      65520, 65535, 65536,      1e-8,  6e-8,        3.1e-5, 257,
      259,  16777217, 1e10,  -1e10, 1e30,  2147483647, 2e9,   -2e9,  4294967295, 9e18,  -9e18,       1.8e19, -7,
      7,    kInf,     -kInf, 1e300, -3e38, 33554435,   0.1,   -0.3,  1234.56789, -2049, std::nan("")};
  for (double tie : {1 + 0x1p-11, 1 + 0x1p-8, 0x1p-25, 0x1.8p-133}) values.push_back(tie * (1 + 0x1p-40));
  const std::vector<int64_t> words = {INT64_MAX,           INT64_MIN,        0x123456789abcdef,
                                      -0x7fffffff00000081, 0x20000020000001, -0x20200000000001};
  HostTensor t = HostTensor::Zeros({dtype, {static_cast<int64_t>(values.size() + words.size())}});
  for (size_t i = 0; i < values.size(); ++i)
    t.set(static_cast<int64_t>(i), Convert(Scalar::Float(kF64, values[i]), dtype));
  for (size_t i = 0; i < words.size(); ++i)
    t.set(static_cast<int64_t>(values.size() + i), Convert(Scalar::Int(kI64, words[i]), dtype));
  return t;
}

// The first element whose bits differ, but for what a NaN carries, or "".
std::string FirstDifference(const EvalResult& got, const EvalResult& want) {
  for (const auto& [name, w] : want.outputs) {
    const HostTensor& g = got.outputs.at(name);
    if (!(g.type == w.type)) return absl::StrCat(name, " is ", ToString(g.type));
    for (int64_t i = 0; i < w.type.elements(); ++i) {
      const Scalar a = g.at(i), b = w.at(i);
      if (a == b || (IsFloat(b.dtype) && std::isnan(a.f()) && std::isnan(b.f()))) continue;
      const int64_t row = w.type.dims.empty() ? 1 : w.type.dims.back();
      return absl::StrCat(name, " of ", ToString(w.type), " at ", i / row, ", ", i % row, ": ", ToString(a),
                          ", expected ", ToString(b));
    }
  }
  return "";
}

class Dtypes : public testing::TestWithParam<Has> {
 protected:
  // The device and the loop executor against the evaluator, which rounds every operation.
  void Equal(const Program& p, const EvalInputs& in) {
    const EvalResult want = Evaluated(p, "g", in, EvalMode::kExact);
    const Target target = TargetWith(GetParam());
    EXPECT_EQ(FirstDifference(OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses}, target), want), "");
    EXPECT_EQ(FirstDifference(Executed(p, "g", in, {}, target), want), "");
  }
};
INSTANTIATE_TEST_SUITE_P(Device, Dtypes, testing::Values(Has::kAll, Has::kLittle), [](const auto& info) {
  return std::string(info.param == Has::kAll ? "AsItIs" : "WithoutNarrowStorageAndInt64");
});

TEST_P(Dtypes, CastsBetweenEveryPair) {
  for (DType from : kAll) {
    SCOPED_TRACE(Name(from));
    const HostTensor x = Edges(from);
    Module m("m");
    m.Graph("g", [&](Trace& t) {
      const agc::Tensor v = t.Input("x", from, x.type.dims);
      for (DType to : kAll) t.Output(Name(to), Cast(v, to));
    });
    EvalInputs in;
    in.params["x"] = x;
    Equal(m.program(), in);
  }
}

// All pairs of edge values: a along rows, b along columns.
template <typename F>
void OfPairs(DType dtype, F fn, Program* program, EvalInputs* in) {
  const HostTensor x = Edges(dtype);
  const int64_t n = x.type.dims[0];
  Module m("m");
  m.Graph("g", [&](Trace& t) {
    const agc::Tensor a = Reshape(t.Input("a", dtype, {n}), {n, 1}), b = Reshape(t.Input("b", dtype, {n}), {1, n});
    const std::vector<agc::Tensor> results = fn(a, b);
    t.Output("y", Concat(results, 0));
  });
  EXPECT_TRUE(m.status().ok()) << m.status();
  *program = Clone(m.program());
  in->params = {{"a", x}, {"b", x}};
}

TEST_P(Dtypes, IntegerArithmetic) {
  for (DType t : {kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8}) {
    SCOPED_TRACE(Name(t));
    Program p;
    EvalInputs in;
    OfPairs(
        t,
        [](agc::Tensor a, agc::Tensor b) -> std::vector<agc::Tensor> {
          return {a + b,
                  a - b,
                  a * b,
                  DivOf(a, b),
                  Rem(a, b),
                  FloorDiv(a, b),
                  Maximum(a, b),
                  Minimum(a, b),
                  BitAnd(a, b),
                  BitOr(a, b),
                  BitXor(a, b),
                  ShiftLeft(a, b),
                  ShiftRight(a, b),
                  Neg(a) + b - b,
                  Abs(a) + b,
                  Sign(a) + Sign(b),
                  Where(Less(a, b), a, b)};
        },
        &p, &in);
    Equal(p, in);
  }
}

TEST_P(Dtypes, FloatArithmetic) {
  for (DType t : {kF64, kF32, kF16, kBF16}) {
    SCOPED_TRACE(Name(t));
    Program p;
    EvalInputs in;
    OfPairs(
        t,
        [](agc::Tensor a, agc::Tensor b) -> std::vector<agc::Tensor> {
          return {a + b,         a - b,
                  a * b,         Rem(a, b),
                  Maximum(a, b), Minimum(a, b),
                  Neg(a) + b,    Abs(a) + b,
                  Floor(a) + b,  Ceil(a) + b,
                  Round(a) + b,  Sign(a) + Sign(b),
                  Square(a) * b, Where(Less(a, b), a, b)};
        },
        &p, &in);
    Equal(p, in);
  }
}

TEST_P(Dtypes, Comparisons) {
  for (DType t : kAll) {
    if (t == kBool) continue;
    SCOPED_TRACE(Name(t));
    Program p;
    EvalInputs in;
    OfPairs(
        t,
        [](agc::Tensor a, agc::Tensor b) -> std::vector<agc::Tensor> {
          return {agc::Equal(a, b), NotEqual(a, b), Less(a, b), LessEqual(a, b), Greater(a, b), GreaterEqual(a, b)};
        },
        &p, &in);
    Equal(p, in);
  }
}

TEST_P(Dtypes, ReductionsAndProducts) {
  for (DType t : kAll) {
    if (t == kBool) continue;
    SCOPED_TRACE(Name(t));
    Module m("m");
    m.Graph("g", [&](Trace& tr) {
      const agc::Tensor x = tr.Input("x", t, {5, 37}), w = tr.Input("w", t, {37, 3});
      tr.Output("sum", ReduceSum(x, {1}));
      tr.Output("max", ReduceMax(x, {0}));
      tr.Output("arg", ArgMax(x, 1));
      tr.Output("product", Matmul(x, w));
    });
    EXPECT_TRUE(m.status().ok()) << m.status();
    // Whole numbers, so that no order of a sum rounds.
    EvalInputs in;
    in.params = {{"x", Random({t, {5, 37}}, -3, 3, 1)}, {"w", Random({t, {37, 3}}, -2, 2, 2)}};
    for (auto& [name, v] : in.params) {
      for (int64_t i = 0; i < v.type.elements(); ++i) v.set(i, Scalar::Of(t, std::round(v.at(i).AsDouble())));
    }
    Equal(m.program(), in);
  }
}

// Float16, Int64, Int16, Int8, StorageBuffer16BitAccess, StorageBuffer8BitAccess.
constexpr uint32_t kForbidden[] = {9, 11, 22, 39, 4433, 4448};

TEST(DtypesOnLittle, ShadersDeclareNoCapabilityThatTheTargetLacks) {
  for (DType t : kAll) {
    Module m("m");
    m.Graph("g", [&](Trace& tr) {
      const agc::Tensor x = tr.Input("x", t, {5});
      tr.Output("y", Reshape(x, {5, 1}));
      tr.Output("z", Cast(Cast(x, kF32) + 1.0, t));
    });
    const Target target = TargetWith(Has::kLittle);
    const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(m.program()), target, {});
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    for (const rt::Kernel& kernel : bundle->kernels) {
      const rt::StatusOr<rt::SpirvFacts> facts = rt::ScanSpirv(kernel.spirv);
      ASSERT_TRUE(facts.ok());
      for (uint32_t narrow : kForbidden) EXPECT_FALSE(facts->HasCapability(narrow)) << Name(t) << " " << narrow;
    }
  }
  Target target = TargetWith(Has::kLittle);
  target.features = {};
  Module m("m");
  m.Graph("g", [](Trace& tr) { tr.Output("y", tr.Input("x", kF64, {5}) + 1.0); });
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(m.program()), target, {});
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kResourceExhausted) << bundle.status();
  EXPECT_THAT(std::string(bundle.status().message()), testing::HasSubstr("shader_float64"));
}

}  // namespace
}  // namespace agc::test
