// lower-to-nests: primitive -> nest. Every group becomes one nest, the values between groups rows of the storage table,
// and the graph's body a list of `run` steps.
//   %0: f32[8] = add %x, %y  group 0        buffer %x: f32[8] kind input ...
//   %1: f32[8] = exp %0  group 0      =>    nest @k0_exp(%x0: f32[8], %x1: f32[8]) -> (%y0: f32[8]) axes i0:8 {
//   output %out = %1                          store %y0[i0] = exp(%x0[i0] + %x1[i0])  }
//                                           run @k0_exp(%x, %y) -> (%out)
// Params are read at ring slot run.index, each_step outputs stored there. The kernel that counts run.index up also
// copies the params of the step to temporaries, which all others read: they need not wait for the index, nor the index
// for them. Where an each_step output follows from a param that would make a circle, and every kernel reads the ring.
// An update's value goes to a temporary and is copied to its state by the last steps; `alias` removes the copies that
// need not be. What has no elements is neither computed nor copied: canonicalize has made it a constant, and its output
// or state keeps a row of the table alone.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/lowering.h"
#include "ir/op_def.h"
#include "passes/fusion_cost.h"
#include "passes/groups.h"
#include "passes/pass.h"

namespace agc {
namespace {

TensorType Ring(const TensorType& type, int64_t slots) {
  TensorType ring = type;
  ring.dims.insert(ring.dims.begin(), slots);
  return ring;
}

class GraphLowering {
 public:
  GraphLowering(Program& program, Graph& graph, const PassContext& context)
      : program_(program), graph_(graph), context_(context) {}

