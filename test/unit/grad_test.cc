// Derivatives as users ask for them: Grad, ValueAndGrad, Vjp, Jvp, Hvp, calls of graphs and custom gradients.
#include "compiler/grad.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/gradients_match.h"
#include "test/unit/run_trace.h"

namespace agc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLine = 1000;
Loc At(int line) { return {"net.cc", static_cast<uint32_t>(line)}; }

TEST(Grad, OfAnInputAStateAndAValueOnTheWay) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), w = t.State("w", {kF64, {2}});
        const Tensor h = x * w, loss = ReduceSum(h * h);
        const Tensors g = Grad(loss, {x, w, h});
        t.Output("dx", g[0]);
        t.Output("dw", g[1]);
        t.Output("dh", g[2]);
        t.Update("w", w + 1.0);  // the gradient is that of the value read at entry
      },
      {{"x", Numbers({2}, {1, 2})}}, {{"w", Numbers({2}, {3, 5})}});
  EXPECT_THAT(r.at("dh"), ElementsAre(6, 20));
  EXPECT_THAT(r.at("dx"), ElementsAre(18, 100));
  EXPECT_THAT(r.at("dw"), ElementsAre(6, 40));
  EXPECT_THAT(r.at("w"), ElementsAre(4, 6));
}

TEST(Grad, OfSeveralLossesIsThatOfTheirSum) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2});
        const Tensor a = ReduceSum(x * x), b = ReduceSum(x) * 3.0;
        t.Output("both", Grad(TensorSpan{a, b}, {x})[0]);
        t.Output("a", Grad(a, x));
        t.Output("b", Grad(b, x));
      },
      {{"x", Numbers({2}, {1, 2})}});
  EXPECT_THAT(r.at("both"), ElementsAre(5, 7));
  EXPECT_THAT(r.at("a"), ElementsAre(2, 4));
  EXPECT_THAT(r.at("b"), ElementsAre(3, 3));
}

TEST(Grad, WithItsValue) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), y = t.Input("y", kF64, {2});
        const auto [value, grads] = ValueAndGrad([](TensorSpan v) { return ReduceSum(v[0] * v[0] * v[1]); }, {x, y});
        t.Output("value", value);
        t.Output("dx", grads[0]);
        t.Output("dy", grads[1]);
      },
      {{"x", Numbers({2}, {1, 2})}, {"y", Numbers({2}, {3, 4})}});
  EXPECT_THAT(r.at("value"), ElementsAre(19));
  EXPECT_THAT(r.at("dx"), ElementsAre(6, 16));
  EXPECT_THAT(r.at("dy"), ElementsAre(1, 4));
}

TEST(Grad, OfWhatIsNotReachedIsZero) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), y = t.Input("y", kF64, {3});
        const Tensor z = Cast(Cast(x, kI32), kF64), loss = ReduceSum(z);
        t.Output("dx", Grad(loss, x));  // through integers only
        t.Output("dy", Grad(loss, y));
        t.Output("later", Grad(loss, Exp(loss)));
        t.Output("vjp", Vjp(z, y, z));
        t.Output("jvp", Jvp(z, y, y));
        t.Output("self", Jvp(x, x, x));
      },
      {{"x", Numbers({2}, {1, 2})}, {"y", Numbers({3}, {3, 4, 5})}});
  EXPECT_THAT(r.at("dx"), ElementsAre(0, 0));
  EXPECT_THAT(r.at("dy"), ElementsAre(0, 0, 0));
  EXPECT_THAT(r.at("later"), ElementsAre(0));
  EXPECT_THAT(r.at("vjp"), ElementsAre(0, 0, 0));
  EXPECT_THAT(r.at("jvp"), ElementsAre(0, 0));
  EXPECT_THAT(r.at("self"), ElementsAre(1, 2));
}

