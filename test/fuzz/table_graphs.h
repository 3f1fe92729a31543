// Random graphs over the whole op table: each op is a row's sample in some dtype and size, on inputs of its own and on
// values that are there, cast, cut, padded and clamped to what the sample asks for. Nothing here knows an op by name
// but those few.
//   TableGraph g = MakeTableGraph(/*seed=*/7, dtypes, /*ops=*/8);     g.program, g.inputs, g.want, g.allowed
// Values that rounding decides (NaN, huge, or far from what f64 gives) are read by nothing, and what is not continuous
// (integers from floats, rows that are not differentiable) reads only values that are exact. `allowed` comes from
// evaluating with every operation rounded and with inputs moved a little; outputs that move much are dropped.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_samples.h"
#include "passes/manager.h"

namespace agc::test {

struct TableGraph {
  Program program = {};
  EvalInputs inputs = {};
  EvalResult want = {};                        // in f64
  std::map<std::string, double> allowed = {};  // by output or state, relative to max(1, |want|)
};

namespace fuzz {

inline double Step(DType t) {  // of rounding, times a few
  return t == DType::kF64 ? 1e-14 : t == DType::kF32 ? 1e-6 : t == DType::kF16 ? 2e-3 : t == DType::kBF16 ? 1e-2 : 0;
}
inline double Apart(const HostTensor& a, const HostTensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < b.type.elements(); ++i) {
    const double x = a.at(i).AsDouble(), y = b.at(i).AsDouble();
    if (x == y) continue;
    const double d = std::abs(x - y) / std::max(1.0, std::abs(y));
    worst = std::max(worst, std::isnan(d) ? HUGE_VAL : d);
  }
  return worst;
}
inline double Largest(const HostTensor& t) {
  double worst = 0;
  for (int64_t i = 0; i < t.type.elements(); ++i) {
    const double x = std::abs(t.at(i).AsDouble());
    worst = std::max(worst, std::isnan(x) ? HUGE_VAL : x);
  }
  return worst;
}

// The samples of each row in these dtypes that are small.
inline std::vector<std::vector<OpSample>> Templates(absl::Span<const DType> dtypes) {
  std::vector<std::vector<OpSample>> rows;
  const auto fits = [&](const TensorType& t) {
    return t.elements() <= 3000 && std::find(dtypes.begin(), dtypes.end(), t.dtype) != dtypes.end();
  };
  for (const OpDef* op : AllOps()) {
    if (op->numpy.empty()) continue;
    std::vector<OpSample> some = SamplesOf(*op, SampleSet::kAll).value();
    std::erase_if(some, [&](const OpSample& s) {
      return !std::all_of(s.operands.begin(), s.operands.end(), fits) ||
             !std::all_of(s.results.begin(), s.results.end(), fits);
    });
    if (!some.empty()) rows.push_back(std::move(some));
  }
  return rows;
}

class Grower {
 public:
  Grower(uint64_t seed, absl::Span<const DType> dtypes) : rng_(seed), dtypes_(dtypes.begin(), dtypes.end()) {
    program_.name = "fuzz";
    program_.graphs.emplace_back();
    program_.graphs[0].name = "g";
    AddState("s0");
    AddState("s1");
  }

  void Add(const std::vector<std::vector<OpSample>>& rows) {
    const std::vector<OpSample>& row = rows[Below(rows.size())];
    const OpSample& sample = row[Below(row.size())];
    std::vector<size_t> operands;
    for (const TensorType& type : sample.operands) operands.push_back(Operand(sample, type));
    Append(*sample.op, operands, sample.attrs);
  }

  TableGraph Finish() {
    Graph& graph = program_.graphs[0];
    std::vector<size_t> outputs;
    for (size_t k = 0; k < known_.size(); ++k) {
      if (known_[k].good && (!known_[k].used || Below(4) == 0) && graph.op(known_[k].id).def != &InputOp())
        outputs.push_back(k);
    }
    for (size_t k : outputs) graph.outputs.push_back({absl::StrCat("y", k), known_[k].type(), false, known_[k].id, {}});
    for (const StateDef& s : program_.states) {
      for (size_t k : outputs) {
        if (known_[k].type() != s.type) continue;
        graph.updates.push_back({s.name, known_[k].id, {}});
        break;
      }
    }
    TableGraph out{.program = WithGradients(outputs), .inputs = inputs_};
    Measure(out);
    return out;
  }

