#include "compiler/export/onnx_export.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/export/onnx_writer.h"
#include "compiler/import/onnx_model.h"
#include "ir/base/status.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/tuple.h"
#include "passes/manager.h"

namespace agc {
namespace {

constexpr int64_t kMostEvaluated = int64_t{1} << 24;  // elements of an op without operands that is written as its value

// A graph on its way: names of values, and what to write to.
struct Exporter {
  const Graph& graph;
  OnnxWriter w = {};
  std::map<std::pair<uint32_t, int64_t>, std::string> names = {};  // by op and element of its tuple
  int fresh = 0;

  std::string Fresh() { return absl::StrCat("v", fresh++); }
  std::string Ints(absl::Span<const int64_t> values) {
    std::string name = Fresh();
    std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    w.Initializer(name, {DType::kI64, {static_cast<int64_t>(values.size())}}, bytes);
    return name;
  }
  std::string Node(absl::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttr>& attrs = {}) {
    std::string name = Fresh();
    w.Node(op, inputs, {name}, attrs);
    return name;
  }
};

// One op being written: its operands' names and attributes.
struct Call : AttrReader {
  Exporter& e;
  const Op& op;
  std::vector<std::string> x = {};
  Call(Exporter& exporter, const Op& o) : AttrReader{o.attrs}, e(exporter), op(o) {}
  const TensorType& type(int k) const { return e.graph.op(op.operands[static_cast<size_t>(k)]).type(); }
};

using Writer = std::string (*)(Call&);
struct Row {
  absl::string_view op = {};    // agc's
  absl::string_view onnx = {};  // an operator of the same operands, without attributes; or `write`
  Writer write = nullptr;
};

std::string Direct(Call& c, absl::string_view onnx) { return c.e.Node(onnx, c.x); }

template <StaticName onnx, StaticName ours, StaticName theirs>
std::string WithFloat(Call& c) {
  return c.e.Node(onnx.text, c.x, {OnnxAttr::Float(theirs.text, c.number(ours.text))});
}
template <StaticName onnx>
std::string WithAxis(Call& c) {
  return c.e.Node(onnx.text, c.x, {OnnxAttr::Int("axis", c.integer("axis"))});
}
template <StaticName onnx>
std::string Reduction(Call& c) {
  std::vector<std::string> x = c.x;
  const Ints& axes = c.ints("axes");
  if (!axes.empty()) x.push_back(c.e.Ints(axes));
  if (axes.empty() && c.type(0).rank() == 0) return c.x[0];
  return c.e.Node(onnx.text, x, {OnnxAttr::Int("keepdims", c.flag("keep_dims") ? 1 : 0)});
}
std::string Cast(Call& c) { return c.e.Node("Cast", c.x, {OnnxAttr::Int("to", onnx::DataTypeOf(c.dtype("dtype")))}); }
std::string NotEqual(Call& c) { return c.e.Node("Not", {Direct(c, "Equal")}); }
std::string Square(Call& c) { return c.e.Node("Mul", {c.x[0], c.x[0]}); }
std::string Rsqrt(Call& c) { return c.e.Node("Reciprocal", {Direct(c, "Sqrt")}); }
std::string Gelu(Call& c) { return c.e.Node("Gelu", c.x, {OnnxAttr::Text("approximate", c.text("approximate"))}); }
std::string Silu(Call& c) { return c.e.Node("Mul", {c.x[0], Direct(c, "Sigmoid")}); }
std::string Same(Call& c) { return c.e.Node("Identity", c.x); }
std::string Reshape(Call& c) {
  return c.e.Node("Reshape", {c.x[0], c.e.Ints(c.ints("shape"))}, {OnnxAttr::Int("allowzero", 1)});
}
std::string Transpose(Call& c) { return c.e.Node("Transpose", c.x, {OnnxAttr::Ints("perm", c.ints("perm"))}); }
std::string Broadcast(Call& c) {
  const Ints& axes = c.ints("axes");
  std::string x = c.x[0];
  if (!axes.empty()) {  // axis k goes to axes[k], with ones between
    Ints shape(c.ints("shape").size(), 1);
    for (size_t k = 0; k < axes.size(); ++k) shape[static_cast<size_t>(axes[k])] = c.type(0).dims[k];
    x = c.e.Node("Reshape", {x, c.e.Ints(shape)}, {OnnxAttr::Int("allowzero", 1)});
  }
  return c.e.Node("Expand", {x, c.e.Ints(c.ints("shape"))});
}
std::string Slice(Call& c) {
  const Ints &start = c.ints("start"), &limit = c.ints("limit");
  Ints axes, stride = c.ints("stride");
  for (size_t k = 0; k < start.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  if (stride.empty()) stride.assign(start.size(), 1);
  return c.e.Node("Slice", {c.x[0], c.e.Ints(start), c.e.Ints(limit), c.e.Ints(axes), c.e.Ints(stride)});
}
std::string Pad(Call& c) {
  Ints pads = c.ints("low");
  pads.insert(pads.end(), c.ints("high").begin(), c.ints("high").end());
  std::vector<std::string> x = {c.x[0], c.e.Ints(pads)};
  if (c.text("mode") == "constant") {
    const DType dtype = c.type(0).dtype;
    std::vector<uint8_t> bytes(static_cast<size_t>(SizeOf(dtype)));
    StoreElement(Scalar::Of(dtype, c.number("value")), bytes.data());
    x.push_back(c.e.Fresh());
    c.e.w.Initializer(x.back(), {dtype, {}}, bytes);
  }
  return c.e.Node("Pad", x, {OnnxAttr::Text("mode", c.text("mode"))});
}
std::string Conv(Call& c) {
  return c.e.Node("Conv", c.x,
                  {OnnxAttr::Ints("strides", c.ints("stride")), OnnxAttr::Ints("pads", c.ints("pad")),
                   OnnxAttr::Ints("dilations", c.ints("dilation")), OnnxAttr::Int("group", c.integer("groups"))});
}
std::vector<OnnxAttr> Window(Call& c) {
  const Ints &window = c.ints("window"), &stride = c.ints("stride");
  std::vector<OnnxAttr> attrs = {OnnxAttr::Ints("kernel_shape", window), OnnxAttr::Ints("pads", c.ints("pad")),
                                 OnnxAttr::Ints("strides", stride.empty() ? window : stride),
                                 OnnxAttr::Int("ceil_mode", c.flag("ceil_mode") ? 1 : 0)};
  if (!c.ints("dilation").empty()) attrs.push_back(OnnxAttr::Ints("dilations", c.ints("dilation")));
  return attrs;
}
std::string MaxPool(Call& c) { return c.e.Node("MaxPool", c.x, Window(c)); }
std::string AvgPool(Call& c) {
  std::vector<OnnxAttr> attrs = Window(c);
  attrs.push_back(OnnxAttr::Int("count_include_pad", c.flag("count_include_pad") ? 1 : 0));
  return c.e.Node("AveragePool", c.x, attrs);
}
template <StaticName onnx>
std::string Extreme(Call& c) {  // i64 in ONNX
  const std::string at =
      c.e.Node(onnx.text, c.x,
               {OnnxAttr::Int("axis", c.integer("axis")), OnnxAttr::Int("keepdims", c.flag("keep_dims") ? 1 : 0)});
  return c.e.Node("Cast", {at}, {OnnxAttr::Int("to", onnx::DataTypeOf(c.op.type().dtype))});
}

// Sorted by agc's name.
// clang-format off
constexpr Row kRows[] = {
    {"abs", "Abs"}, {"acos", "Acos"}, {"acosh", "Acosh"}, {"add", "Add"}, {"argmax", "", Extreme<"ArgMax">}, {"argmin", "", Extreme<"ArgMin">},
    {"asin", "Asin"}, {"asinh", "Asinh"}, {"atan", "Atan"}, {"atanh", "Atanh"}, {"avg_pool1d", "", AvgPool}, {"avg_pool2d", "", AvgPool},
    {"avg_pool3d", "", AvgPool}, {"batch_matmul", "MatMul"}, {"bit_and", "BitwiseAnd"}, {"bit_not", "BitwiseNot"}, {"bit_or", "BitwiseOr"},
    {"bit_xor", "BitwiseXor"}, {"broadcast", "", Broadcast}, {"cast", "", Cast}, {"ceil", "Ceil"}, {"celu", "", WithFloat<"Celu", "alpha", "alpha">},
    {"concat", "", WithAxis<"Concat">}, {"conv1d", "", Conv}, {"conv2d", "", Conv}, {"conv3d", "", Conv}, {"cos", "Cos"}, {"cosh", "Cosh"},
    {"div", "Div"}, {"elu", "", WithFloat<"Elu", "alpha", "alpha">}, {"eq", "Equal"}, {"erf", "Erf"}, {"exp", "Exp"}, {"floor", "Floor"},
    {"ge", "GreaterOrEqual"}, {"gelu", "", Gelu}, {"global_avg_pool", "GlobalAveragePool"}, {"global_max_pool", "GlobalMaxPool"},
    {"gt", "Greater"}, {"hard_swish", "HardSwish"}, {"isinf", "IsInf"}, {"isnan", "IsNaN"}, {"le", "LessOrEqual"},
    {"leaky_relu", "", WithFloat<"LeakyRelu", "slope", "alpha">}, {"log", "Log"}, {"log_softmax", "", WithAxis<"LogSoftmax">},
    {"logical_and", "And"}, {"logical_not", "Not"}, {"logical_or", "Or"}, {"logical_xor", "Xor"}, {"lt", "Less"}, {"matmul", "MatMul"},
    {"max_pool1d", "", MaxPool}, {"max_pool2d", "", MaxPool}, {"max_pool3d", "", MaxPool}, {"maximum", "Max"}, {"minimum", "Min"},
    {"mish", "Mish"}, {"mul", "Mul"}, {"ne", "", NotEqual}, {"neg", "Neg"}, {"pad", "", Pad}, {"pow", "Pow"}, {"prelu", "PRelu"},
    {"reciprocal", "Reciprocal"}, {"reduce_l1", "", Reduction<"ReduceL1">}, {"reduce_l2", "", Reduction<"ReduceL2">},
    {"reduce_max", "", Reduction<"ReduceMax">}, {"reduce_mean", "", Reduction<"ReduceMean">}, {"reduce_min", "", Reduction<"ReduceMin">},
    {"reduce_prod", "", Reduction<"ReduceProd">}, {"reduce_sum", "", Reduction<"ReduceSum">}, {"relu", "Relu"}, {"reshape", "", Reshape},
    {"round", "Round"}, {"rsqrt", "", Rsqrt}, {"select", "Where"}, {"sigmoid", "Sigmoid"}, {"sign", "Sign"}, {"silu", "", Silu}, {"sin", "Sin"},
    {"sinh", "Sinh"}, {"slice", "", Slice}, {"softmax", "", WithAxis<"Softmax">}, {"softplus", "Softplus"}, {"softsign", "Softsign"},
    {"sqrt", "Sqrt"}, {"square", "", Square}, {"stop_gradient", "", Same}, {"sub", "Sub"}, {"take", "", WithAxis<"Gather">},
    {"take_along_axis", "", WithAxis<"GatherElements">}, {"tan", "Tan"}, {"tanh", "Tanh"}, {"transpose", "", Transpose},
};
// clang-format on

const Row* FindRow(absl::string_view op) {
  const auto it = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return it == std::end(kRows) ? nullptr : it;
}

// Ops without operands are values that are known: constants and what is counted.
bool IsKnown(const Op& op) {
  return op.operands.empty() && op.def != &InputOp() && op.def != &StateOp() && op.type().elements() <= kMostEvaluated;
}

bool Writes(const Op& op) {
  return op.def == &InputOp() || op.def == &StateOp() || op.def == &GetOp() || op.def == &TupleOp() || IsKnown(op) ||
         FindRow(op.def->name) != nullptr;
}

absl::Status WriteOp(Exporter& e, OpId id, const std::vector<Weight>& weights) {
  const Op& op = e.graph.op(id);
  std::string& name = e.names[{id.index, 0}];
  if (op.def == &InputOp()) {
    name = op.symbol;
  } else if (op.def == &StateOp()) {
    const auto w = std::find_if(weights.begin(), weights.end(), [&](const Weight& x) { return x.name == op.symbol; });
    if (w == weights.end()) return ErrorAt(op.loc, absl::StrCat("state @", op.symbol, " has no value to export"));
    name = absl::StrCat("@", op.symbol);
    e.w.Initializer(name, w->type, w->bytes);
  } else if (op.def == &TupleOp()) {
    for (size_t k = 0; k < op.operands.size(); ++k) {
      e.names[{id.index, static_cast<int64_t>(k)}] = e.names[{op.operands[k].index, 0}];
    }
  } else if (op.def == &GetOp()) {
    name = e.names[{op.operands[0].index, AttrReader{op.attrs}.integer("index")}];
  } else if (IsKnown(op)) {
    AGC_ASSIGN_OR_RETURN(const std::vector<TensorPtr> value, EvaluateOp(e.graph, op, {}, EvalMode::kExact));
    name = e.Fresh();
    e.w.Initializer(name, value[0]->type, value[0]->bytes);
  } else {
    Call call(e, op);
    for (const OpId operand : op.operands) call.x.push_back(e.names[{operand.index, 0}]);
    const Row* row = FindRow(op.def->name);
    if (row == nullptr) {
      return ErrorAt(op.loc, absl::StrCat(op.def->name, " has no ONNX operator that it could be written as"),
                     absl::StatusCode::kUnimplemented);
    }
    name = row->write != nullptr ? row->write(call) : Direct(call, row->onnx);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ExportOnnx(const Program& original, absl::string_view graph_name,
                                       const std::vector<Weight>& weights) {
  Program program = Clone(original);
  std::erase_if(program.graphs, [&](const Graph& g) { return g.name != graph_name; });
  if (program.graphs.empty()) return absl::InvalidArgumentError(absl::StrCat("the module has no graph @", graph_name));
  if (!program.graphs[0].updates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("graph @", graph_name, " updates states, which ONNX has not"));
  }
  PassContext context;
  std::vector<std::string> passes = {"autograd", "cse", "dce"};
  AGC_RETURN_IF_ERROR(RunPipeline(program, passes, context));
  const auto& ops = program.graphs[0].ops;
  if (!std::all_of(ops.begin(), ops.end(), Writes)) {
    passes = {"decompose", "cse", "dce"};
    AGC_RETURN_IF_ERROR(RunPipeline(program, passes, context));
  }
  const Graph& graph = program.graphs[0];
  Exporter e{.graph = graph};
  for (const GraphParam& p : graph.params) e.w.Input(p.name, p.type);
  for (uint32_t i = 0; i < graph.ops.size(); ++i) AGC_RETURN_IF_ERROR(WriteOp(e, {i}, weights));
  for (const Output& out : graph.outputs) {
    e.w.Node("Identity", {e.names[{out.value.index, 0}]}, {out.name});
    e.w.Output(out.name, out.type);
  }
  return e.w.Model(graph_name, kExportOpset);
}

}  // namespace agc
