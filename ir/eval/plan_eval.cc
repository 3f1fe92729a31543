#include "ir/eval/plan_eval.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "ir/eval/nest_eval.h"

namespace agc {
namespace {

constexpr uint8_t kPoison = 0xff;  // NaN in every float dtype

TensorType Slot(const TensorType& ring) { return {ring.dtype, Dims(ring.dims.begin() + 1, ring.dims.end())}; }

int64_t RunIndex(const Program& program, const EvalInputs& inputs) {
  const absl::StatusOr<HostTensor> t = StartOfState(program, "run.index", inputs, EvalMode::kExact);
  return t.ok() && t->type.elements() > 0 ? t->at(0).i() : 0;
}

// A ring whose every slot holds `value`.
HostTensor FillRing(const HostTensor& value, const TensorType& ring) {
  HostTensor all = HostTensor::Zeros({value.type.dtype, ring.dims});
  for (int64_t slot = 0; slot < ring.dims[0]; ++slot) {
    std::copy(value.bytes.begin(), value.bytes.end(), all.bytes.begin() + slot * value.type.bytes());
  }
  return all;
}

// What a buffer holds before the first step, in its logical type; nothing for those that steps fill.
absl::StatusOr<std::optional<HostTensor>> StartOf(const Program& program, const Buffer& row, const EvalInputs& inputs,
                                                  EvalMode mode) {
  switch (row.kind) {
    case BufferKind::kInput:
    case BufferKind::kResident:
    case BufferKind::kParam: {
      const auto given = inputs.params.find(row.symbol);
      const std::string what = absl::StrCat(Name(row.kind), " %", row.symbol);
      if (row.ring && (given == inputs.params.end() || given->second.type.dims != row.type.dims)) {
        AGC_ASSIGN_OR_RETURN(const HostTensor one,
                             GivenTensor(inputs.params, row.symbol, Slot(row.type), what, row.loc, mode));
        return FillRing(one, row.type);
      }
      AGC_ASSIGN_OR_RETURN(HostTensor t, GivenTensor(inputs.params, row.symbol, row.type, what, row.loc, mode));
      return t;
    }
    case BufferKind::kState: {
      AGC_ASSIGN_OR_RETURN(HostTensor t, StartOfState(program, row.symbol, inputs, mode));
      return t;
    }
    case BufferKind::kConst: {
      HostTensor t{row.type, row.data};
      if (static_cast<int64_t>(t.bytes.size()) != row.type.bytes()) {
        return absl::InternalError(
            absl::StrCat("const buffer %", row.name, " has ", t.bytes.size(), " bytes, its type ", ToString(row.type)));
      }
      return ConvertTo(t, EvalType(row.type, mode).dtype);
    }
    case BufferKind::kCounter:
      return HostTensor::Zeros(row.type);
    case BufferKind::kOutput:
    case BufferKind::kTemp:
    case BufferKind::kScratch:
      break;
  }
  return std::nullopt;
}

// The slice of an each_step output that this step wrote; other values as they are.
HostTensor Visible(const Buffer& row, HostTensor value, int64_t run_index) {
  if (!row.ring) return value;
  HostTensor slice = HostTensor::Zeros({value.type.dtype, Slot(row.type).dims});
  const int64_t slot = row.type.dims[0] > 0 ? run_index % row.type.dims[0] : 0;
  const auto begin = value.bytes.begin() + slot * slice.type.bytes();
  std::copy(begin, begin + slice.type.bytes(), slice.bytes.begin());
  return slice;
}

size_t Root(const Graph& graph, size_t buffer) {
  for (size_t hops = 0; graph.buffers[buffer].alias >= 0 && hops < graph.buffers.size(); ++hops) {
    buffer = static_cast<size_t>(graph.buffers[buffer].alias);
  }
  return buffer;
}

absl::Status StepError(const Step& step, size_t number, absl::string_view message,
                       absl::StatusCode code = absl::StatusCode::kInternal) {
  return ErrorAt(
      step.origin,
      absl::StrCat("step ", number, step.label.empty() ? "" : absl::StrCat(" (", step.label, ")"), ": ", message),
      code);
}

// ---------------------------------------------------------------- nest stage

absl::StatusOr<EvalResult> EvaluateNests(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         EvalMode mode) {
  std::vector<HostTensor> tensors(graph.buffers.size());
  for (size_t b = 0; b < tensors.size(); ++b) {
    AGC_ASSIGN_OR_RETURN(std::optional<HostTensor> start, StartOf(program, graph.buffers[b], inputs, mode));
    if (Root(graph, b) != b) continue;
    if (start.has_value()) {
      tensors[b] = *std::move(start);
    } else {
      tensors[b] = HostTensor::Zeros(EvalType(graph.buffers[b].type, mode));
      std::fill(tensors[b].bytes.begin(), tensors[b].bytes.end(), kPoison);
    }
  }
  const auto at = [&](int32_t b) -> HostTensor& { return tensors[Root(graph, static_cast<size_t>(b))]; };
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const Step& step = graph.steps[s];
    if (step.kind == StepKind::kCopy) {
      at(step.args[1]) = at(step.args[0]);
    } else if (step.kind == StepKind::kRun) {
      std::vector<HostTensor*> args;
      for (int32_t b : step.args) args.push_back(&at(b));
      AGC_RETURN_IF_ERROR(RunNest(program.nests[step.callee], args, mode));
    } else if (step.kind != StepKind::kBarrier) {
      return StepError(step, s, "this kind of step has no place at the nest stage");
    }
  }
  EvalResult result;
  const int64_t run_index = RunIndex(program, inputs);
  for (size_t b = 0; b < tensors.size(); ++b) {
    const Buffer& row = graph.buffers[b];
    if (row.kind == BufferKind::kOutput)
      result.outputs[row.symbol] = Visible(row, at(static_cast<int32_t>(b)), run_index);
    if (row.kind == BufferKind::kState) result.states[row.symbol] = at(static_cast<int32_t>(b));
  }
  return result;
}

// ---------------------------------------------------------------- loop and plan stages

class StepRunner {
 public:
  StepRunner(const Program& program, const Graph& graph, const KernelOptions& options)
      : program_(program), graph_(graph), options_(options), planned_(program.stage == Stage::kPlan) {}