 private:
  struct Known {
    OpId id = {};
    HostTensor exact = {}, wide = {};  // every operation rounded; in f64
    DType dtype = DType::kF32;
    bool good = true;     // finite, moderate and close to f64
    bool exactly = true;  // what it is in f64, by ops that round alike everywhere
    bool used = false;
    TensorType type() const { return {dtype, exact.type.dims}; }
  };

  size_t Below(size_t n) { return static_cast<size_t>(rng_() % n); }
  double Uniform(double lo, double hi) { return lo + (hi - lo) * std::generate_canonical<double, 53>(rng_); }

  HostTensor Drawn(const TensorType& type, double lo, double hi) {
    HostTensor t = HostTensor::Zeros(type);
    if (IsUnsigned(type.dtype) || type.dtype == DType::kBool) lo = std::max(lo, 0.0);
    for (int64_t i = 0; i < type.elements(); ++i) {
      if (type.dtype == DType::kBool) {
        t.set(i, Scalar::Int(type.dtype, static_cast<int64_t>(Below(2))));
      } else if (IsFloat(type.dtype)) {
        t.set(i, Scalar::Float(DType::kF64, Uniform(lo, hi)));
      } else {
        t.set(i,
              Scalar::Int(DType::kI64, static_cast<int64_t>(std::floor(Uniform(std::ceil(lo), std::floor(hi) + 1)))));
      }
    }
    return t;
  }

  void Remember(OpId id, const TensorType& type, HostTensor exact, HostTensor wide, bool exactly) {
    const double e = Apart(exact, wide);
    const bool good = std::max(Largest(exact), Largest(wide)) < 1e4 && e < 100 * Step(type.dtype) + 1e-300;
    known_.push_back({id, std::move(exact), std::move(wide), type.dtype, good || (e == 0 && !IsFloat(type.dtype)),
                      exactly && e == 0 && good});
  }

  size_t Input(const TensorType& type, double lo, double hi) {
    const std::string name = absl::StrCat("x", program_.graphs[0].params.size());
    HostTensor t = Drawn(type, lo, hi);
    const OpId id = AppendInput(program_.graphs[0], ParamKind::kInput, name, type, {});
    inputs_.params[name] = t;
    HostTensor wide = ConvertTo(t, EvalType(type, EvalMode::kDouble).dtype);
    Remember(id, type, std::move(t), std::move(wide), true);
    return known_.size() - 1;
  }

  void AddState(const std::string& name) {
    const TensorType type{dtypes_[Below(dtypes_.size())], {2, 3}};
    program_.states.push_back({.name = name, .type = type});
    HostTensor t = Drawn(type, -1, 1);
    inputs_.states[name] = t;
    const OpId id = AppendState(program_.graphs[0], name, type, {});
    HostTensor wide = ConvertTo(t, EvalType(type, EvalMode::kDouble).dtype);
    Remember(id, type, std::move(t), std::move(wide), true);
  }

  // The op on known values; all elements of a tuple become known. Returns the first, or SIZE_MAX if it does not fit.
  size_t Append(const OpDef& op, const std::vector<size_t>& operands, const std::vector<Attr>& attrs) {
    Graph& graph = program_.graphs[0];
    std::vector<OpId> ids;
    std::vector<TensorPtr> exact, wide;
    bool exactly = op.tol.f32 == Tolerance{}.f32;
    for (size_t k : operands) {
      ids.push_back(known_[k].id);
      exact.push_back(std::make_shared<const HostTensor>(known_[k].exact));
      wide.push_back(std::make_shared<const HostTensor>(known_[k].wide));
      exactly = exactly && known_[k].exactly;
    }
    const absl::StatusOr<OpId> id = AppendChecked(graph, op, ids, attrs, {});
    if (!id.ok()) return SIZE_MAX;
    const Op made = graph.op(*id);
    const auto a = EvaluateOp(graph, made, exact, EvalMode::kExact),
               b = EvaluateOp(graph, made, wide, EvalMode::kDouble);
    EXPECT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    if (!a.ok() || !b.ok()) return SIZE_MAX;
    for (size_t k : operands) known_[k].used = true;
    const size_t first = known_.size();
    for (size_t part = 0; part < made.types.size(); ++part) {
      const Attr index{"index", static_cast<int64_t>(part)};
      const OpId value = made.types.size() == 1 ? *id : *AppendChecked(graph, GetOp(), {*id}, {index}, {});
      Remember(value, made.types[part], *(*a)[part], *(*b)[part], exactly);
    }
    return first;
  }
  size_t Append(absl::string_view op, const std::vector<size_t>& operands, const std::vector<Attr>& attrs = {}) {
    return Append(*FindOp(op), operands, attrs);
  }

