#include <cmath>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/nest_eval.h"
#include "ir/eval/npy.h"

namespace agc {
namespace {

HostTensor Filled(TensorType type, const std::function<double(int64_t)>& f) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (int64_t i = 0; i < t.type.elements(); ++i) t.set(i, Scalar::Of(t.type.dtype, f(i)));
  return t;
}
HostTensor F32(Dims dims, const std::function<double(int64_t)>& f) { return Filled({DType::kF32, std::move(dims)}, f); }
double Wave(int64_t i) { return std::sin(0.7 * static_cast<double>(i)); }

std::vector<double> Values(const HostTensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.type.elements(); ++i) v.push_back(t.at(i).AsDouble());
  return v;
}

// y[i] = f(x[i]) over one axis of `n` points.
Nest Pointwise(int64_t n, const std::function<Expr(Nest&, Expr)>& f, DType in = DType::kF32, DType out = DType::kF32) {
  Nest nest;
  nest.name = "k";
  nest.params = {{"x", {in, {n}}, false}, {"y", {out, {n}}, true}};
  const Expr i = nest.pool->Var(nest.AddAxis("i", n));
  nest.stores.push_back({1, {i.id}, f(nest, i).id});
  return nest;
}

// A reduction of x[m,k] over k; results are stored one parameter each.
Nest Reduction(int64_t m, int64_t k, absl::string_view combiner,
               const std::function<std::vector<Expr>(Expr x, Expr k)>& values,
               const std::function<Expr(Expr m, Expr k)>& when = nullptr) {
  Nest nest;
  nest.name = "r";
  nest.params.push_back({"x", {DType::kF32, {m, k}}, false});
  const VarId mv = nest.AddAxis("m", m), kv = nest.AddAxis("k", k);
  const Expr me = nest.pool->Var(mv), ke = nest.pool->Var(kv);
  const std::vector<Expr> v = values(nest.pool->Load(0, {me, ke}, DType::kF32), ke);
  NestStage stage{.kind = StageKind::kReduce, .combiner = FindCombiner(combiner), .over = {kv}};
  std::vector<Component> components;
  for (size_t c = 0; c < v.size(); ++c) {
    stage.values.push_back(v[c].id);
    components.push_back({.name = "s" + std::to_string(c), .axes = {mv}, .dtype = v[c].dtype()});
  }
  if (when != nullptr) stage.when = when(me, ke).id;
  const uint32_t first = nest.AddStage(std::move(stage), std::move(components));
  for (size_t c = 0; c < v.size(); ++c) {
    nest.params.push_back({"y" + std::to_string(c), {v[c].dtype(), {m}}, true});
    nest.stores.push_back({static_cast<uint32_t>(c + 1),
                           {me.id},
                           nest.pool->Stage(first + static_cast<uint32_t>(c), {me}, v[c].dtype()).id});
  }
  return nest;
}

TEST(EvalNest, RoundsEveryOperationInExactModeOnly) {
  const Nest nest = Pointwise(600, [](Nest& n, Expr i) {
    const Expr x = n.pool->Load(0, {i}, DType::kF32);
    return x * x + Number(*n.pool, DType::kF32, 0.1);
  });
  const HostTensor x = F32({600}, Wave);
  const std::vector<HostTensor> exact = EvaluateNest(nest, {x}, EvalMode::kExact).value();
  const std::vector<HostTensor> fine = EvaluateNest(nest, {x}, EvalMode::kDouble).value();
  EXPECT_EQ(fine[0].type.dtype, DType::kF64);
  double largest = 0;
  for (int64_t i = 0; i < 600; ++i) {
    const float v = static_cast<float>(x.at(i).f());
    const float square = v * v;
    EXPECT_EQ(exact[0].at(i).f(), static_cast<double>(square + 0.1f));
    EXPECT_EQ(fine[0].at(i).f(), double{v} * double{v} + double{0.1f});
    largest = std::max(largest, std::abs(exact[0].at(i).f() - fine[0].at(i).f()));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 1e-7);
}

