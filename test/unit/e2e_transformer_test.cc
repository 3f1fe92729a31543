// LABELS: vulkan
// A training step of a small transformer: gradients against finite differences, the device against the evaluator, and
// a loss that falls.
#include "test/unit/transformer_model.h"

#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

// The next token is a fixed function of the last two.
EvalInputs Sequences() {
  EvalInputs in;
  HostTensor tokens = HostTensor::Zeros({kI32, {kBatch, kLength}}), next = tokens;
  for (int64_t b = 0; b < kBatch; ++b) {
    int64_t before = b, now = 1 + 2 * b;
    for (int64_t k = 0; k < kLength; ++k) {
      const int64_t after = (before + 2 * now + 1) % kVocabulary;
      tokens.set(b * kLength + k, Scalar::Int(kI32, now));
      next.set(b * kLength + k, Scalar::Int(kI32, after));
      before = now;
      now = after;
    }
  }
  in.params["tokens"] = tokens;
  in.params["next"] = next;
  return in;
}

void FillStates(const Program& program, EvalInputs& in, DType dtype) {
  uint32_t seed = 1;
  for (const StateDef& s : program.states) {
    TensorType type = s.type;
    type.dtype = IsFloat(type.dtype) ? dtype : type.dtype;
    const bool scale = s.name.size() > 6 && s.name.substr(s.name.size() - 6) == ".scale";
    if (!s.trainable) {
      in.states[s.name] = HostTensor::Zeros(type);
    } else {
      in.states[s.name] = scale ? Random(type, 0.5, 1.5, seed++) : Random(type, -0.7, 0.7, seed++);
    }
  }
}

TEST(Transformer, GradientsMatchFiniteDifferences) {
  Module m("transformer");
  TraceTransformerGradients(m);
  ASSERT_TRUE(m.status().ok()) << m.status();
  Program program = Clone(m.program());
  PassContext context;
  ASSERT_TRUE(RunPipeline(program, {"dce", "autograd"}, context).ok());
  EvalInputs in = Sequences();
  FillStates(program, in, kF64);
  const auto run = [&](const Program& p) { return Checked(EvaluateGraph(p, p.graphs[0], in, EvalMode::kDouble)); };
  const EvalResult all = run(program);
  Program loss_only = Clone(program);
  loss_only.graphs[0].outputs.resize(1);
  size_t checked = 0;
  for (const StateDef& s : program.states) {
    const HostTensor& g = all.outputs.at("d" + s.name);
    for (int64_t i = 0; i < g.type.elements(); i += 1 + g.type.elements() / 3) {
      HostTensor& w = in.states.at(s.name);
      const double at = w.at(i).f(), h = 1e-5;
      double f[2];
      for (int side : {0, 1}) {
        w.set(i, Scalar::Float(kF64, at + (side == 0 ? -h : h)));
        f[side] = run(loss_only).outputs.at("loss").at(0).f();
      }
      w.set(i, Scalar::Float(kF64, at));
      EXPECT_NEAR(g.at(i).f(), (f[1] - f[0]) / (2 * h), 1e-8) << s.name << "[" << i << "]";
      ++checked;
    }
  }
  EXPECT_GT(checked, 60u);
}

TEST(Transformer, LearnsOnTheDevice) {
  Module m("transformer");
  TraceTransformer(m);
  ASSERT_TRUE(m.status().ok()) << m.status();
  const absl::StatusOr<rt::Bundle> bundle =
      CompileProgram(Clone(m.program()), TheTarget(), {.abi = BufferAbi::kAddresses});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  ASSERT_TRUE(session.ok()) << session.status();
  EvalInputs in = Sequences();
  in.params["lr"] = TensorOf({kF32, {}}, {0.02});
  FillStates(m.program(), in, kF32);

  Program reference = Clone(m.program());
  PassContext context;
  ASSERT_TRUE(RunPipeline(reference, {"dce", "autograd"}, context).ok());
  const EvalResult want = Checked(EvaluateGraph(reference, reference.graphs[0], in, EvalMode::kDouble));
  const EvalResult got = Checked(RunSession(*session, m.program(), m.program().graphs[0], in));
  const double first = got.outputs.at("loss").at(0).AsDouble();
  EXPECT_NEAR(first, want.outputs.at("loss").at(0).AsDouble(), 1e-5);
  for (const auto& [name, value] : want.states) {
    if (name.find(".adam_m") == std::string::npos) continue;
    EXPECT_LT(ErrorOf(got.states.at(name), value), 1e-5) << name;
  }
  const HostTensor losses =
      Checked(RunSession(*session, m.program(), m.program().graphs[0], in, 80)).outputs.at("loss");
  EXPECT_EQ(losses.at(0).AsDouble(), first);
  EXPECT_LT(losses.at(79).AsDouble(), 0.2 * first);
}

// A device's exp(-inf) need not be 0; a query that sees no key must give 0 all the same.
TEST(Attention, AQueryThatSeesNothingGivesZeroOnTheDevice) {
  const Program p = Parsed(R"(module @m {
  graph @g(input %q: f32[3,4], input %k: f32[5,4], input %v: f32[5,4], input %m: f32[3,5]) -> (%y: f32[3,4], %dq: f32[3,4], %dv: f32[5,4]) {
    %0: f32[3,4] = attention %q, %k, %v, %m
    %1: f32[3,4] = square %0
    %2: f32[] = reduce_sum %1
    %3: f32[3,4] = gradient %2, %q
    %4: f32[5,4] = gradient %2, %v
    output %y = %0
    output %dq = %3
    output %dv = %4
  }
})");
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  for (int64_t i = 0; i < 15; ++i) {  // the first query sees nothing, the second one key
    const bool hidden = i < 5 || (i < 10 && i != 7);
    in.params["m"].set(i, Scalar::Float(kF32, hidden ? -HUGE_VAL : 0));
  }
  const EvalResult got = OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses});
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in), 1e-5), "");
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got.outputs.at("y").at(i).AsDouble(), 0);
    EXPECT_EQ(got.outputs.at("dq").at(i).AsDouble(), 0);
  }
}

}  // namespace
}  // namespace agc::test