  size_t Splat(size_t like, double value) {
    const TensorType type = known_[like].type();
    auto literal = std::make_shared<Literal>();
    literal->values.push_back(Scalar::Of(type.dtype, value));
    HostTensor t = HostTensor::Zeros(type);
    for (int64_t i = 0; i < type.elements(); ++i) t.set(i, literal->values[0]);
    const OpId id = AppendConstant(program_.graphs[0], type, literal, {});
    HostTensor wide = ConvertTo(t, EvalType(type, EvalMode::kDouble).dtype);
    Remember(id, type, std::move(t), std::move(wide), true);
    known_.back().used = true;
    return known_.size() - 1;
  }

  // Whether the row's result may jump when an operand moves.
  static bool Jumps(const OpSample& s) {
    const auto is_float = [](const TensorType& t) { return IsFloat(t.dtype); };
    return std::any_of(s.operands.begin(), s.operands.end(), is_float) &&
           (!s.op->sample.differentiable || !std::all_of(s.results.begin(), s.results.end(), is_float));
  }

  size_t Operand(const OpSample& sample, const TensorType& type) {
    const double lo = sample.op->sample.lo, hi = sample.op->sample.hi;
    std::vector<size_t> usable;
    for (size_t k = 0; k < known_.size(); ++k) {
      if (known_[k].good && (known_[k].exactly || !Jumps(sample)) && known_[k].type().elements() > 0)
        usable.push_back(k);
    }
    if (usable.empty() || Below(3) == 0) return Input(type, lo, hi);
    const size_t from = usable[usable.size() - 1 - Below(std::min<size_t>(usable.size(), 5))];
    size_t k = Fitted(from, type);
    if (k == SIZE_MAX || !known_[k].good || (Jumps(sample) && !known_[k].exactly)) return Input(type, lo, hi);
    k = InRange(k, lo, hi);
    return k == SIZE_MAX || known_[k].type() != type ? Input(type, lo, hi) : k;
  }

  // The value as another type: cast, cut or padded, reshaped.
  size_t Fitted(size_t k, const TensorType& type) {
    if (IsFloat(known_[k].dtype) && !IsFloat(type.dtype) && !known_[k].exactly) return SIZE_MAX;
    if (known_[k].dtype != type.dtype) k = Append("cast", {k}, {Attr{"dtype", type.dtype}});
    if (k == SIZE_MAX || known_[k].type().dims == type.dims) return k;
    const int64_t have = known_[k].type().elements(), want = type.elements();
    if (have != want) {
      k = Append("reshape", {k}, {Attr{"shape", Ints{have}}});
      if (k != SIZE_MAX && have > want)
        k = Append("slice", {k}, {Attr{"start", Ints{have - want}}, Attr{"limit", Ints{have}}});
      if (k != SIZE_MAX && have < want) k = Append("pad", {k}, {Attr{"low", Ints{0}}, Attr{"high", Ints{want - have}}});
    }
    return k == SIZE_MAX ? k : Append("reshape", {k}, {Attr{"shape", Ints(type.dims.begin(), type.dims.end())}});
  }

  // The value kept in [lo, hi], where it is not.
  size_t InRange(size_t k, double lo, double hi) {
    const DType dtype = known_[k].dtype;
    if (dtype == DType::kBool) return k;
    bool below = false, above = false;
    for (int64_t i = 0; i < known_[k].exact.type.elements(); ++i) {
      below = below || known_[k].exact.at(i).AsDouble() < lo;
      above = above || known_[k].exact.at(i).AsDouble() > hi;
    }
    if (!IsFloat(dtype)) lo = std::ceil(lo), hi = std::floor(hi);
    if (below) k = Append("maximum", {k, Splat(k, lo)});
    if (k != SIZE_MAX && above) k = Append("minimum", {k, Splat(k, hi)});
    return k;
  }