TEST(EvalNest, KDoubleTakesFloatsInEitherForm) {
  const Nest nest = Pointwise(3, [](Nest& n, Expr i) { return n.pool->Load(0, {i}, DType::kF32); });
  const HostTensor x = Filled({DType::kF64, {3}}, [](int64_t i) { return 0.1 * static_cast<double>(i); });
  EXPECT_THAT(Values(EvaluateNest(nest, {x}, EvalMode::kDouble).value()[0]), testing::ElementsAre(0, 0.1, 0.2));
  EXPECT_EQ(EvaluateNest(nest, {x}, EvalMode::kExact).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EvalNest, GuardedLoadsGiveZero) {
  const Nest nest =
      Pointwise(6, [](Nest& n, Expr i) { return n.pool->Load(0, {i - 2}, DType::kF32, 1, InRange(i - 2, 6)); });
  const HostTensor x = F32({6}, [](int64_t i) { return static_cast<double>(i + 1); });
  EXPECT_THAT(Values(EvaluateNest(nest, {x}, EvalMode::kExact).value()[0]), testing::ElementsAre(0, 0, 1, 2, 3, 4));
}

TEST(EvalNest, OutOfRangeLoadsNameNestBufferAndIndex) {
  const Nest nest = Pointwise(6, [](Nest& n, Expr i) { return n.pool->Load(0, {i + 1}, DType::kF32); });
  const absl::Status s = EvaluateNest(nest, {F32({6}, Wave)}, EvalMode::kExact).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(std::string(s.message()), "error: nest @k: load of %x at [6] is out of range, it is f32[6]");
}

TEST(EvalNest, ComputedIndicesMustKeepTheirPromise) {
  const Nest nest = Pointwise(
      4,
      [](Nest& n, Expr i) {
        const Expr at = ToIndex(n.pool->Load(0, {i}, DType::kI32), 0, 3);
        return FromIndex(at, DType::kI32);
      },
      DType::kI32, DType::kI32);
  const auto run = [&](double last) {
    return EvaluateNest(nest, {Filled({DType::kI32, {4}}, [&](int64_t i) { return i == 3 ? last : 0; })},
                        EvalMode::kExact);
  };
  EXPECT_THAT(Values(run(3).value()[0]), testing::ElementsAre(0, 0, 0, 3));
  EXPECT_EQ(run(4).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(EvalNest, UnwrittenElementsAreAnError) {
  Nest nest = Pointwise(4, [](Nest& n, Expr i) { return n.pool->Load(0, {i}, DType::kF32); });
  nest.params[1].type.dims[0] = 5;
  const absl::Status s = EvaluateNest(nest, {F32({4}, Wave)}, EvalMode::kExact).status();
  EXPECT_EQ(std::string(s.message()), "nest @k: element 4 of %y is never written");
}

TEST(EvalNest, SumsInIncreasingOrderWhicheverWayLanesLie) {
  for (const auto& [m, k] : {std::pair{300, 7}, std::pair{2, 700}}) {  // results in the lanes, reduction in the lanes
    const Nest nest = Reduction(m, k, "add", [](Expr x, Expr) { return std::vector<Expr>{x}; });
    const HostTensor x = F32({m, k}, Wave);
    const HostTensor y = EvaluateNest(nest, {x}, EvalMode::kExact).value()[0];
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int j = 0; j < k; ++j) sum += static_cast<float>(x.at(i * k + j).f());
      EXPECT_EQ(y.at(i).f(), sum) << m << " results, result " << i;
    }
  }
}

TEST(EvalNest, WhenSkipsElementsAndTheirLoads) {
  for (const auto& [m, k] : {std::pair{40, 40}, std::pair{3, 300}}) {
    // Causal: k <= m; beyond that the load would be out of range.
    Nest nest = Reduction(
        m, k, "add", [](Expr x, Expr) { return std::vector<Expr>{x}; }, [](Expr a, Expr b) { return NonNeg(a - b); });
    Expr load = nest.at(nest.stages[0].values[0]);
    load = nest.pool->Load(0, {load.arg(0), load.arg(1) - load.arg(0)}, DType::kF32);
    nest.stages[0].values[0] = load.id;
    nest.stages[0].when = NonNeg(load.arg(1)).id;
    const HostTensor y = EvaluateNest(nest, {F32({m, k}, [](int64_t) { return 1; })}, EvalMode::kExact).value()[0];
    for (int i = 0; i < m; ++i) EXPECT_EQ(y.at(i).f(), k - i);
  }
}

TEST(EvalNest, CombinersOfSeveralComponents) {
  for (const auto& [m, k] : {std::pair{20, 5}, std::pair{1, 300}}) {
    const HostTensor x = F32({m, k}, [](int64_t i) { return std::floor(3 * Wave(i)); });
    const Nest arg = Reduction(m, k, "argmax", [](Expr v, Expr at) {
      return std::vector<Expr>{v, FromIndex(at, DType::kI32)};
    });
    const std::vector<HostTensor> y = EvaluateNest(arg, {x}, EvalMode::kExact).value();
    for (int i = 0; i < m; ++i) {
      int best = 0;
      for (int j = 1; j < k; ++j) best = x.at(i * k + j).f() > x.at(i * k + best).f() ? j : best;
      EXPECT_EQ(y[1].at(i).i(), best);
      EXPECT_EQ(y[0].at(i).f(), x.at(i * k + best).f());
    }
    const Nest affine = Reduction(m, k, "affine", [](Expr v, Expr) {
      return std::vector<Expr>{Number(*v.pool, DType::kF32, 0.5), v};
    });
    const std::vector<HostTensor> h = EvaluateNest(affine, {x}, EvalMode::kDouble).value();
    for (int i = 0; i < m; ++i) {
      double state = 0;
      for (int j = 0; j < k; ++j) state = 0.5 * state + x.at(i * k + j).f();
      EXPECT_NEAR(h[1].at(i).f(), state, 1e-12);
    }
  }
}

TEST(EvalNest, ContractionsAndStageReads) {
  Nest nest;
  nest.name = "mm";
  nest.params = {
      {"x", {DType::kF16, {20, 9}}, false}, {"w", {DType::kF16, {9, 30}}, false}, {"y", {DType::kF32, {20, 30}}, true}};
  const VarId m = nest.AddAxis("m", 20), n = nest.AddAxis("n", 30), k = nest.AddAxis("k", 9);
  const Expr me = nest.pool->Var(m), ne = nest.pool->Var(n), ke = nest.pool->Var(k);
  NestStage product{.kind = StageKind::kContract, .combiner = FindCombiner("add"), .over = {k}};
  product.values = {nest.pool->Load(0, {me, ke}, DType::kF16).id,
                    Cast(nest.pool->Load(1, {ke, ne}, DType::kF16), DType::kF32).id};
  nest.AddStage(std::move(product), {{.name = "p", .axes = {m, n}, .dtype = DType::kF32}});
  NestStage twice{.kind = StageKind::kMap};
  const Expr p = nest.pool->Stage(0, {me, ne}, DType::kF32);
  twice.values = {(p + p).id};
  nest.AddStage(std::move(twice), {{.name = "d", .axes = {n, m}, .dtype = DType::kF32}});
  nest.stores.push_back({2, {me.id, ne.id}, nest.pool->Stage(1, {ne, me}, DType::kF32).id});
  const HostTensor x = Filled({DType::kF16, {20, 9}}, Wave), w = Filled({DType::kF16, {9, 30}}, Wave);
  const HostTensor y = EvaluateNest(nest, {x, w}, EvalMode::kExact).value()[0];
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 30; ++j) {
      float sum = 0;
      for (int t = 0; t < 9; ++t)
        sum += static_cast<float>(x.at(i * 9 + t).f()) * static_cast<float>(w.at(t * 30 + j).f());
      EXPECT_EQ(y.at(i * 30 + j).f(), sum + sum);
    }
  }
}