TEST(Grad, WrongUsesAreDiagnostics) {
  const auto errors = [](const std::function<Tensor(Tensor x, Tensor i)>& f) {
    return ErrorsOf([&](Trace& t) { t.Output("y", f(t.Input("x", kF32, {2}), t.Input("i", kI32, {}))); });
  };
  EXPECT_EQ(errors([](Tensor x, Tensor) { return Grad(x, x, At(kLine)); }),
            "net.cc:1000: error: gradient: the loss is f32[2], expected a float scalar; reduce it first");
  EXPECT_EQ(errors([](Tensor x, Tensor i) { return Grad(i, x, At(kLine)); }),
            "net.cc:1000: error: gradient: the loss is i32[], expected a float scalar; reduce it first");
  EXPECT_EQ(errors([](Tensor x, Tensor i) { return Grad(ReduceSum(x), i, At(kLine)); }),
            "net.cc:1000: error: gradient: the gradient with respect to i32[] is asked for, expected a float type");
  EXPECT_EQ(errors([](Tensor x, Tensor) { return Vjp(x, x, ReduceSum(x), At(kLine)); }),
            "net.cc:1000: error: vjp: the cotangent of output 0 is f32[], expected f32[2] as the output itself");
  EXPECT_EQ(errors([](Tensor x, Tensor) { return Jvp(x, x, ReduceSum(x), At(kLine)); }),
            "net.cc:1000: error: jvp: the tangent of input 0 is f32[], expected f32[2] as the input itself");
  EXPECT_EQ(errors([](Tensor x, Tensor) {
              return Vjp({x, x}, {x}, {x}, At(kLine))[0];
            }),
            "net.cc:1000: error: vjp: 2 values and 1 vectors are given, expected as many of both and at least one");
  EXPECT_EQ(errors([](Tensor x, Tensor) {
              return Jvp({x}, {x, x}, {x}, At(kLine))[0];
            }),
            "net.cc:1000: error: jvp: 2 values and 1 vectors are given, expected as many of both and at least one");
}

TEST(Grad, OfAValueOfAnotherTraceIsADiagnostic) {
  Module m("m");
  Tensor kept;
  m.Graph("a", [&](Trace& t) { kept = t.Input("x", kF32, {}); });
  m.Graph("b", [&](Trace& t) { t.Output("y", Grad(t.Input("x", kF32, {}), kept, At(kLine))); });
  EXPECT_EQ(std::string(m.status().message()), "net.cc:1000: error: gradient: an operand belongs to another trace");
}

TEST(Vjp, OfSeveralOutputs) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), g = t.Input("g", kF64, {2}), h = t.Input("h", kF64, {});
        t.Output("dx", Vjp({x * x, ReduceSum(x * x * x)}, {x}, {g, h})[0]);
        // Linear in the cotangent, so its derivative along it is the same map.
        t.Output("again", Jvp(Vjp(x * x, x, g), g, g));
      },
      {{"x", Numbers({2}, {1, 2})}, {"g", Numbers({2}, {3, 5})}, {"h", Numbers({}, {7})}});
  EXPECT_THAT(r.at("dx"), ElementsAre(6 + 21, 20 + 84));
  EXPECT_THAT(r.at("again"), ElementsAre(6, 20));
}

TEST(Jvp, OfSeveralInputsThatDependOnEachOther) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {}), t0 = t.Input("t0", kF64, {}), t1 = t.Input("t1", kF64, {});
        const Tensor h = x * x, y = h * x;
        t.Output("ty", Jvp({y}, {x, h}, {t0, t1})[0]);
        const Tensors g = Vjp({y}, {x, h}, {x});
        t.Output("g", g[0] * t0 + g[1] * t1);
        t.Output("u", Jvp({y}, {x, h}, {t0, t1})[0] * x);
      },
      {{"x", Numbers({}, {2})}, {"t0", Numbers({}, {3})}, {"t1", Numbers({}, {5})}});
  EXPECT_THAT(r.at("ty"), ElementsAre(3 * 4 * 3 + 5 * 2));  // x^3 moved by t0, and h where it is read by t1
  EXPECT_EQ(r.at("g"), r.at("u"));
}

TEST(Hvp, OfTwoBlocks) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {}), y = t.Input("y", kF64, {});
        const Tensor v = t.Input("v", kF64, {}), w = t.Input("w", kF64, {});
        const Tensor loss = x * x * y;  // H = [[2y, 2x], [2x, 0]]
        const Tensors h = Hvp(loss, {x, y}, {v, w});
        t.Output("hx", h[0]);
        t.Output("hy", h[1]);
        t.Output("third", Grad(Hvp(loss, x, v), y));
      },
      {{"x", Numbers({}, {2})}, {"y", Numbers({}, {3})}, {"v", Numbers({}, {5})}, {"w", Numbers({}, {7})}});
  EXPECT_THAT(r.at("hx"), ElementsAre(6 * 5 + 4 * 7));
  EXPECT_THAT(r.at("hy"), ElementsAre(4 * 5));
  EXPECT_THAT(r.at("third"), ElementsAre(10));
}