  // Gradients of a bounded sum of the float outputs with respect to float inputs, where all rules are there.
  Program WithGradients(const std::vector<size_t>& outputs) {
    Program p = Clone(program_);
    Graph& graph = p.graphs[0];
    Builder b{.program = &p, .graph = &graph};
    Tensor loss;
    for (size_t k : outputs) {
      if (!IsFloat(known_[k].dtype) || known_[k].dtype == DType::kF64) continue;
      const Tensor y = Cast({&b, known_[k].id}, kF32), term = ReduceSum(y * (1.0 / (1.0 + Square(y))));
      loss = loss.valid() ? loss + term : term;
    }
    size_t gradients = 0;
    for (size_t k = 0; k < known_.size() && loss.valid() && gradients < 3; ++k) {
      const Op op = graph.op(known_[k].id);
      if (!IsFloat(known_[k].dtype) || (op.def != &InputOp() && op.def != &StateOp()) || !known_[k].used) continue;
      const Tensor g = Grad(loss, {&b, known_[k].id});
      graph.outputs.push_back({absl::StrCat("d", k), g.type(), false, g.id, {}});
      ++gradients;
    }
    EXPECT_TRUE(b.status().ok()) << b.status();
    PassContext context;
    Program differentiated = Clone(p);
    if (RunPipeline(differentiated, {"canonicalize", "dce", "autograd", "dce"}, context).ok()) return p;
    return Clone(program_);
  }

  EvalInputs Moved() {
    EvalInputs moved = inputs_;
    for (auto* group : {&moved.params, &moved.states}) {
      for (auto& [name, t] : *group) {
        const DType dtype = t.type.dtype;
        if (!IsFloat(dtype)) continue;
        t = ConvertTo(t, DType::kF64);
        for (int64_t i = 0; i < t.type.elements(); ++i)
          t.set(i, Scalar::Float(DType::kF64, t.at(i).f() * (1 + Step(dtype) * Uniform(-1, 1))));
      }
    }
    return moved;
  }

  // What the program gives in f64, and how far rounding and small moves of the inputs carry that. Outputs that they
  // carry far are dropped.
  void Measure(TableGraph& out) {
    Program p = Clone(out.program);
    PassContext context;
    ASSERT_TRUE(RunPipeline(p, {"autograd"}, context).ok());
    const auto run = [&](const EvalInputs& in, EvalMode mode) {
      absl::StatusOr<EvalResult> r = EvaluateGraph(p, p.graphs[0], in, mode);
      EXPECT_TRUE(r.ok()) << r.status();
      return r.ok() ? *std::move(r) : EvalResult{};
    };
    out.want = run(inputs_, EvalMode::kDouble);
    const EvalResult rounded = run(inputs_, EvalMode::kExact);
    const EvalResult moved[] = {run(Moved(), EvalMode::kDouble), run(Moved(), EvalMode::kDouble)};
    const auto spread = [&](std::map<std::string, HostTensor> EvalResult::*group, const std::string& name) {
      const HostTensor& want = (out.want.*group).at(name);
      double most = Apart((rounded.*group).at(name), want);
      for (const EvalResult& m : moved) most = std::max(most, Apart((m.*group).at(name), want));
      return std::isfinite(Largest(want)) ? most : HUGE_VAL;
    };
    Graph& graph = out.program.graphs[0];
    std::erase_if(graph.outputs, [&](const Output& o) {
      const double most = spread(&EvalResult::outputs, o.name), step = Step(o.type.dtype);
      out.allowed[o.name] = IsFloat(o.type.dtype) ? 20 * most + 20 * step : 0;
      return IsFloat(o.type.dtype) ? !(most < 300 * step) : most > 0;
    });
    std::erase_if(graph.updates, [&](const struct Update& u) {
      const DType dtype = out.program.FindState(u.state)->type.dtype;
      const double most = spread(&EvalResult::states, u.state);
      out.allowed[u.state] = IsFloat(dtype) ? 20 * most + 20 * Step(dtype) : 0;
      return IsFloat(dtype) ? !(most < 300 * Step(dtype)) : most > 0;
    });
  }

  std::mt19937_64 rng_;
  const std::vector<DType> dtypes_;
  Program program_ = {};
  EvalInputs inputs_ = {};
  std::vector<Known> known_ = {};
};

}  // namespace fuzz

inline TableGraph MakeTableGraph(uint64_t seed, const std::vector<std::vector<OpSample>>& rows,
                                 absl::Span<const DType> dtypes, int ops) {
  fuzz::Grower grower(seed, dtypes);
  for (int k = 0; k < ops; ++k) grower.Add(rows);
  return grower.Finish();
}

}  // namespace agc::test
