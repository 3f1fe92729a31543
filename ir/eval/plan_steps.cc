// Steps of the loop and plan stages over bytes.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "ir/eval/plan_buffers.h"

namespace agc {
namespace {

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
      int64_t& size = sizes[RootOf(graph_, b)];
      size = std::max(size, StoredBytes(graph_.buffers[b]));
    }
    for (int64_t size : sizes) regions_.emplace_back(size);
    for (size_t b = 0; b < sizes.size(); ++b) {
      Region& r = regions_[RootOf(graph_, b)];
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
      auto& [first, last] = lives_[RootOf(graph_, b)];
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
      if (!temporary(dead) || lives_[RootOf(graph_, b)].second != step) continue;
      std::vector<uint8_t> held(static_cast<size_t>(slices_[b].size));
      for (size_t o = 0; o < graph_.buffers.size(); ++o) {
        const Buffer& other = graph_.buffers[o];
        const auto [first, last] = lives_[RootOf(graph_, o)];
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

absl::StatusOr<EvalResult> EvaluateDispatches(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                              const KernelOptions& options) {
  StepRunner runner(program, graph, options);
  AGC_RETURN_IF_ERROR(runner.Start(inputs));
  AGC_RETURN_IF_ERROR(runner.Run());
  return runner.Finish(RunIndex(program, inputs));
}

}  // namespace agc