// How many products the second derivative of a small network takes, after common parts are merged.
size_t Products(absl::FunctionRef<Tensors(Tensor loss, TensorSpan w, TensorSpan v)> hvp) {
  Module m("m");
  m.Graph("g", [&](Trace& t) {
    const Tensor x = t.Input("x", kF32, {8, 5});
    const Tensors w = {t.Input("w0", kF32, {5, 6}), t.Input("w1", kF32, {6, 7}), t.Input("w2", kF32, {7, 3})};
    const Tensors v = {t.Input("v0", kF32, {5, 6}), t.Input("v1", kF32, {6, 7}), t.Input("v2", kF32, {7, 3})};
    const Tensor y = Matmul(Tanh(Matmul(Tanh(Matmul(x, w[0])), w[1])), w[2]);
    const Tensors h = hvp(ReduceSum(Square(y)), w, v);
    for (size_t k = 0; k < h.size(); ++k) t.Output(absl::StrCat("h", k), h[k]);
  });
  Program p = Clone(m.program());
  PassContext context;
  const std::vector<std::string> passes = {"canonicalize", "autograd", "canonicalize", "cse", "rewrite", "cse", "dce"};
  EXPECT_EQ(RunPipeline(p, passes, context), absl::OkStatus());
  return static_cast<size_t>(std::count_if(p.graphs[0].ops.begin(), p.graphs[0].ops.end(),
                                           [](const Op& op) { return op.def->cls == OpClass::kContract; }));
}

TEST(Hvp, TakesNoMoreProductsThanReverseOverReverse) {
  const size_t forward = Products([](Tensor loss, TensorSpan w, TensorSpan v) { return Hvp(loss, w, v); });
  const size_t reverse = Products([](Tensor loss, TensorSpan w, TensorSpan v) {
    const Tensors g = Grad(loss, w);
    return Grad(ReduceSum(g[0] * v[0]) + ReduceSum(g[1] * v[1]) + ReduceSum(g[2] * v[2]), w);
  });
  EXPECT_LE(forward, reverse);
}

// ---------------------------------------------------------------- graphs as functions

TEST(Call, CopiesAGraphThatCanBeDifferentiated) {
  Module m("m");
  m.Graph("f", [](Trace& t) {
    const Tensor x = t.Input("x", kF64, {2});
    t.Output("y", ReduceSum(x * x * t.State("w", {kF64, {2}})));
  });
  m.Graph("df", [](Trace& t) {
    const Tensor x = t.Input("x", kF64, {2});
    t.Output("g", Grad(Call("f", {x * 2.0})[0], x));
  });
  ASSERT_EQ(m.status(), absl::OkStatus());
  Program p = Clone(m.program());
  PassContext context;
  ASSERT_EQ(RunPipeline(p, {"autograd"}, context), absl::OkStatus());
  const auto r = EvaluateGraph(p, *p.FindGraph("df"), {{{"x", Numbers({2}, {1, 2})}}, {{"w", Numbers({2}, {3, 5})}}},
                               EvalMode::kExact);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->outputs.at("g"), Numbers({2}, {24, 80}));
}

TEST(Call, WrongUsesAreDiagnostics) {
  Module m("m");
  m.Graph("f", [](Trace& t) { t.Output("y", t.Input("x", kF64, {2})); });
  m.Graph("up", [](Trace& t) { t.Update("w", t.State("w", {kF64, {}}) + t.Input("x", kF64, {})); });
  m.Graph("g", [](Trace& t) {
    const Tensor x = t.Input("x", kF64, {});
    Call("h", {x}, At(1));
    Call("f", {x}, At(2));
    Call("f", {x, x}, At(3));
    Call("up", {x}, At(4));
  });
  EXPECT_EQ(std::string(m.status().message()),
            "net.cc:1: error: call: the module has no graph @h\n"
            "net.cc:2: error: argument %x of @f is f64[], expected f64[2]\n"
            "net.cc:3: error: @f takes 1 arguments, 2 are given\n"
            "net.cc:4: error: @up updates state @w, which a call cannot do");
}

TEST(Call, GivesRandomOpsStreamsOfTheirOwn) {
  Module m("m");
  m.Graph("noise", [](Trace& t) { t.Output("y", RandomUniform(t.Input("k", kU32, {2}), t.NewStream(), {4})); });
  m.Graph("g", [](Trace& t) {
    const Tensor k = t.Input("k", kU32, {2});
    t.Output("a", Call("noise", {k})[0]);
    t.Output("b", Call("noise", {k})[0]);
  });
  ASSERT_EQ(m.status(), absl::OkStatus());
  const auto r = EvaluateGraph(m.program(), *m.program().FindGraph("g"), {{{"k", Numbers({2}, {1, 2}, kU32)}}, {}},
                               EvalMode::kExact);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_FALSE(r->outputs.at("a") == r->outputs.at("b"));
}

