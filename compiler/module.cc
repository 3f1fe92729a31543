#include "compiler/module.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/build.h"
#include "ir/derivative.h"
#include "ir/text/text.h"
#include "ir/trace.h"

namespace agc {
namespace {

// Traces are numbered through the process, so that a handle kept from one is recognised in every other.
uint32_t NextGeneration() {
  static std::atomic<uint32_t> last = 0;
  return ++last;
}

Value Handle(Builder& b, OpId id) { return {&b, id, b.generation, false}; }

}  // namespace

Tensor State(Builder& b, absl::string_view name, TensorType type, Init init, bool trainable, Loc loc) {
  if (b.graph == nullptr) return Poison(b, loc, absl::StrCat("state @", name, ": its trace is over"));
  const StateDef* known = b.program->FindState(name);
  if (known == nullptr) {
    b.program->states.push_back(
        {.name = std::string(name), .type = type, .init = init, .trainable = trainable, .loc = loc});
  } else if (!(known->type == type)) {
    return Poison(b, loc,
                  absl::StrCat("state @", name, " is ", ToString(known->type), ", declared again as ", ToString(type)));
  }
  return Handle(b, AppendState(*b.graph, name, type, loc));
}

Tensor State(Tensor like, absl::string_view name, TensorType type, Init init, bool trainable, Loc loc) {
  Builder* b = Live(like, absl::StrCat("state @", name, ": the tensor whose trace is to read it"), loc);
  return b == nullptr ? Poisoned(like) : State(*b, name, std::move(type), init, trainable, loc);
}

std::vector<Tensor> Trainable(Tensor like, absl::string_view prefix, Loc loc) {
  Builder* b = Live(like, "trainable: the tensor whose trace is meant", loc);
  if (b == nullptr) return {Poisoned(like)};
  std::vector<Tensor> states;
  for (const StateDef& s : b->program->states) {
    const OpId read = b->graph->FindState(s.name);
    if (s.trainable && read.valid() && absl::StartsWith(s.name, prefix)) states.push_back(Handle(*b, read));
  }
  if (!states.empty()) return states;
  return {Poison(*b, loc,
                 absl::StrCat("graph @", b->graph->name, " reads no trainable state",
                              prefix.empty() ? "" : absl::StrCat(" whose name starts with ", prefix)))};
}

void Update(Tensor like, absl::string_view state, Tensor value, Loc loc) {
  Builder* b = Live(like, absl::StrCat("update of @", state, ": the tensor whose trace is meant"), loc);
  if (b != nullptr) Update(*b, state, value, loc);
}

void Update(Builder& b, absl::string_view state, Tensor value, Loc loc) {
  if (!Live(value, b, absl::StrCat("update of @", state, ": the new value"), loc)) return;
  const StateDef* def = b.program->FindState(state);
  if (def == nullptr) {
    Poison(b, loc, absl::StrCat("update: there is no state @", state));
  } else if (!(def->type == value.type())) {
    Poison(b, loc,
           absl::StrCat("update: @", state, " is ", ToString(def->type), ", its new value ", ToString(value.type())));
  } else if (std::any_of(b.graph->updates.begin(), b.graph->updates.end(),
                         [&](const struct agc::Update& u) { return u.state == state; })) {
    Poison(b, loc, absl::StrCat("update: @", state, " is updated twice in graph @", b.graph->name));
  } else {
    b.graph->updates.push_back({std::string(state), value.id, loc});
  }
}

Tensor Trace::Given(ParamKind kind, absl::string_view name, TensorType type, Loc loc) {
  if (builder_.graph == nullptr) return Poison(builder_, loc, absl::StrCat("parameter %", name, ": its trace is over"));
  const auto same = [&](const GraphParam& p) { return p.name == name; };
  if (std::any_of(builder_.graph->params.begin(), builder_.graph->params.end(), same)) {
    return Poison(builder_, loc,
                  absl::StrCat("parameter %", name, " is declared twice in graph @", builder_.graph->name));
  }
  return Handle(builder_, AppendInput(*builder_.graph, kind, name, std::move(type), loc));
}

Tensor Trace::Input(absl::string_view name, DType dtype, Dims dims, Loc loc) {
  return Given(ParamKind::kInput, name, {dtype, std::move(dims)}, loc);
}
Tensor Trace::Resident(absl::string_view name, DType dtype, Dims dims, Loc loc) {
  return Given(ParamKind::kResident, name, {dtype, std::move(dims)}, loc);
}
Tensor Trace::Param(absl::string_view name, DType dtype, Loc loc) {
  return Given(ParamKind::kParam, name, {dtype, {}}, loc);
}

Tensor Trace::State(absl::string_view name, TensorType type, Init init, Loc loc) {
  return agc::State(builder_, name, std::move(type), init, /*trainable=*/false, loc);
}

Tensor Trace::Counter(absl::string_view name, Loc loc) {
  const Tensor now = State(name, {DType::kI32, {}}, {}, loc);
  Update(name, Add(now, ScalarLike(now, 1, loc), loc), loc);
  return now;
}

void Trace::Update(absl::string_view state, Tensor value, Loc loc) { agc::Update(builder_, state, value, loc); }

int64_t Trace::NewStream() { return builder_.graph == nullptr ? 0 : builder_.graph->random_streams++; }

void Trace::AddOutput(absl::string_view name, Tensor value, bool each_step, Loc loc) {
  if (!Live(value, builder_, absl::StrCat("output %", name), loc)) return;
  const auto same = [&](const agc::Output& o) { return o.name == name; };
  if (std::any_of(builder_.graph->outputs.begin(), builder_.graph->outputs.end(), same)) {
    Poison(builder_, loc, absl::StrCat("output %", name, " is declared twice in graph @", builder_.graph->name));
    return;
  }
  builder_.graph->outputs.push_back({std::string(name), value.type(), each_step, value.id, loc});
}
void Trace::Output(absl::string_view name, Tensor value, Loc loc) { AddOutput(name, value, false, loc); }
void Trace::OutputEachStep(absl::string_view name, Tensor value, Loc loc) { AddOutput(name, value, true, loc); }

Tensor Trace::Iota(DType dtype, int64_t n, Loc loc) { return agc::Iota(builder_, dtype, {n}, 0, loc); }
Tensor Trace::Full(DType dtype, Dims dims, double value, Loc loc) {
  return agc::Full(builder_, {dtype, std::move(dims)}, value, loc);
}

Module::Module(absl::string_view name) : program_(std::make_unique<Program>()) { program_->name = std::string(name); }

void Module::Graph(absl::string_view name, absl::FunctionRef<void(Trace&)> fn, Loc loc) {
  if (program_->FindGraph(name) != nullptr) {
    errors_.push_back(ErrorAt(loc, absl::StrCat("graph @", name, " is traced twice")));
    return;
  }
  agc::Graph graph;
  graph.name = std::string(name);
  if (IsGradientFunction(graph)) {
    errors_.push_back(ErrorAt(loc, absl::StrCat("graph @", name,
                                                ": names that end in .vjp are for gradients of custom "
                                                "functions, choose another")));
    return;
  }
  graph.loc = loc;
  traces_.push_back(std::make_unique<Trace>());
  Builder& builder = traces_.back()->builder_;
  builder.program = program_.get();
  builder.graph = &graph;
  builder.generation = NextGeneration();
  {
    const TraceScope scope(builder);
    fn(*traces_.back());
  }
  builder.generation = NextGeneration();  // handles that outlive the trace are stale from here on
  builder.graph = nullptr;
  program_->graphs.push_back(std::move(graph));
}

absl::Status Module::status() const {
  std::vector<absl::Status> all = errors_;
  for (const std::unique_ptr<Trace>& t : traces_)
    all.insert(all.end(), t->builder_.errors.begin(), t->builder_.errors.end());
  if (all.empty()) return absl::OkStatus();
  const auto each = [](std::string* out, const absl::Status& s) { absl::StrAppend(out, s.message()); };
  return absl::Status(all[0].code(), absl::StrJoin(all, "\n", each));
}

std::string Module::ToText() const { return Print(*program_, {.locations = true}); }

}  // namespace agc
