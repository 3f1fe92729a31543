// LABELS: vulkan
// Portable numerics on the device: every op of the table, and scalar ops on random bits, give the bits of the evaluator
// in portable mode. One bundle holds all of them.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

// A sum that is zero may have either sign: a compiler may start it with its first term instead of 0.
std::map<std::string, HostTensor> WithoutNegativeZeros(std::map<std::string, HostTensor> outputs) {
  for (auto& [name, t] : outputs) {
    for (int64_t i = 0; IsFloat(t.type.dtype) && i < t.type.elements(); ++i) {
      if (t.at(i).f() == 0) t.set(i, Scalar::Float(t.type.dtype, 0));
    }
  }
  return outputs;
}

// Graphs of several modules as one, under names of their own.
struct Batch {
  Program program = {};
  std::vector<std::string> labels = {};
  std::vector<EvalInputs> inputs = {};
  std::vector<bool> sums = {};

  void Add(const Graph& graph, const EvalInputs& in, const std::string& label, bool sum = false) {
    sums.push_back(sum);
    program.graphs.push_back(graph);
    program.graphs.back().name = absl::StrCat("g", labels.size());
    labels.push_back(label);
    inputs.push_back(in);
  }

  void Run(const CompileOptions& options) {
    const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), options);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
    ASSERT_TRUE(session.ok()) << session.status();
    for (size_t g = 0; g < labels.size(); ++g) {
      const Graph& graph = program.graphs[g];
      const EvalResult want = Checked(EvaluateGraph(program, graph, inputs[g], EvalMode::kPortable));
      const EvalResult got = Checked(RunSession(*session, program, graph, inputs[g]));
      if (sums[g]) {
        EXPECT_EQ(BitDifference(WithoutNegativeZeros(got.outputs), WithoutNegativeZeros(want.outputs)), "")
            << labels[g];
      } else {
        EXPECT_EQ(BitDifference(got.outputs, want.outputs), "") << labels[g];
      }
    }
    std::printf("%zu graphs\n", labels.size());
  }
};

CompileOptions PortableOptions() { return {.abi = BufferAbi::kAddresses, .numerics = Numerics::kPortable}; }

TEST(PortableOnDevice, EveryOpGivesTheEvaluatorsBits) {
  Batch batch;
  for (const OpModule& m : OpModules(SampleSet::kOwn)) {
    const bool ordered = m.op->cls == OpClass::kReduce || m.op->cls == OpClass::kContract;
    for (size_t g = 0; g < m.cases.size(); ++g) {
      // The sample; of ops that sum, one longer case too.
      if (g == 0 || (ordered && g + 1 == m.cases.size()))
        batch.Add(m.program.graphs[g], m.cases[g].inputs, std::string(m.op->name), ordered);
    }
  }
  batch.Run(PortableOptions());
}

// Any bits: NaN and infinities among them; every fourth number is subnormal.
HostTensor RandomBits(const TensorType& type, uint32_t seed) {
  std::mt19937 random(seed);
  HostTensor t = HostTensor::Zeros(type);
  for (size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<uint8_t>(random() >> 24);
  const bool wide = type.dtype == kF64;
  const size_t size = wide ? 8 : 4;
  for (size_t at = 0; at < t.bytes.size(); at += 4 * size) {
    t.bytes[at + size - 1] &= 0x80;
    t.bytes[at + size - 2] &= wide ? 0x0f : 0x7f;
  }
  return t;
}

TEST(PortableOnDevice, ScalarOpsOfAnyBits) {
  Batch batch;
  for (const char* dtype : {"f32", "f64"}) {
    if (std::string(dtype) == "f64" && !(TheTarget().has("shader_float64") && TheTarget().has("shader_int64")))
      continue;
    for (const ScalarOp& op : ScalarOps()) {
      const bool integers = op.domain == ScalarDomain::kBits || op.domain == ScalarDomain::kInt;
      const bool bools = op.typing == ScalarTyping::kSelect || op.typing == ScalarTyping::kBool;
      if (integers || bools || FindOp(op.name) == nullptr) continue;
      const std::string t = absl::StrCat(dtype, "[1024]");
      const std::string result = op.typing == ScalarTyping::kCompare ? "bool[1024]" : t;
      const Program p = Parsed(absl::StrCat("module @m {\n  graph @g(input %x: ", t,
                                            op.arity == 2 ? absl::StrCat(", input %z: ", t) : "", ") -> (%y: ", result,
                                            ") {\n    %0: ", result, " = ", op.name, " %x", op.arity == 2 ? ", %z" : "",
                                            "\n    output %y = %0\n  }\n}\n"));
      EvalInputs in;
      const TensorType type = p.graphs[0].params[0].type;
      for (const GraphParam& x : p.graphs[0].params)
        in.params[x.name] = RandomBits(type, static_cast<uint32_t>(in.params.size() + 1));
      batch.Add(p.graphs[0], in, absl::StrCat(op.name, " of ", dtype));
    }
  }
  batch.Run(PortableOptions());
}

}  // namespace
}  // namespace agc::test