// ---------------------------------------------------------------- custom gradients

// log(1 + e^x), whose gradient the plain form loses to overflow.
CustomVjp SafeSoftplus() {
  return {"softplus", [](TensorSpan x) { return Log(1.0 + Exp(x[0])); },
          [](TensorSpan x, Tensor, Tensor g) { return Tensors{g / (1.0 + Exp(-x[0]))}; }};
}

TEST(Custom, GradientIsTheGivenOne) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2});
        t.Output("dx", Grad(ReduceSum(SafeSoftplus()({x})), x));
        t.Output("plain", Grad(ReduceSum(Log(1.0 + Exp(x))), x));
      },
      {{"x", Numbers({2}, {0, 1000})}});
  EXPECT_THAT(r.at("dx"), ElementsAre(0.5, 1));
  EXPECT_NE(r.at("plain")[1], 1);
}

TEST(Custom, GradientsMatchDifferencesToSecondOrder) {
  EXPECT_TRUE(GradientsMatch([](TensorSpan x) { return SafeSoftplus()({x}); }, {Numbers({3}, {-1, 0.5, 2})}));
  EXPECT_TRUE(GradientsMatch([](TensorSpan x) { return Tanh(SafeSoftplus()({Sin(x[0])})) * x[1]; },
                             {Numbers({2}, {-1, 0.5}), Numbers({2}, {3, 4})}));
}

// Forward mode transposes the given gradient, and takes one that is not linear in the cotangent as it is at 1.
TEST(Custom, TangentsComeFromTheGivenGradient) {
  const CustomVjp doubled(
      "doubled", [](TensorSpan x) { return x[0] * x[1]; },
      [](TensorSpan x, Tensor, Tensor g) {
        return Tensors{g * x[1] * 2.0, g * x[0] * 2.0};
      });
  const CustomVjp clipped(
      "clipped", [](TensorSpan x) { return x[0] * 1.0; },
      [](TensorSpan, Tensor, Tensor g) { return Tensors{Clamp(g * 4.0, -5, 5)}; });
  const auto r = RunTrace(
      [&](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), y = t.Input("y", kF64, {2}), u = t.Input("u", kF64, {2});
        t.Output("t", Jvp(doubled({x, y}), x, u));
        t.Output("both", Jvp({doubled({x, y})}, {x, y}, {u, u})[0]);
        t.Output("clipped", Jvp(clipped({x}), x, u * 100.0));
      },
      {{"x", Numbers({2}, {1, 2})}, {"y", Numbers({2}, {3, 4})}, {"u", Numbers({2}, {1, -1})}});
  EXPECT_THAT(r.at("t"), ElementsAre(6, -8));
  EXPECT_THAT(r.at("both"), ElementsAre(8, -12));
  EXPECT_THAT(r.at("clipped"), ElementsAre(400, -400));
}

TEST(Custom, AWrongGradientIsSeen) {
  const CustomVjp wrong(
      "wrong", [](TensorSpan x) { return x[0] * x[0]; },
      [](TensorSpan x, Tensor, Tensor g) { return Tensors{g * x[0]}; });
  const auto result = GradientsMatch([&](TensorSpan x) { return wrong({x}); }, {Numbers({1}, {3})});
  EXPECT_FALSE(result);
  EXPECT_THAT(std::string(result.message()), HasSubstr("gradient of x0[0] is "));
}

TEST(Custom, SeveralOperandsAndDtypes) {
  const CustomVjp scaled(
      "scaled", [](TensorSpan x) { return x[0] * x[1] * Cast(x[2], x[0].dtype()); },
      [](TensorSpan x, Tensor, Tensor g) {
        return Tensors{g * x[1], Tensor()};
      });
  const auto r = RunTrace(
      [&](Trace& t) {
        const Tensor x = t.Input("x", kF64, {2}), y = t.Input("y", kF64, {2}), i = t.Input("i", kI32, {2});
        const Tensor z = scaled({x, y, i}), narrow = scaled({Cast(x, kF32), Cast(y, kF32), i});
        t.Output("dx", Grad(ReduceSum(z), x));
        t.Output("dy", Grad(ReduceSum(z), y));
        t.Output("narrow", Grad(ReduceSum(narrow), x));
      },
      {{"x", Numbers({2}, {1, 2})}, {"y", Numbers({2}, {3, 4})}, {"i", Numbers({2}, {5, 6}, kI32)}});
  EXPECT_THAT(r.at("dx"), ElementsAre(3, 4));
  EXPECT_THAT(r.at("dy"), ElementsAre(0, 0));  // an empty cotangent
  EXPECT_THAT(r.at("narrow"), ElementsAre(3, 4));
}