TEST(EvalNest, ReductionsOverNothingGiveTheIdentity) {
  const Nest nest = Reduction(3, 0, "max", [](Expr x, Expr) { return std::vector<Expr>{x}; });
  EXPECT_THAT(Values(EvaluateNest(nest, {F32({3, 0}, Wave)}, EvalMode::kExact).value()[0]), testing::Each(-INFINITY));
}

TEST(EvalNest, RunNestKeepsWhatNoStoreReaches) {
  Nest nest = Pointwise(4, [](Nest& n, Expr i) { return n.pool->Load(0, {i}, DType::kF32); });
  nest.params[1].type.dims[0] = 6;
  HostTensor x = F32({4}, [](int64_t) { return 1; }), y = F32({6}, [](int64_t) { return 7; });
  ASSERT_TRUE(RunNest(nest, {&x, &y}, EvalMode::kExact).ok());
  EXPECT_THAT(Values(y), testing::ElementsAre(1, 1, 1, 1, 7, 7));
}

TEST(EvalNest, IntegersWrapAndCastsSaturate) {
  const Nest nest = Pointwise(
      4,
      [](Nest& n, Expr i) {
        const Expr x = n.pool->Load(0, {i}, DType::kF32);
        return Cast(x, DType::kI8) + Number(*n.pool, DType::kI8, 1);
      },
      DType::kF32, DType::kI8);
  const double in[] = {1e9, -1e9, 2.9, NAN};
  EXPECT_THAT(Values(EvaluateNest(nest, {F32({4}, [&](int64_t i) { return in[i]; })}, EvalMode::kExact).value()[0]),
              testing::ElementsAre(-128, -127, 3, 1));
}