  absl::Status Start(const EvalInputs& inputs) {
    AGC_RETURN_IF_ERROR(planned_ ? PlaceInArenas() : PlaceAlone());
    FindLives();
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      AGC_ASSIGN_OR_RETURN(const std::optional<HostTensor> start,
                           StartOf(program_, graph_.buffers[b], inputs, EvalMode::kExact));
      if (start.has_value()) Encode(graph_.buffers[b], *start, slices_[b]);
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      AGC_RETURN_IF_ERROR(CheckConflicts(s));
      AGC_RETURN_IF_ERROR(RunStep(s));
      if (planned_) PoisonDead(static_cast<int64_t>(s));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<EvalResult> Finish(int64_t run_index) const {
    EvalResult result;
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      const Buffer& row = graph_.buffers[b];
      if (row.kind != BufferKind::kOutput && row.kind != BufferKind::kState) continue;
      HostTensor whole = HostTensor::Zeros(row.type), known = HostTensor::Zeros({DType::kBool, row.type.dims});
      Decode(row, slices_[b], whole, known);
      const HostTensor seen = Visible(row, std::move(known), run_index);
      const auto hole = std::find(seen.bytes.begin(), seen.bytes.end(), 0);
      if (hole != seen.bytes.end()) {
        return ErrorAt(row.loc,
                       absl::StrCat(Name(row.kind), " %", row.symbol, " holds no value at element ",
                                    hole - seen.bytes.begin(), " when the steps have ended"),
                       absl::StatusCode::kFailedPrecondition);
      }
      (row.kind == BufferKind::kOutput ? result.outputs : result.states)[row.symbol] =
          Visible(row, std::move(whole), run_index);
    }
    return result;
  }

 private:
  struct Region {
    std::vector<uint8_t> bytes = {}, known = {};
    explicit Region(int64_t size) : bytes(static_cast<size_t>(size), kPoison), known(static_cast<size_t>(size)) {}
  };

  absl::Status PlaceAlone() {
    std::vector<int64_t> sizes(graph_.buffers.size());
    for (size_t b = 0; b < sizes.size(); ++b) {
      int64_t& size = sizes[Root(graph_, b)];
      size = std::max(size, StoredBytes(graph_.buffers[b]));
    }
    for (int64_t size : sizes) regions_.emplace_back(size);
    for (size_t b = 0; b < sizes.size(); ++b) {
      Region& r = regions_[Root(graph_, b)];
      slices_.push_back({r.bytes.data(), StoredBytes(graph_.buffers[b]), r.known.data()});
    }
    return absl::OkStatus();
  }