  absl::Status Run() {
    AGC_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(graph_));
    FindReaders();
    for (const GraphParam& p : graph_.params) AddParam(p);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) AddOutput(i);
    const auto counts = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return CountsAlone(g); });
    if (counts != groups.end()) AGC_RETURN_IF_ERROR(LowerCounter(*counts));
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group != counts) AGC_RETURN_IF_ERROR(LowerGroup(*group));
    }
    AGC_RETURN_IF_ERROR(LowerGiven());
    AddUpdates();
    graph_.buffers = std::move(buffers_);
    graph_.steps = std::move(steps_);
    for (GraphParam& p : graph_.params) p.op = {};
    for (Output& out : graph_.outputs) out.value = {};
    for (Update& update : graph_.updates) update.value = {};
    graph_.ops.clear();
    return absl::OkStatus();
  }

 private:
  int32_t AddBuffer(Buffer buffer) {
    buffer.stored = buffer.type.dtype;
    buffers_.push_back(std::move(buffer));
    return static_cast<int32_t>(buffers_.size() - 1);
  }

  void AddParam(const GraphParam& p) {
    static constexpr BufferKind kKinds[] = {BufferKind::kInput, BufferKind::kResident, BufferKind::kParam};
    Buffer row{
        .name = p.name, .type = p.type, .kind = kKinds[static_cast<int>(p.kind)], .symbol = p.name, .loc = p.loc};
    if (p.kind == ParamKind::kParam) {
      row.ring = true;
      row.type = Ring(p.type, context_.ring);
    }
    source_[{p.op, 0}] = AddBuffer(std::move(row));
  }

  void AddOutput(size_t i) {
    const Output& out = graph_.outputs[i];
    Buffer row{.name = absl::StrCat("out.", out.name),
               .type = out.type,
               .kind = BufferKind::kOutput,
               .symbol = out.name,
               .loc = out.loc};
    row.each_step = row.ring = out.each_step;
    if (out.each_step) row.type = Ring(out.type, context_.ring);
    sinks_[Resolve(graph_, out.value)].push_back(AddBuffer(std::move(row)));
  }

  int32_t StateBuffer(const std::string& state) {
    const auto it = states_.find(state);
    if (it != states_.end()) return it->second;
    const TensorType& type = program_.FindState(state)->type;
    return states_[state] = AddBuffer(
               {.name = absl::StrCat("state.", state), .type = type, .kind = BufferKind::kState, .symbol = state});
  }

  // The buffer that a value is read from; makes rows for states and constants on first use.
  absl::StatusOr<int32_t> SourceOf(ValueRef v) {
    const auto it = source_.find(v);
    if (it != source_.end()) return it->second;
    const Op& op = graph_.op(v.op);
    if (op.def == &StateOp()) return source_[v] = StateBuffer(op.symbol);
    if (op.def == &ConstantOp()) return source_[v] = ConstantBuffer(op);
    return ErrorAt(op.loc, absl::StrCat(op.def->name, " ", op.symbol, ": cannot be read on the device yet"),
                   absl::StatusCode::kUnimplemented);
  }

  int32_t ConstantBuffer(const Op& op) {
    const Literal& literal = *AttrReader{op.attrs}.literal("value");
    Buffer row{.name = absl::StrCat("c", constants_++), .type = op.type(), .kind = BufferKind::kConst, .loc = op.loc};
    const int64_t size = SizeOf(op.type().dtype);
    row.data.resize(static_cast<size_t>(op.type().bytes()));
    for (int64_t i = 0; i < op.type().elements(); ++i) StoreElement(literal.at(i), row.data.data() + i * size);
    return AddBuffer(std::move(row));
  }

  void FindReaders() {
    for (const Update& update : graph_.updates) updated_.insert(Resolve(graph_, update.value));
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (graph_.ops[i].def == &GetOp()) continue;
      for (OpId operand : graph_.ops[i].operands)
        readers_[Resolve(graph_, operand)].push_back({static_cast<uint32_t>(i)});
    }
  }

  bool NeedsTemp(ValueRef v, const Group& group) {
    const auto outside = [&](OpId id) { return !std::binary_search(group.ops.begin(), group.ops.end(), id); };
    const std::vector<OpId>& readers = readers_[v];
    return updated_.count(v) != 0 || std::any_of(readers.begin(), readers.end(), outside);
  }

  // The group is the counter of run.index and nothing else, and may read the params for all others.
  bool CountsAlone(const Group& group) const {
    if (group.ops.size() != 1 || ResultsFollowFromParams()) return false;
    return std::any_of(graph_.updates.begin(), graph_.updates.end(), [&](const Update& u) {
      return u.state == kRunIndex && Resolve(graph_, u.value).op == group.ops[0];
    });
  }

  bool ResultsFollowFromParams() const {
    std::vector<bool> follows(graph_.ops.size());
    for (const GraphParam& p : graph_.params) follows[p.op.index] = p.kind == ParamKind::kParam;
    for (size_t i = 0; i < follows.size(); ++i) {
      for (OpId operand : graph_.ops[i].operands) follows[i] = follows[i] || follows[operand.index];
    }
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](const Output& out) { return out.each_step && follows[out.value.index]; });
  }

  absl::Status LowerCounter(const Group& group) {
    const ValueRef count = group.outputs[0];
    std::vector<ValueRef> outputs = {count};
    for (const GraphParam& p : graph_.params) {
      if (p.kind == ParamKind::kParam && readers_.count({p.op, 0}) != 0) outputs.push_back({p.op, 0});
    }
    std::vector<int32_t> temps;
    for (ValueRef v : outputs)
      temps.push_back(
          AddBuffer({.name = absl::StrCat("b", temps_++), .type = TypeOf(graph_, v), .loc = graph_.op(v.op).loc}));
    AGC_RETURN_IF_ERROR(AddNest(outputs, temps, [&](OpId id) { return id == count.op; }));
    for (size_t i = 0; i < outputs.size(); ++i) source_[outputs[i]] = temps[i];
    return absl::OkStatus();
  }

  absl::Status LowerGroup(const Group& group) {
    std::vector<ValueRef> outputs;  // one per stored buffer
    std::vector<int32_t> targets;
    for (ValueRef v : group.outputs) {
      if (NeedsTemp(v, group)) {
        const Op& op = graph_.op(v.op);
        const int32_t temp = AddBuffer({.name = absl::StrCat("b", temps_++), .type = TypeOf(graph_, v), .loc = op.loc});
        source_[v] = temp;
        outputs.push_back(v);
        targets.push_back(temp);
      }
      for (int32_t sink : sinks_[v]) {
        outputs.push_back(v);
        targets.push_back(sink);
      }
      sinks_.erase(v);
    }
    return AddNest(outputs, targets,
                   [&](OpId id) { return std::binary_search(group.ops.begin(), group.ops.end(), id); });
  }

  // Outputs whose value the graph was given: a nest that copies.
  absl::Status LowerGiven() {
    for (const auto& [v, sinks] : std::map<ValueRef, std::vector<int32_t>>(sinks_)) {
      if (TypeOf(graph_, v).elements() == 0) continue;
      for (int32_t sink : sinks) AGC_RETURN_IF_ERROR(AddNest({v}, {sink}, [](OpId) { return false; }));
    }
    for (const Update& update : graph_.updates) {
      const ValueRef v = Resolve(graph_, update.value);
      if (TypeOf(graph_, v).elements() == 0) {
        updated_from_.push_back(-1);
        continue;
      }
      const auto it = source_.find(v);
      if (it != source_.end() && buffers_[it->second].kind == BufferKind::kTemp) {
        updated_from_.push_back(it->second);
        continue;  // anything else, another state say, may change before the copy: it goes through a temporary
      }
      const int32_t temp = AddBuffer({.name = absl::StrCat("b", temps_++), .type = TypeOf(graph_, v)});
      AGC_RETURN_IF_ERROR(AddNest({v}, {temp}, [](OpId) { return false; }));
      updated_from_.push_back(temp);
    }
    return absl::OkStatus();
  }

  void AddUpdates() {
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      const Update& update = graph_.updates[i];
      const int32_t from = updated_from_[i];
      if (from < 0) continue;
      steps_.push_back({.kind = StepKind::kCopy,
                        .args = {from, StateBuffer(update.state)},
                        .label = absl::StrCat("update ", update.state),
                        .origin = update.loc});
    }
  }

  absl::Status AddNest(const std::vector<ValueRef>& outputs, const std::vector<int32_t>& targets,
                       absl::FunctionRef<bool(OpId)> inlined) {
    AGC_ASSIGN_OR_RETURN(LoweredNest low, LowerToNest(graph_, outputs, inlined));
    Step step{.kind = StepKind::kRun, .callee = static_cast<uint32_t>(program_.nests.size())};
    for (ValueRef v : low.inputs) {
      AGC_ASSIGN_OR_RETURN(const int32_t source, SourceOf(v));
      step.args.push_back(source);
    }
    step.args.insert(step.args.end(), targets.begin(), targets.end());
    FormFittingContractions(low.nest, context_.target);
    AddRings(low.nest, step.args);
    low.nest.name = absl::StrCat("k", program_.nests.size(), "_", low.nest.label);
    step.label = low.nest.name;
    step.origin = low.nest.loc;
    program_.nests.push_back(std::move(low.nest));
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  // Ring buffers get their slot as first index: run.index, read from its state.
  void AddRings(Nest& nest, std::vector<int32_t>& args) {
    std::vector<bool> ring;
    bool any = false;
    for (int32_t b : args) {
      ring.push_back(buffers_[b].ring);
      any = any || buffers_[b].ring;
    }
    if (!any) return;
    size_t inputs = 0;
    while (inputs < nest.params.size() && !nest.params[inputs].written) ++inputs;
    const int32_t run_index = StateBuffer(std::string(kRunIndex));
    auto at = static_cast<uint32_t>(std::find(args.begin(), args.begin() + static_cast<long>(inputs), run_index) -
                                    args.begin());
    if (at == inputs) InsertInput(nest, args, ring, at, run_index);
    const Expr slot = ToIndex(nest.pool->Load(at, {}, DType::kU32), 0, context_.ring - 1);
    for (size_t i = 0; i < nest.params.size(); ++i) {
      if (ring[i]) nest.params[i].type = buffers_[args[i]].type;
    }
    struct Context {
      const std::vector<bool>* ring;
      Expr slot;
    } context{&ring, slot};
    Substitution s{.pool = nest.pool.get()};
    s.context = &context;
    s.hooks.emplace_back(ExprKind::kLoad, [](void* c, Expr original, Index new_args) -> Expr {
      const auto& ctx = *static_cast<Context*>(c);
      if (!(*ctx.ring)[original.node().ref]) return Rebuild(original, new_args);
      std::vector<Expr> index = {ctx.slot};
      index.insert(index.end(), new_args.begin(), new_args.end() - 1);
      return ctx.slot.pool->Load(original.node().ref, index, original.dtype(), 1, new_args.back());
    });
    for (NestStage& stage : nest.stages) {
      for (ExprId& id : stage.values) id = Substitute(nest.at(id), s).id;
      if (stage.when.valid()) stage.when = Substitute(nest.at(stage.when), s).id;
    }
    for (NestStore& store : nest.stores) {
      store.value = Substitute(nest.at(store.value), s).id;
      if (ring[store.param]) store.index.insert(store.index.begin(), slot.id);
    }
  }

  // A new input parameter after the existing ones; outputs move up by one.
  void InsertInput(Nest& nest, std::vector<int32_t>& args, std::vector<bool>& ring, uint32_t at, int32_t buffer) {
    nest.params.insert(nest.params.begin() + at, {absl::StrCat("x", at), buffers_[buffer].type, false});
    args.insert(args.begin() + at, buffer);
    ring.insert(ring.begin() + at, false);
    for (NestStore& store : nest.stores) ++store.param;
  }

  Program& program_;
  Graph& graph_;
  const PassContext& context_;
  std::vector<Buffer> buffers_ = {};
  std::vector<Step> steps_ = {};
  std::map<ValueRef, std::vector<OpId>> readers_ = {};
  std::set<ValueRef> updated_ = {};
  std::map<ValueRef, int32_t> source_ = {};
  std::map<ValueRef, std::vector<int32_t>> sinks_ = {};
  std::map<std::string, int32_t> states_ = {};
  std::vector<int32_t> updated_from_ = {};  // by update: the temporary that holds the new value; -1: no elements
  int temps_ = 0, constants_ = 0;
};

}  // namespace

absl::StatusOr<bool> LowerToNests(Program& program, PassContext& context) {
  for (const Graph& graph : program.graphs) {
    const bool plain =
        std::none_of(graph.params.begin(), graph.params.end(),
                     [](const GraphParam& p) { return p.kind == ParamKind::kParam; }) &&
        std::none_of(graph.outputs.begin(), graph.outputs.end(), [](const Output& out) { return out.each_step; });
    if (!plain && program.FindState(kRunIndex) == nullptr) {
      return ErrorAt(graph.loc, absl::StrCat("graph @", graph.name, " has params or each_step outputs and there is no ",
                                             "state ", kRunIndex, " that counts steps; run add-run-index first"));
    }
  }
  for (Graph& graph : program.graphs) AGC_RETURN_IF_ERROR(GraphLowering(program, graph, context).Run());
  program.stage = Stage::kNest;
  return true;
}

}  // namespace agc
