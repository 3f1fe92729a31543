// Calls of every row of the op table, as modules that tests compile and run: the row's samples in the dtypes and sizes
// of ir/op_samples.h, and cases by hand for ops whose operands depend on each other.
//   for (const OpModule& m : OpModules(SampleSet::kPairs)) { m.program.graphs[0]; m.cases[0].inputs; }
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "ir/op_samples.h"
#include "test/unit/e2e_tools.h"

namespace agc::test {

struct HandMade {
  std::string op = {};
  std::vector<std::string> shapes = {};
  std::string attrs = {};
  double scale = 1;  // of the row's tolerance: longer sums than the sample's
};

// A graph of an OpModule.
struct OpCase {
  EvalInputs inputs = {};
  double scale = 1;
  SampleSize size = SampleSize::kOrdinary;
  bool own_dtypes = true, by_hand = false;
};

// One op's cases: a graph each. The row's own sample is the first.
struct OpModule {
  const OpDef* op = nullptr;
  Program program = {};
  std::vector<OpCase> cases = {};
};

// clang-format off
inline const HandMade kHandMadeCases[] = {
    {"reduce_var", {"f32[2,3,4]"}, "axes = [0, 2], correction = 1"}, {"reduce_std", {"f32[2,3,4]"}, "axes = [0, 2], correction = 1"},
    {"matmul", {"f32[1,1]", "f32[1,1]"}}, {"matmul", {"f32[1,7]", "f32[7,1]"}}, {"matmul", {"f32[5,1]", "f32[1,5]"}},
    {"matmul", {"f32[33,17]", "f32[17,65]"}, "", 8}, {"matmul", {"f32[1,129]", "f32[129,40]"}, "", 64},
    {"matmul", {"f32[40,129]", "f32[129,1]"}, "", 64}, {"matmul", {"f32[3,2100]", "f32[2100,5]"}, "", 1000},
    {"matmul", {"f32[4,0]", "f32[0,3]"}}, {"matmul", {"f32[0,3]", "f32[3,4]"}}, {"matmul", {"i32[5,9]", "i32[9,3]"}},
    {"batch_matmul", {"f32[1,1,1]", "f32[1,1,1]"}}, {"batch_matmul", {"f32[3,5,7]", "f32[3,7,9]"}, "", 4},
    {"batch_matmul", {"f32[2,3,1,6]", "f32[2,3,6,4]"}, "", 4}, {"batch_matmul", {"f32[2,4,0]", "f32[2,0,3]"}},
    {"conv2d", {"f32[1,1,1,1]", "f32[1,1,1,1]"}}, {"conv2d", {"f32[1,3,7,9]", "f32[5,3,1,1]"}, "", 4},
    {"conv2d", {"f32[2,1,5,5]", "f32[4,1,5,5]"}, "pad = [2, 2, 2, 2]", 8},
    {"conv2d", {"f32[1,2,6,7]", "f32[3,2,3,2]"}, "pad = [1, 0, 2, 1], stride = [2, 3]", 8},
    {"conv2d_input_grad", {"f32[1,3,4,3]", "f32[3,2,3,2]"}, "input = [1, 2, 6, 7], pad = [1, 0, 2, 1], stride = [2, 3]", 8},
    {"conv2d_weight_grad", {"f32[1,2,6,7]", "f32[1,3,4,3]"}, "weight = [3, 2, 3, 2], pad = [1, 0, 2, 1], stride = [2, 3]", 8},
    {"conv2d_weight_grad", {"f32[40,1,9,9]", "f32[40,2,7,7]"}, "weight = [2, 1, 3, 3]", 500},
    {"conv2d", {"f32[1,4,5,6]", "f32[6,2,3,3]"}, "groups = 2, pad = [1, 1, 1, 1]", 4}, {"conv2d", {"f32[2,4,6,6]", "f32[4,1,3,3]"}, "groups = 4, dilation = [2, 1]", 4},
    {"conv2d_input_grad", {"f32[1,4,3,4]", "f32[4,3,3,2]"}, "input = [1, 3, 6, 8], pad = [1, 0, 1, 0], stride = [2, 2], groups = 1", 4},
    {"conv2d_weight_grad", {"f32[2,4,4,4]", "f32[2,6,4,4]"}, "weight = [6, 2, 1, 1], groups = 2", 4},
    {"max_pool2d", {"f32[1,1,2,2]"}, "window = [2, 2]"}, {"max_pool2d", {"f32[2,3,7,9]"}, "window = [3, 3], stride = [2, 1], pad = [1, 1, 0, 2]"},
    {"max_pool_with_index", {"f32[1,2,6,6]"}, "window = [2, 3], stride = [1, 2]"},
    {"avg_pool2d", {"f32[1,1,2,2]"}, "window = [2, 2]"}, {"avg_pool2d", {"f32[2,3,7,9]"}, "window = [3, 2], stride = [2, 1], pad = [1, 1, 1, 0]"},
    {"reduce_sum", {"f32[3,4,5]"}, "axes = [0, 2]", 4}, {"reduce_sum", {"f32[3,4,5]"}, "axes = [1], keep_dims = true", 4},
    {"reduce_sum", {"f32[2,1000]"}, "axes = [1]", 400}, {"reduce_sum", {"f32[4097]"}, "axes = []", 2000},
    {"reduce_sum", {"f32[1]"}, "axes = [0]"}, {"reduce_sum", {"f32[3,0]"}, "axes = [1]"}, {"reduce_sum", {"f32[0,3]"}, "axes = [1]"},
    {"reduce_sum", {"i32[3,70]"}, "axes = [1]"}, {"reduce_mean", {"f32[7,129]"}, "axes = [0, 1]", 4}, {"reduce_mean", {"f32[5,33,2]"}, "axes = [-2]", 4},
    {"reduce_max", {"f32[5,1000]"}, "axes = [1]"}, {"reduce_max", {"i32[7,9]"}, "axes = [0]"}, {"reduce_min", {"f32[9,129]"}, "axes = [1]"},
    {"reduce_prod", {"f32[3,40]"}, "axes = [1]"}, {"reduce_prod", {"f32[2,0]"}, "axes = [1]"},
    {"argmax", {"f32[5,1000]"}, "axis = 1"}, {"argmax", {"f32[40,3]"}, "axis = 0, keep_dims = true"}, {"argmin", {"i32[4,100]"}, "axis = 1"},
    {"argmin", {"f32[2,3,4,5]"}, "axis = -3"}, {"argmax", {"f32[1]"}, "axis = 0"},
    {"softmax", {"f32[2,3,4,5]"}, "axis = 1"}, {"softmax", {"f32[3,1000]"}, "axis = 1"}, {"softmax", {"f32[17]"}, "axis = 0"}, {"softmax", {"f32[4,1]"}, "axis = 1"},
    {"log_softmax", {"f32[2,3,4,5]"}, "axis = 2", 4}, {"log_softmax", {"f32[5,129]"}, "", 4}, {"logsumexp", {"f32[2,3,4]"}, "axis = 0", 4}, {"logsumexp", {"f32[4,257]"}, "axis = 1", 4},
    {"layer_norm", {"f32[2,3,65]", "f32[65]", "f32[65]"}, "", 8}, {"layer_norm", {"f32[5,1000]", "f32[1000]", "f32[1000]"}, "", 16},
    {"cross_entropy", {"f32[33,10]", "i32[33]"}, "", 4}, {"cross_entropy", {"f32[1,1]", "i32[1]"}}, {"mse", {"f32[9,17]", "f32[9,17]"}, "", 4},
    {"take", {"f32[5]", "i32[9]"}}, {"take", {"f32[3,4,5]", "i32[]"}, "axis = 1"}, {"take", {"u8[6,7]", "i32[4,2]"}, "axis = 0"}, {"take", {"f32[4,5]", "i32[0]"}},
    {"one_hot", {"i32[9]"}, "depth = 5"}, {"one_hot", {"u8[3]"}, "depth = 2, dtype = i32"}, {"one_hot", {"i32[]"}, "depth = 7"},
    {"take_along_axis", {"f32[3,4]", "i32[1,9]"}, "axis = 1"}, {"take_along_axis", {"u8[5]", "u8[3]"}, "axis = 0"}, {"gather_nd", {"i32[3,4]", "i32[2,5,2]"}}, {"gather_nd", {"f32[3]", "i32[2,0]"}},
    {"dynamic_update_slice", {"u8[7,3]", "u8[2,3]", "i32[2]"}}, {"dynamic_slice", {"f32[1]", "i32[1]"}, "sizes = [1]"}, {"wrap_index", {"u8[9]"}, "size = 5"},
    {"index_update", {"i32[7]", "i32[9]", "i32[9]"}, "mode = \"add\""}, {"index_update", {"bool[3,5]", "u8[2]", "bool[2,5]"}}, {"scatter_elements", {"f32[5,33]", "i32[5,40]", "f32[5,40]"}, "axis = 1, mode = \"add\"", 8},
    {"scatter_nd", {"f32[4,5]", "i32[3,1]", "f32[3,5]"}}, {"scatter_nd", {"u8[2,2]", "i32[4,2]", "u8[4]"}, "mode = \"min\""},
    {"sort", {"f32[1]"}}, {"sort", {"u8[3,70]"}, "descending = true"}, {"argsort", {"i32[40,3]"}, "axis = 0"}, {"argsort", {"bool[9]"}}, {"top_k", {"f32[2,33]"}, "k = 5, largest = false"}, {"merge_runs", {"f32[2,37]", "i32[2,37]"}, "run = 8"},
    {"random_int", {"u32[2]"}, "stream = 1, shape = [33], lo = 0, hi = 250, dtype = u8"}, {"random_int", {"u32[2]"}, "stream = 1, shape = [5], lo = -2147483648, hi = 2147483648"}, {"random_fold_in", {"u32[2]", "u8[2,3]"}},
    {"concat", {"u8[2,3]", "u8[2,5]", "u8[2,1]"}, "axis = 1"}, {"concat", {"f32[0,3]", "f32[2,3]"}, "axis = 0"}, {"concat", {"i32[4]"}, "axis = 0"},
    {"pad", {"f32[3,4]"}, "low = [1, 0], high = [0, 2], value = -1.5"}, {"pad", {"f32[0,2]"}, "low = [1, 0], high = [1, 0], value = 3"}, {"pad", {"u8[5]"}, "low = [2], high = [1]"},
    {"pad", {"f32[3,4]"}, "low = [3, 1], high = [2, 5], mode = \"reflect\""}, {"pad", {"i32[3,2]"}, "low = [4, 0], high = [0, -1], mode = \"wrap\""}, {"pad", {"u8[4]"}, "low = [2], high = [1], mode = \"edge\""},
    {"pad", {"f32[4]"}, "low = [-1], high = [2], value = 2"}, {"flip", {"u8[33]"}}, {"roll", {"f32[1]"}, "shifts = [3], axes = [0]"}, {"roll", {"f32[3,0]"}, "shifts = [3], axes = [1]"},
    {"tile", {"f32[0,2]"}, "repeats = [2, 2]"}, {"tile", {"f32[]"}, "repeats = [2, 3]"}, {"stack", {"u8[5]", "u8[5]", "u8[5]"}, "axis = -1"}, {"update_slice", {"u8[7]", "u8[7]"}, "start = [0]"},
    {"diagonal", {"f32[5,3]"}, "offset = -2"}, {"diagonal", {"f32[3,5]"}, "offset = 3"}, {"diag_embed", {"f32[1]"}, "offset = -3"}, {"depth_to_space", {"f32[2,12,1,2]"}, "block = 2, mode = \"CRD\""},
    {"argmax", {"i32[5,40]"}, "axis = 1, select_last_index = true"}, {"reduce_any", {"bool[3,100]"}, "axes = [1]"}, {"reduce_all", {"bool[]"}}, {"reduce_var", {"f32[3,129]"}, "axes = [1], correction = 1", 4},
    {"reduce_std", {"f32[40,3]"}, "axes = [0], keep_dims = true", 4}, {"reduce_norm", {"f32[3,70]"}, "p = inf, axes = [1]"}, {"reduce_norm", {"f32[3,5]"}, "p = 1.5, axes = [1]", 4}, {"reduce_log_sum_exp", {"f32[3,5,40]"}, "axes = [0, 2]", 4},
    {"cumsum", {"f32[2,70,3]"}, "axis = 1, reverse = true, exclusive = true", 16}, {"cumsum", {"i32[1100]"}, "axis = 0"}, {"cumprod", {"f32[1,65]"}, "", 8}, {"cummax", {"f32[97,2]"}, "axis = 0"}, {"cummin", {"i32[70]"}, "exclusive = true"},
    {"logcumsumexp", {"f32[70]"}, "reverse = true", 8}, {"linear_recurrence", {"f32[2,75]", "f32[2,75]"}, "reverse = true", 8}, {"prefix_reduce", {"f32[5]", "f32[5]"}, "axis = 0, combiner = \"softmax\"", 8},
    {"einsum", {"f32[3,4]", "f32[4,3]"}, "equation = \"ij,ji->\"", 4}, {"einsum", {"f32[2,3,17]", "f32[2,5,17]"}, "equation = \"bhd,bkd->bhk\"", 4}, {"einsum", {"i32[3,3]"}, "equation = \"ii\""}, {"einsum", {"f32[4]", "f32[3]"}, "equation = \"i,j\""},
    {"dot", {"f32[7]", "f32[7]"}, "", 4}, {"inner", {"f32[]", "f32[3]"}}, {"kron", {"f32[2,2]", "f32[3,1,2]"}}, {"cross", {"i32[3]", "i32[3]"}}, {"tensordot", {"f32[2,3]", "f32[3,2]"}, "axes_a = [], axes_b = []"}, {"trace", {"i32[3,5]"}, "offset = -1"},
    {"slice", {"f32[9,9]"}, "start = [1, 8], limit = [8, 9], stride = [3, 1]"}, {"slice", {"i32[5]"}, "start = [5], limit = [5]"},
    {"transpose", {"f32[1,5]"}, "perm = [1, 0]"}, {"transpose", {"u8[2,3,4,5]"}, "perm = [3, 1, 0, 2]"}, {"transpose", {"bool[33,17]"}, "perm = [1, 0]"},
    {"broadcast", {"f32[]"}, "shape = [3, 4]"}, {"broadcast", {"f32[3,1]"}, "shape = [2, 3, 5]"}, {"broadcast", {"f32[1]"}, "shape = [0]"},
    {"reshape", {"f32[3,4,5]"}, "shape = [12, 5]"}, {"reshape", {"f32[1,1]"}, "shape = []"}, {"reshape", {"u8[7,5]"}, "shape = [5, 7]"},
    {"iota", {}, "dtype = f32, shape = [1025]"}, {"iota", {}, "dtype = u8, shape = [3, 70], axis = 1"}, {"iota", {}, "dtype = i32, shape = [0]"},
    {"random_bits", {"u32[2]"}, "stream = 1, shape = [1]"}, {"random_bits", {"u32[2]"}, "stream = 2, shape = [7, 11]"}, {"random_uniform", {"u32[2]"}, "stream = 5, shape = [1027]"},
    {"cast", {"f32[33]"}, "dtype = i32"}, {"cast", {"f32[9]"}, "dtype = u8"}, {"cast", {"i32[9]"}, "dtype = f32"}, {"cast", {"u8[9]"}, "dtype = f32"}, {"cast", {"i32[9]"}, "dtype = u8"},
    {"cast", {"bool[9]"}, "dtype = f32"}, {"cast", {"f32[9]"}, "dtype = bool"}, {"cast", {"u32[9]"}, "dtype = i32"}, {"cast", {"u8[3]"}, "dtype = i32"}};
// clang-format on

// Which dtypes a target runs.
inline bool Runs(const OpSample& s, absl::Span<const DType> dtypes) {
  const auto known = [&](const TensorType& t) {
    return std::find(dtypes.begin(), dtypes.end(), t.dtype) != dtypes.end();
  };
  return std::all_of(s.operands.begin(), s.operands.end(), known) &&
         std::all_of(s.results.begin(), s.results.end(), known);
}
// All but f64, for which GLSL has no exp, sin and the like; e2e_dtypes_test.cc has its arithmetic.
inline constexpr DType kDeviceDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                          DType::kI32, DType::kI16, DType::kI8,   DType::kU64,
                                          DType::kU32, DType::kU16, DType::kU8,   DType::kBool};

