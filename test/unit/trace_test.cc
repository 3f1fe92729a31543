// Handles that are no values of the trace they are used in: empty ones, and those kept from a trace that is over. Every
// function of the C++ API that takes values records why, and none reads through them.
#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace agc {
namespace {

using testing::HasSubstr;

// The diagnostics of a module that uses `f` on a value of a finished trace, which is of another module with `foreign`.
std::string WithStale(absl::FunctionRef<void(Trace& t, Tensor stale)> f, bool foreign) {
  Module m("m"), other("other");
  Tensor stale;
  (foreign ? other : m).Graph("before", [&](Trace& t) { stale = t.Input("x", kF32, {2, 3}); });
  m.Graph("g", [&](Trace& t) { f(t, stale); });
  EXPECT_TRUE(other.status().ok()) << other.status();
  return std::string(m.status().message());
}

std::string WithEmpty(absl::FunctionRef<void(Trace& t)> f) {
  Module m("m");
  m.Graph("g", f);
  return std::string(m.status().message());
}

// Entry points by name, each a use of the value that it is given.
using Use = void (*)(Trace& t, Tensor x);
const std::pair<const char*, Use> kUses[] = {
    {"State",
     [](Trace&, Tensor x) {
       State(x, "w", {kF32, {}}, {}, true);
     }},
    {"Trainable", [](Trace&, Tensor x) { Trainable(x); }},
    {"Update like",
     [](Trace& t, Tensor x) {
       Update(x, "w", t.State("w", {kF32, {}}));
     }},
    {"Update value",
     [](Trace& t, Tensor x) {
       Update(t.State("w", {kF32, {2, 3}}), "w", x);
     }},
    {"Trace::Update",
     [](Trace& t, Tensor x) {
       t.State("w", {kF32, {2, 3}});
       t.Update("w", x);
     }},
    {"Output", [](Trace& t, Tensor x) { t.Output("y", x); }},
    {"OutputEachStep", [](Trace& t, Tensor x) { t.OutputEachStep("y", x); }},
    {"Minimize loss", [](Trace& t, Tensor x) { optim::Adam({.lr = t.Param("lr", kF32)}).Minimize(x); }},
    {"Minimize lr",
     [](Trace& t, Tensor x) {
       optim::Sgd({.lr = x}).Minimize(ReduceSum(State(t.builder(), "w", {kF32, {2}}, {}, true)));
     }},
    {"Minimize params",
     [](Trace& t, Tensor x) {
       const Tensor w = State(t.builder(), "w", {kF32, {2}}, {}, true);
       optim::Sgd({.lr = t.Param("lr", kF32)}).Minimize(ReduceSum(w), {x});
     }},
    {"Cosine", [](Trace&, Tensor x) { optim::Cosine(x, {}); }},
    {"Dropout", [](Trace& t, Tensor x) { nn::Dropout{}(x, t.Input("key", kU32, {2}), true); }},
    {"Linear", [](Trace&, Tensor x) { nn::Linear{.name = "l", .in = 3, .out = 2}(x); }},
    {"BatchNorm", [](Trace&, Tensor x) { nn::BatchNorm{.name = "n", .channels = 3}(x, true); }},
    {"Lstm", [](Trace&, Tensor x) { nn::Lstm{.name = "s", .in = 3, .hidden = 3}(x); }},
    {"Call", [](Trace&, Tensor x) { Call("before", {x}); }},
    {"Grad", [](Trace&, Tensor x) { Grad(x, x); }},
    {"Vjp", [](Trace&, Tensor x) { Vjp({x}, {x}, {}); }},
    {"CustomVjp",
     [](Trace& t, Tensor x) {
       const CustomVjp f(
           "f", [](TensorSpan v) { return v[0]; }, [](TensorSpan, Tensor, Tensor g) { return Tensors{g}; });
       t.Output("y", f({x}));
     }},
    {"an op", [](Trace&, Tensor x) { Tanh(x); }},
    {"a literal", [](Trace&, Tensor x) { 2.0 * x; }},
};

TEST(Handles, OfAFinishedTraceAreDiagnostics) {
  for (const auto& [name, use] : kUses) {
    EXPECT_THAT(WithStale(use, false), HasSubstr("trace_test.cc")) << name;
    EXPECT_THAT(WithStale(use, true), HasSubstr("trace_test.cc")) << name << " of another module";
  }
}

TEST(Handles, ThatAreEmptyAreDiagnostics) {
  for (const auto& [name, use] : kUses) {
    EXPECT_THAT(WithEmpty([use = use](Trace& t) { use(t, Tensor()); }), HasSubstr("trace_test.cc")) << name;
  }
  EXPECT_THAT(WithEmpty([](Trace&) { optim::Sgd({}).Minimize(Tensor()); }),
              HasSubstr("optimiser: the loss is an empty tensor"));
  EXPECT_THAT(WithEmpty([](Trace& t) { t.Output("y", Tensor()); }), HasSubstr("output %y is an empty tensor"));
  EXPECT_THAT(WithEmpty([](Trace& t) { t.Update("w", Tensor()); }), HasSubstr("the new value is an empty tensor"));
  EXPECT_THAT(WithEmpty([](Trace&) { Tensor() + Tensor(); }), HasSubstr("add: an operand is an empty tensor"));
  EXPECT_THAT(WithEmpty([](Trace&) { Call("f", {}); }), HasSubstr("call: the module has no graph @f"));
}

TEST(Handles, APoisonedValueIsReportedOnce) {
  EXPECT_THAT(WithEmpty([](Trace& t) {
                const Tensor bad = Matmul(t.Input("x", kF32, {2, 3}), t.Input("y", kF32, {2, 3}));
                t.Output("y", Tanh(bad) * 2.0);
                t.Update("w", bad);
                optim::Sgd({.lr = bad}).Minimize(bad);
                nn::Linear{.name = "l", .in = 3, .out = 2}(bad);
              }),
              testing::Not(HasSubstr("\n")));
}

TEST(Handles, ATraceThatIsOverRecordsIt) {
  Module m("m");
  Trace* kept = nullptr;
  m.Graph("g", [&](Trace& t) { kept = &t; });
  kept->Input("x", kF32, {});
  kept->State("w", {kF32, {}});
  kept->Full(kF32, {2}, 1);
  kept->Iota(kI32, 2);
  kept->NewStream();
  kept->Counter("c");
  const std::string text(m.status().message());
  EXPECT_THAT(text, HasSubstr("parameter %x: its trace is over"));
  EXPECT_THAT(text, HasSubstr("state @w: its trace is over"));
  EXPECT_THAT(text, HasSubstr("constant: its trace is over"));
  EXPECT_THAT(text, HasSubstr("iota: its trace is over"));
  EXPECT_THAT(text, HasSubstr("state @c: its trace is over"));
}

TEST(Module, WhatIsDeclaredTwice) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    t.State("w", {kF32, {2}});
    t.State("w", {kF32, {3}});
    t.Update("w", t.State("w", {kF32, {2}}));
    t.Update("w", t.State("w", {kF32, {2}}));
    t.Update("v", t.State("w", {kF32, {2}}));
    optim::Sgd({.lr = t.Param("lr", kF32)}).Minimize(ReduceSum(t.State("w", {kF32, {2}})));
  });
  m.Graph("g", [](Trace&) {});
  const std::string text(m.status().message());
  EXPECT_THAT(text, HasSubstr("graph @g is traced twice"));
  EXPECT_THAT(text, HasSubstr("state @w is f32[2], declared again as f32[3]"));
  EXPECT_THAT(text, HasSubstr("update: @w is updated twice in graph @g"));
  EXPECT_THAT(text, HasSubstr("update: there is no state @v"));
  EXPECT_THAT(text, HasSubstr("graph @g reads no trainable state"));
}

}  // namespace
}  // namespace agc
