// LABELS: vulkan
// States, params and outputs over several steps, compiled: random starts equal the evaluator's and depend on the seed
// and the state alone; params of one value per step and each_step outputs go around a ring that is shorter than the
// run; residents are bound once and shared by graphs; a state is read as it was at the start of the step.
#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

using ::testing::ElementsAre;

std::map<std::string, HostTensor> StatesOf(rt::Session& s) {
  std::map<std::string, HostTensor> all;
  rt::StatusOr<std::vector<rt::Value>> values = s.Save();
  EXPECT_TRUE(values.ok());
  for (const rt::Value& v : *values) all[v.name] = FromValue(v);
  return all;
}

TEST(States, StartAsTheEvaluatorSays) {
  const Program p = Parsed(R"(
module @m {
  state @a: f32[1000] init uniform(-0.5, 0.25) trainable
  state @b: f32[33,7] init normal(1, 0.5)
  state @c: i32[] init constant(3)
  state @d: f32[1000] init uniform(-0.5, 0.25)
  state @e: f32[5]
  graph @g() -> (%y: f32[1000]) {
    output %y = @a
  }
}
)");
  Program with_init = Clone(p);
  PassContext context;
  ASSERT_TRUE(RunPipeline(with_init, {"add-init"}, context).ok());
  const Graph& init = *with_init.FindGraph("init");
  ASSERT_EQ(init.params.size(), 1u);
  for (BufferAbi abi : {BufferAbi::kBindings, BufferAbi::kAddresses}) {
    rt::Session s = LoadOnDevice(CompileProgram(Clone(p), TheTarget(), {.abi = abi}).value()).value();
    std::map<std::string, HostTensor> first;
    for (uint64_t seed : {7, 8}) {
      ASSERT_TRUE(s.Init(seed).ok());
      EvalInputs in;
      in.params["seed"] = TensorOf(init.params[0].type, {static_cast<double>(seed)});
      for (const StateDef& state : p.states) in.states[state.name] = HostTensor::Zeros(state.type);
      const EvalResult want = Checked(EvaluateGraph(with_init, init, in, EvalMode::kExact));
      const std::map<std::string, HostTensor> got = StatesOf(s);
      for (const char* name : {"a", "c", "d", "e"}) EXPECT_EQ(got.at(name), want.states.at(name)) << name;
      EXPECT_LE(ErrorOf(got.at("b"), want.states.at("b")), 1e-5);  // logarithm and cosine
      if (seed == 8) {
        EXPECT_NE(got.at("a"), first.at("a"));
        EXPECT_NE(got.at("b"), first.at("b"));
      }
      EXPECT_NE(got.at("a"), got.at("d"));
      for (double v : Numbers(got.at("a"))) EXPECT_TRUE(v >= -0.5 && v < 0.25) << v;
      first = got;
    }
  }
}

// w' = w + lr * x[step % 3]; history gives w before each step.
Module Steps() {
  Module m("steps");
  m.Graph("step", [](Trace& t) {
    const agc::Tensor data = t.Resident("data", kF32, {3, 2}), lr = t.Param("lr", kF32), count = t.Counter("count");
    const agc::Tensor w = t.State("w", {kF32, {2}}), old = t.State("old", {kF32, {2}});
    t.Update("w", w + Take(data, Rem(count, 3)) * lr);
    t.Update("old", w);  // what w was: two states change places, in part
    t.OutputEachStep("history", w);
    t.OutputEachStep("lr_seen", lr);
    t.Output("last", w + old);
  });
  m.Graph("sum", [](Trace& t) { t.Output("y", ReduceSum(t.Resident("data", kF32, {3, 2}))); });
  return m;
}

TEST(States, RunsLongerThanTheRing) {
  const Module m = Steps();
  ASSERT_TRUE(m.status().ok()) << m.status();
  const std::vector<float> data = {1, 10, 2, 20, 3, 30};
  std::vector<float> lr;
  for (int i = 0; i < 11; ++i) lr.push_back(static_cast<float>(i + 1));
  for (int64_t ring : {1, 4, 64}) {
    for (BufferAbi abi : {BufferAbi::kBindings, BufferAbi::kAddresses}) {
      const rt::Bundle bundle = CompileProgram(Clone(m.program()), TheTarget(), {.abi = abi, .ring = ring}).value();
      rt::Session s = LoadOnDevice(bundle).value();
      ASSERT_TRUE(s.Init(1).ok());
      ASSERT_TRUE(s.Bind("data", data).ok());
      rt::StatusOr<rt::Outputs> out = s.Run("step", 11, {{"lr", lr}});
      ASSERT_TRUE(out.ok()) << out.status().message();
      const std::vector<float> history = *out->Get<float>("history");
      EXPECT_THAT(out->Find("history")->dims, ElementsAre(11, 2));
      EXPECT_EQ(*out->Get<float>("lr_seen"), lr);
      float w[2] = {0, 0}, old[2] = {0, 0}, last[2] = {0, 0};
      for (int i = 0; i < 11; ++i) {
        for (int k = 0; k < 2; ++k) {
          EXPECT_EQ(history[2 * i + k], w[k]) << ring << ", step " << i;
          if (i == 10) last[k] = w[k] + old[k];
          old[k] = w[k];
          w[k] += data[2 * (i % 3) + k] * lr[i];
        }
      }
      EXPECT_THAT(*out->Get<float>("last"), ElementsAre(last[0], last[1]));
      EXPECT_THAT(*s.ReadState("w")->Get<float>(), ElementsAre(w[0], w[1]));
      EXPECT_THAT(*s.ReadState("old")->Get<float>(), ElementsAre(old[0], old[1]));
      EXPECT_EQ((*s.ReadState("count")->Get<int32_t>())[0], 11);
      EXPECT_EQ((*s.Run("sum", 1)->Get<float>("y"))[0], 66);  // the resident of the other graph
    }
  }
}

// Every step swaps two states and a third takes their sum: all updates take effect together.
TEST(States, UpdatesTakeEffectTogether) {
  Module m("swap");
  m.Graph("step", [](Trace& t) {
    const agc::Tensor a = t.State("a", {kI32, {5}}), b = t.State("b", {kI32, {5}}), c = t.State("c", {kI32, {5}});
    t.Update("a", b);
    t.Update("b", a);
    t.Update("c", a + b * 10.0 + c);
    t.Output("before", a - b);
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  for (bool in_place : {true, false}) {
    const rt::Bundle bundle = CompileProgram(Clone(m.program()), TheTarget(), {.in_place = in_place}).value();
    rt::Session s = LoadOnDevice(bundle).value();
    const std::vector<int32_t> a(5, 1), b(5, 2), zero(5, 0);
    ASSERT_TRUE(s.WriteState("a", a.data(), 20).ok() && s.WriteState("b", b.data(), 20).ok());
    ASSERT_TRUE(s.WriteState("c", zero.data(), 20).ok());
    rt::StatusOr<rt::Outputs> out = s.Run("step", 3);
    ASSERT_TRUE(out.ok());
    EXPECT_THAT(*out->Get<int32_t>("before"), testing::Each(-1));
    EXPECT_EQ(*s.ReadState("a")->Get<int32_t>(), b);
    EXPECT_EQ(*s.ReadState("b")->Get<int32_t>(), a);
    EXPECT_THAT(*s.ReadState("c")->Get<int32_t>(), testing::Each(21 + 12 + 21));
  }
}

}  // namespace
}  // namespace agc::test