  absl::Status PlaceInArenas() {
    for (uint64_t size : graph_.arena_sizes) regions_.emplace_back(static_cast<int64_t>(size));
    // The constants' arena belongs to the module and has no size in the graph.
    for (const Buffer& row : graph_.buffers) {
      const int64_t needed = row.offset + std::max(row.size, StoredBytes(row));
      if (row.arena < 0 || row.arena >= static_cast<int64_t>(regions_.size())) {
        return ErrorAt(
            row.loc,
            absl::StrCat("buffer %", row.name, " lies in arena ", row.arena, ", the graph has ", regions_.size()),
            absl::StatusCode::kInternal);
      }
      Region& r = regions_[static_cast<size_t>(row.arena)];
      if (needed <= static_cast<int64_t>(r.bytes.size())) continue;
      if (row.kind != BufferKind::kConst) {
        return ErrorAt(row.loc,
                       absl::StrCat("buffer %", row.name, " ends at byte ", needed, " of arena ", row.arena,
                                    ", which has ", r.bytes.size()),
                       absl::StatusCode::kInternal);
      }
      r = Region(needed);
    }
    for (const Buffer& row : graph_.buffers) {
      Region& r = regions_[static_cast<size_t>(row.arena)];
      slices_.push_back(
          {r.bytes.data() + row.offset, std::max(row.size, StoredBytes(row)), r.known.data() + row.offset});
    }
    return absl::OkStatus();
  }

  // Calls f(logical element, stored element) for all of a buffer.
  static void EachElement(const Buffer& row, absl::FunctionRef<void(int64_t, int64_t)> f) {
    const int64_t n = row.type.elements();
    const Dims strides = Strides(row);
    std::vector<int64_t> index(row.type.dims.size());
    int64_t stored = 0;
    for (int64_t i = 0; i < n; ++i) {
      f(i, stored);
      for (size_t k = index.size(); k-- > 0;) {
        stored += strides[k];
        if (++index[k] < row.type.dims[k]) break;
        stored -= index[k] * strides[k];
        index[k] = 0;
      }
    }
  }

  static void Encode(const Buffer& row, const HostTensor& value, const ArenaSlice& slice) {
    const int64_t size = SizeOf(row.stored);
    EachElement(row, [&](int64_t i, int64_t at) {
      StoreElement(Convert(value.at(i), row.stored), slice.bytes + at * size);
      std::fill_n(slice.known + at * size, size, uint8_t{1});
    });
  }

  static void Decode(const Buffer& row, const ArenaSlice& slice, HostTensor& value, HostTensor& known) {
    const int64_t size = SizeOf(row.stored);
    EachElement(row, [&](int64_t i, int64_t at) {
      value.set(i, LoadElement(row.stored, slice.bytes + at * size));
      known.bytes[static_cast<size_t>(i)] = std::count(slice.known + at * size, slice.known + (at + 1) * size, 0) == 0;
    });
  }

  absl::Status RunStep(size_t number) {
    const Step& step = graph_.steps[number];
    switch (step.kind) {
      case StepKind::kDispatch: {
        std::vector<ArenaSlice> args;
        for (int32_t b : step.args) args.push_back(slices_[static_cast<size_t>(b)]);
        return ExecuteKernel(program_.kernels[step.callee], step.groups, args, options_);
      }
      case StepKind::kCopy: {
        const ArenaSlice &from = slices_[static_cast<size_t>(step.args[0])],
                         &to = slices_[static_cast<size_t>(step.args[1])];
        const int64_t size = StoredBytes(graph_.buffers[static_cast<size_t>(step.args[1])]);
        if (size != StoredBytes(graph_.buffers[static_cast<size_t>(step.args[0])]))
          return StepError(step, number, "a copy between buffers of different size");
        const uint8_t* hole = std::find(from.known, from.known + size, 0);
        if (hole != from.known + size) {
          return StepError(
              step, number,
              absl::StrCat("byte ", hole - from.known, " of %", graph_.buffers[static_cast<size_t>(step.args[0])].name,
                           " is copied but was never written"),
              absl::StatusCode::kFailedPrecondition);
        }
        std::memmove(to.bytes, from.bytes, static_cast<size_t>(size));
        std::fill_n(to.known, size, uint8_t{1});
        return absl::OkStatus();
      }
      case StepKind::kFill: {
        const ArenaSlice& to = slices_[static_cast<size_t>(step.args[0])];
        for (int64_t i = 0; i < to.size; ++i) to.bytes[i] = static_cast<uint8_t>(step.fill_word >> (8 * (i % 4)));
        std::fill_n(to.known, to.size, uint8_t{1});
        return absl::OkStatus();
      }
      case StepKind::kBarrier:
        return absl::OkStatus();
      case StepKind::kRun:
        break;
    }
    return StepError(step, number, "a nest has no place at this stage");
  }

