#include "tools/agc/reference.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "passes/manager.h"
#include "tools/agc/model.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

bool IsGiven(const Op& op) { return op.def == &InputOp() || op.def == &StateOp() || op.def == &BlobOp(); }

// The value of element `part` of an op, as an output.
struct Probe {
  OpId op = {};
  size_t part = 0;
  std::string output = {};
};

// Makes the value of every live op an output of the graph; the graph's own outputs go.
absl::StatusOr<std::vector<Probe>> AddProbes(Graph& graph, const std::vector<std::vector<TensorPtr>>& live) {
  std::vector<Probe> probes;
  graph.outputs.clear();
  const size_t ops = graph.ops.size();
  for (size_t i = 0; i < ops; ++i) {
    const OpId id{static_cast<uint32_t>(i)};
    if (live[i].empty() || IsGiven(graph.op(id)) || graph.op(id).def == &GetOp()) continue;
    const Types types = graph.op(id).types;
    for (size_t part = 0; part < types.size(); ++part) {
      OpId value = id;
      if (types.size() > 1) {
        AGC_ASSIGN_OR_RETURN(
            value, AppendChecked(graph, GetOp(), {id}, {Attr{"index", static_cast<int64_t>(part)}}, graph.op(id).loc));
      }
      probes.push_back({id, part, absl::StrCat("v", i, "_", part)});
      graph.outputs.push_back({probes.back().output, types[part], false, value, {}});
    }
  }
  return probes;
}

using Values = std::vector<std::vector<TensorPtr>>;  // by op and element

// Values of the device by op: probes as they ran, given ones and elements of tuples from there.
void TakeProbed(const Graph& graph, const std::vector<Probe>& probes, const Tensors& outputs, Values& values) {
  for (const Probe& p : probes) {
    values[p.op.index][p.part] = std::make_shared<const HostTensor>(*Find(outputs, p.output));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.def != &GetOp() || values[i].empty()) continue;
    const auto index = AttrReader{op.attrs}.integer("index");
    values[i][0] = values[op.operands[0].index][static_cast<size_t>(index)];
  }
}

}  // namespace

absl::StatusOr<Program> ReferenceOf(const Program& program, const CompileOptions& options) {
  Program reference = Clone(program);
  PassContext context = ContextOf({}, options);
  std::vector<std::string> passes;
  if (program.stage == Stage::kTensor) passes = {"add-init", "dce", "autograd", "dce"};
  if (program.stage == Stage::kTensor && options.precision != DType::kF32) passes.emplace_back("decompose");
  if (options.precision != DType::kF32) passes.insert(passes.end(), {"precision", "dce"});
  AGC_RETURN_IF_ERROR(RunPipeline(reference, passes, context));
  return reference;
}

absl::StatusOr<Tensors> InitialStates(const Program& reference, uint64_t seed) {
  EvalInputs in;
  std::map<std::string, HostTensor> values;
  if (const Graph* init = reference.FindGraph(kInitGraph); init != nullptr) {
    for (const GraphParam& p : init->params) {
      in.params[p.name] = HostTensor::Zeros(p.type);
      if (p.name == "seed") in.params[p.name].set(0, Scalar::Int(DType::kU64, static_cast<int64_t>(seed)));
    }
    AGC_ASSIGN_OR_RETURN(EvalResult result, EvaluateGraph(reference, *init, in, EvalMode::kExact));
    values = std::move(result.states);
  }
  Tensors states;
  for (const StateDef& s : reference.states) {
    if (s.hidden) continue;
    const auto it = values.find(s.name);
    states.emplace_back(s.name, it == values.end() ? HostTensor::Zeros(s.type) : it->second);
  }
  return states;
}

EvalInputs InputsOf(const EntryValues& given, const Tensors& states) {
  EvalInputs in;
  for (const auto* list : {&given.inputs, &given.residents, &given.params}) {
    for (const auto& [name, t] : *list) in.params[name] = t;
  }
  for (const auto& [name, t] : states) in.states[name] = t;
  return in;
}

absl::StatusOr<DeviceResult> RunOnDevice(rt::Session& session, const Setting& setting) {
  AGC_RETURN_IF_ERROR(WriteStates(session, setting.states));
  DeviceResult result;
  AGC_ASSIGN_OR_RETURN(result.outputs, RunEntry(session, setting.entry, 1, setting.given));
  AGC_ASSIGN_OR_RETURN(result.states, ReadStates(session));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), setting.entry));
  for (size_t i = 0; i < entry->outputs.size(); ++i) result.outputs[i].second.type = TypeOf(entry->outputs[i]);
  return result;
}

absl::StatusOr<DeviceResult> CompileAndRun(const Program& program, const Setting& setting) {
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileProgram(Clone(program), setting.target, setting.options));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(setting.device, Bundle(std::move(content)).bytes(), true));
  return RunOnDevice(session, setting);
}

absl::StatusOr<std::optional<OffOp>> FirstOffOp(const Program& reference, const Setting& setting,
                                                const Limits& limits) {
  const EvalMode mode = EvaluatorFor(setting.options.numerics);
  Program probed = Clone(reference);
  std::erase_if(probed.graphs, [&](const Graph& g) { return g.name != setting.entry; });
  Graph& graph = probed.graphs[0];
  AGC_ASSIGN_OR_RETURN(Values values, EvaluateOps(probed, graph, InputsOf(setting.given, setting.states), mode));
  const Graph plain = graph;
  AGC_ASSIGN_OR_RETURN(const std::vector<Probe> probes, AddProbes(graph, values));
  AGC_ASSIGN_OR_RETURN(const DeviceResult result, CompileAndRun(probed, setting));
  TakeProbed(plain, probes, result.outputs, values);
  for (const Probe& p : probes) {
    const Op& op = plain.op(p.op);
    std::vector<TensorPtr> operands;
    for (OpId id : op.operands) operands.push_back(values[id.index][0]);
    AGC_ASSIGN_OR_RETURN(const std::vector<TensorPtr> want, EvaluateOp(plain, op, operands, mode));
    Difference d = Compare(absl::StrCat(op.def->name), "evaluator", *values[p.op.index][p.part], *want[p.part], limits);
    if (d.equal) continue;
    return OffOp{std::string(op.def->name), ToString(op.types), ToString(op.loc), op.role, std::move(d)};
  }
  return std::optional<OffOp>();
}

}  // namespace agc::tool