inline void AddCase(const OpSample& s, OpCase c, OpModule& m) {
  const size_t g = m.program.graphs.size();
  m.program.graphs.push_back(GraphOf(s, absl::StrCat("g", g)));
  for (const GraphParam& p : m.program.graphs.back().params) {
    const uint32_t seed = static_cast<uint32_t>(17 * g + c.inputs.params.size() + 1);
    c.inputs.params[p.name] = Random(p.type, s.op->sample.lo, s.op->sample.hi, seed);
  }
  m.cases.push_back(std::move(c));
}

// The status says why the row does not take the call.
inline absl::StatusOr<OpSample> SampleOf(const OpDef& op, const HandMade& h) {
  OpSample s{.op = &op};
  for (const std::string& shape : h.shapes) s.operands.push_back(ParseType(shape).value());
  AGC_ASSIGN_OR_RETURN(s.attrs, ParseAttrs(op, h.attrs));
  Graph scratch;
  std::vector<OpId> operands;
  for (const TensorType& type : s.operands) operands.push_back(AppendInput(scratch, ParamKind::kInput, "x", type, {}));
  AGC_ASSIGN_OR_RETURN(const OpId id, AppendChecked(scratch, op, operands, s.attrs, {}));
  s.attrs.assign(scratch.op(id).attrs.begin(), scratch.op(id).attrs.end());
  s.results = scratch.op(id).types;
  return s;
}