  // Whether step `number` touches bytes that an earlier step, not separated from it, touches, one of them writing.
  absl::Status CheckConflicts(size_t number) {
    const Step& step = graph_.steps[number];
    if (step.kind == StepKind::kBarrier || (!planned_ && (step.epoch < 0 || step.epoch != epoch_))) {
      touched_.clear();
      epoch_ = step.epoch;
    }
    std::vector<Touched> mine;
    for (size_t i = 0; i < step.args.size(); ++i) {
      bool write = step.kind == StepKind::kCopy ? i == 1 : true;
      if (step.kind == StepKind::kDispatch)
        write = program_.kernels[step.callee].params[i].access != KernelAccess::kRead;
      mine.push_back({number, slices_[static_cast<size_t>(step.args[i])], write});
    }
    for (const Touched& a : mine) {
      for (const Touched& b : touched_) {
        const bool apart =
            a.slice.bytes + a.slice.size <= b.slice.bytes || b.slice.bytes + b.slice.size <= a.slice.bytes;
        if (apart || (!a.write && !b.write)) continue;
        return StepError(step, number,
                         absl::StrCat("it touches bytes of step ", b.step, " and no barrier lies between"),
                         absl::StatusCode::kAborted);
      }
    }
    touched_.insert(touched_.end(), mine.begin(), mine.end());
    return absl::OkStatus();
  }

  // First and last step of every class of aliases, by root.
  void FindLives() {
    lives_.assign(graph_.buffers.size(), {INT64_MAX, -1});
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      auto& [first, last] = lives_[Root(graph_, b)];
      first = std::min<int64_t>(first, graph_.buffers[b].first_step);
      last = std::max<int64_t>(last, graph_.buffers[b].last_step);
    }
  }

  // Temporaries whose last step was `step` lose their bytes, but for those that another one still holds.
  void PoisonDead(int64_t step) {
    const auto temporary = [](const Buffer& b) {
      return b.kind == BufferKind::kTemp || b.kind == BufferKind::kScratch;
    };
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      const Buffer& dead = graph_.buffers[b];
      if (!temporary(dead) || lives_[Root(graph_, b)].second != step) continue;
      std::vector<uint8_t> held(static_cast<size_t>(slices_[b].size));
      for (size_t o = 0; o < graph_.buffers.size(); ++o) {
        const Buffer& other = graph_.buffers[o];
        const auto [first, last] = lives_[Root(graph_, o)];
        if (!temporary(other) || other.arena != dead.arena || first > step || last <= step) continue;
        const int64_t begin = std::max(other.offset, dead.offset) - dead.offset;
        const int64_t end = std::min(other.offset + other.size, dead.offset + slices_[b].size) - dead.offset;
        if (begin < end) std::fill(held.begin() + begin, held.begin() + end, uint8_t{1});
      }
      for (size_t i = 0; i < held.size(); ++i) {
        if (held[i] != 0) continue;
        slices_[b].bytes[i] = kPoison;
        slices_[b].known[i] = 0;
      }
    }
  }

  struct Touched {
    size_t step = 0;
    ArenaSlice slice = {};
    bool write = false;
  };

  const Program& program_;
  const Graph& graph_;
  const KernelOptions options_;
  const bool planned_;
  std::vector<Region> regions_ = {};                     // by buffer, or arenas
  std::vector<std::pair<int64_t, int64_t>> lives_ = {};  // by buffer that is the root of its aliases
  std::vector<ArenaSlice> slices_ = {};                  // by buffer
  std::vector<Touched> touched_ = {};                    // since the last barrier, or in this epoch
  int32_t epoch_ = -1;
};

}  // namespace

absl::StatusOr<EvalResult> EvaluateSteps(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         const KernelOptions& options) {
  if (program.stage == Stage::kNest || program.stage == Stage::kScheduled)
    return EvaluateNests(program, graph, inputs, options.mode);
  if (program.stage < Stage::kNest) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph @", graph.name, " is at stage ", Name(program.stage), ", it has no steps yet"));
  }
  StepRunner runner(program, graph, options);
  AGC_RETURN_IF_ERROR(runner.Start(inputs));
  AGC_RETURN_IF_ERROR(runner.Run());
  return runner.Finish(RunIndex(program, inputs));
}

absl::StatusOr<EvalResult> Evaluate(const Program& program, absl::string_view graph, const EvalInputs& inputs,
                                    const KernelOptions& options) {
  const Graph* g = program.FindGraph(graph);
  if (g == nullptr) return absl::NotFoundError(absl::StrCat("module @", program.name, " has no graph @", graph));
  return program.stage <= Stage::kPrimitive ? EvaluateGraph(program, *g, inputs, options.mode)
                                            : EvaluateSteps(program, *g, inputs, options);
}

}  // namespace agc