// exp, whose gradient calls it again: derivatives of every order.
struct CustomExp {
  CustomVjp f = {"exp", [](TensorSpan x) { return Exp(x[0]); },
                 [this](TensorSpan x, Tensor, Tensor g) { return Tensors{g * f({x[0]})}; }};
};

TEST(Custom, AGradientMayUseItsOwnFunction) {
  const CustomExp e;
  const auto r = RunTrace(
      [&](Trace& t) {
        const Tensor x = t.Input("x", kF64, {});
        t.Output("third", Grad(Grad(Grad(e.f({x * 2.0}), x), x), x));
      },
      {{"x", Numbers({}, {0})}});
  EXPECT_THAT(r.at("third"), ElementsAre(8));
  EXPECT_TRUE(GradientsMatch([&](TensorSpan x) { return e.f({x}); }, {Numbers({3}, {-1, 0.5, 2})}));
}

TEST(Custom, FunctionsAreSharedByNameAndTypes) {
  Module m("m");
  for (const char* name : {"a", "b"}) {
    m.Graph(name, [](Trace& t) {
      const Tensor x = t.Input("x", kF32, {2}), y = t.Input("y", kF32, {3});
      t.Output("u", SafeSoftplus()({x}));
      t.Output("v", SafeSoftplus()({y}));
      t.Output("w", SafeSoftplus()({x * 2.0}));
    });
  }
  ASSERT_EQ(m.status(), absl::OkStatus());
  std::vector<std::string> names;
  for (const Graph& g : m.program().graphs) names.push_back(g.name);
  EXPECT_THAT(names, ElementsAre("softplus.vjp", "softplus.1.vjp", "a", "b"));
}

TEST(Custom, WrongUsesAreDiagnostics) {
  const auto errors = [](const CustomVjp::Gradient& vjp) {
    return ErrorsOf([&](Trace& t) {
      t.Output("y", CustomVjp(
                        "f", [](TensorSpan x) { return x[0] * x[1]; }, vjp)(
                        {t.Input("x", kF32, {2}), t.Input("z", kF32, {2})}, At(kLine)));
    });
  };
  EXPECT_EQ(errors([](TensorSpan, Tensor, Tensor g) { return Tensors{g}; }),
            "net.cc:1000: error: custom_vjp: @f.vjp gives 1 cotangents, 2 of its operands are float");
  EXPECT_EQ(errors([](TensorSpan, Tensor, Tensor g) {
              return Tensors{g, ReduceSum(g)};
            }),
            "net.cc:1000: error: custom_vjp: cotangent 1 of @f.vjp is f32[], expected f32[2]");
  EXPECT_EQ(ErrorsOf([](Trace& t) {
              const Tensor x = t.Input("x", kF32, {2});
              const CustomVjp f(
                  "f", [](TensorSpan v) { return v[0]; }, [x](TensorSpan, Tensor, Tensor) { return Tensors{x}; });
              t.Output("y", f({x}, At(kLine)));
            }),
            "net.cc:1000: error: custom_vjp: cotangent 0 of @f.vjp belongs to another trace");
  EXPECT_EQ(ErrorsOf([](Trace& t) {
              const Tensor i = t.Input("i", kI32, {2});
              t.Output("y", CustomVjp(
                                "f", [](TensorSpan v) { return v[0]; },
                                [](TensorSpan, Tensor, Tensor) { return Tensors(); })({i}, At(kLine)));
            }),
            "net.cc:1000: error: custom_vjp: operand 0 is i32[2], expected a float type; cast it first");
  EXPECT_EQ(ErrorsOf([](Trace& t) {
              const Tensor x = t.Input("x", kF32, {2});
              for (double scale : {1.0, 2.0}) {
                CustomVjp(
                    "f", [](TensorSpan v) { return v[0] * 1.0; },
                    [scale](TensorSpan, Tensor, Tensor g) { return Tensors{g * scale}; })({x}, At(kLine));
              }
            }),
            "net.cc:1000: error: custom_vjp: another function is called f in this module, rename one");
}

}  // namespace
}  // namespace agc::test