// One module per row that computes; data rows that only stand for what a graph is given have no sample.
inline std::vector<OpModule> OpModules(SampleSet set) {
  std::vector<OpModule> all;
  for (const OpDef* op : AllOps()) {
    if (op->numpy.empty()) continue;
    OpModule m{.op = op};
    m.program.name = std::string(op->name);
    const std::vector<OpSample> samples = SamplesOf(*op, set).value();
    for (const OpSample& s : samples) {
      if (!Runs(s, kDeviceDTypes)) continue;
      AddCase(s, {.scale = s.growth, .size = s.size, .own_dtypes = s.dtype.empty()}, m);
    }
    for (const HandMade& h : kHandMadeCases) {
      if (h.op != op->name) continue;
      const absl::StatusOr<OpSample> s = SampleOf(*op, h);
      EXPECT_TRUE(s.ok()) << h.op << " of " << absl::StrJoin(h.shapes, ", ") << ": " << s.status();
      if (s.ok()) AddCase(*s, {.scale = h.scale, .by_hand = true}, m);
    }
    if (!m.cases.empty()) all.push_back(std::move(m));
  }
  return all;
}

inline double ToleranceOf(const OpDef& op, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-12;
    case DType::kF32:
      return op.tol.f32;
    case DType::kF16:
      return op.tol.f16;
    case DType::kBF16:
      return op.tol.bf16;
    default:
      return 0;
  }
}

// The first output that is further from the f64 evaluator than the row allows, or "".
inline std::string OpDifference(const OpModule& m, size_t g, const EvalResult& got) {
  const Graph& graph = m.program.graphs[g];
  const absl::StatusOr<EvalResult> want = EvaluateGraph(m.program, graph, m.cases[g].inputs, EvalMode::kDouble);
  if (!want.ok()) return want.status().ToString();
  for (const Output& out : graph.outputs) {
    const double limit = ToleranceOf(*m.op, out.type.dtype) * m.cases[g].scale;
    const auto it = got.outputs.find(out.name);
    if (it == got.outputs.end()) return absl::StrCat(out.name, " is missing");
    const double error = ErrorOf(it->second, want->outputs.at(out.name));
    if (error <= limit) continue;
    std::string operands;
    for (const GraphParam& p : graph.params) absl::StrAppend(&operands, " ", ToString(p.type));
    return absl::StrCat(m.op->name, operands, " -> ", ToString(out.type), ": error ", error, ", allowed ", limit);
  }
  return "";
}

}  // namespace agc::test