// Just above, at and just below the middle of two neighbours that are further apart than neighbouring doubles.
TEST(Scalars, LongIntegersAreRoundedToFloatsOnce) {
  const auto converted = [](DType from, uint64_t bits, DType to) { return Convert({from, bits}, to).f(); };
  const double low = std::ldexp(1.0, 53), next = low + std::ldexp(1.0, 30), after = low + std::ldexp(1.0, 46);
  const uint64_t half = (uint64_t{1} << 53) + (1 << 29), wide = (uint64_t{1} << 53) + (uint64_t{1} << 45);
  EXPECT_EQ(converted(DType::kI64, half + 1, DType::kF32), next);
  EXPECT_EQ(converted(DType::kI64, half, DType::kF32), low);
  EXPECT_EQ(converted(DType::kI64, half - 1, DType::kF32), low);
  EXPECT_EQ(converted(DType::kI64, 0 - (half + 1), DType::kF32), -next);
  EXPECT_EQ(converted(DType::kU64, wide + 1, DType::kBF16), after);
  EXPECT_EQ(converted(DType::kU64, wide, DType::kBF16), low);
  EXPECT_EQ(converted(DType::kU64, ~uint64_t{0}, DType::kF32), std::ldexp(1.0, 64));
  EXPECT_EQ(converted(DType::kI64, uint64_t{1} << 63, DType::kF32), -std::ldexp(1.0, 63));
}

TEST(EvalNpy, RoundTripsEveryDType) {
  const std::string path = testing::TempDir() + "/eval_npy.npy";
  for (int d = 0; d < kTensorDTypes; ++d) {
    for (const Dims& dims : {Dims{}, Dims{5}, Dims{2, 3}, Dims{0, 4}}) {
      const HostTensor t = Filled({static_cast<DType>(d), dims}, [](int64_t i) { return i % 2 == 0 ? 1 : 0; });
      ASSERT_TRUE(WriteNpy(path, t).ok());
      const absl::StatusOr<HostTensor> back = ReadNpy(path, t.type);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, t);
    }
  }
}

TEST(EvalNpy, TypedErrors) {
  const std::string path = testing::TempDir() + "/eval_npy_bad.npy";
  EXPECT_EQ(ReadNpy("/nonexistent.npy").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteNpy(path, F32({4}, Wave)).ok());
  EXPECT_EQ(std::string(ReadNpy(path, TensorType{DType::kF32, {5}}).status().message()),
            path + ": it holds f32[4], f32[5] expected");
  const auto write = [&](const std::string& text) {
    FILE* f = fopen(path.c_str(), "wb");
    fwrite(text.data(), 1, text.size(), f);
    fclose(f);
  };
  const auto header = [&](const std::string& dict) {
    write(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict + std::string(8, 'x'));
    return ReadNpy(path).status().code();
  };
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), absl::StatusCode::kOk);
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(header(""), absl::StatusCode::kDataLoss);
  write("hello");
  EXPECT_EQ(ReadNpy(path).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace agc
