#include "ir/eval/kernel_eval.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "ir/eval/kernel_code.h"
#include "ir/eval/kernel_memory.h"

namespace agc {
namespace {

using Mask = std::vector<uint8_t>;  // per invocation

class Executor {
 public:
  Executor(const Kernel& kernel, absl::Span<const ArenaSlice> args, const KernelOptions& options)
      : kernel_(kernel),
        options_(options),
        memory_(kernel, args, options),
        code_(kernel, memory_, options),
        lanes_(code_.lanes()) {}

  absl::Status Run() {
    std::vector<std::vector<KernelNode>> parts;
    for (const KernelPart& part : kernel_.parts) {
      AGC_ASSIGN_OR_RETURN(std::vector<KernelNode> body, code_.Compile(part.body));
      parts.push_back(std::move(body));
    }
    const std::array<int64_t, 3> groups = kernel_.groups();
    for (int64_t z = 0; z < groups[2]; ++z) {
      for (int64_t y = 0; y < groups[1]; ++y) {
        int64_t base = 0;
        for (size_t p = 0; p < parts.size(); base += kernel_.parts[p].groups[0], ++p) {
          part_ = &kernel_.parts[p];
          if (y >= part_->groups[1] || z >= part_->groups[2]) continue;
          for (int64_t x = 0; x < part_->groups[0]; ++x) {
            group_ = {x, y, z};
            memory_.StartGroup({base + x, y, z});
            AGC_RETURN_IF_ERROR(ExecList(parts[p], Mask(static_cast<size_t>(lanes_), 1)));
          }
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(const Stmt& s, absl::string_view message,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    return KernelError(kernel_, s, message, code);
  }
  absl::Status Explain(const Stmt& s, const absl::Status& status) const {
    return status.ok() ? status : Error(s, status.message(), status.code());
  }
  static bool None(const Mask& active) {
    return std::count(active.begin(), active.end(), 0) == static_cast<int64_t>(active.size());
  }
  static bool All(const Mask& active) { return std::count(active.begin(), active.end(), 0) == 0; }
  static int First(const Mask& active) {
    return static_cast<int>(std::find(active.begin(), active.end(), 1) - active.begin());
  }

  absl::Status Eval(const KernelNode& n, StripMachine& m, const Mask& active) {
    return Explain(*n.stmt, m.RunAll(memory_, lanes_, active.data()));
  }

  absl::Status ExecList(std::vector<KernelNode>& list, const Mask& active) {
    for (KernelNode& n : list) AGC_RETURN_IF_ERROR(Exec(n, active));
    return absl::OkStatus();
  }

  absl::Status Exec(KernelNode& n, const Mask& active) {
    if (None(active)) return absl::OkStatus();
    const Stmt& s = *n.stmt;
    switch (s.kind) {
      case StmtKind::kFor:
        if (s.mode == ForMode::kWorkgroup || s.mode == ForMode::kLocal) return ExecGrid(n, active);
        return n.uniform ? ExecUniformFor(n, active) : ExecFor(n, active);
      case StmtKind::kIf:
        return ExecIf(n, active);
      case StmtKind::kLet:
        return ExecLet(n, active);
      case StmtKind::kAlloc:
        memory_.Forget(s.target, active);
        return absl::OkStatus();
      case StmtKind::kStore:
        return ExecStore(n, active);
      case StmtKind::kAtomic:
        return ExecAtomic(n, active);
      case StmtKind::kIfLast:
        return ExecIfLast(n, active);
      case StmtKind::kBarrier:
        if (!All(active))
          return Error(s, absl::StrCat("a barrier is reached by invocation ", First(active),
                                       " but not by all of its workgroup"));
        memory_.Barrier(s.fence);
        return absl::OkStatus();
      case StmtKind::kLanes:
        return ExecLanes(n, active);
      case StmtKind::kTile:
        break;  // refused when compiled
      case StmtKind::kRegion:
        return ExecList(n.body, active);
    }
    return absl::OkStatus();
  }

  // Workgroup and local loops: their variable is a number of the grid.
  absl::Status ExecGrid(KernelNode& n, const Mask& active) {
    const Stmt& s = *n.stmt;
    AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
    const bool local = s.mode == ForMode::kLocal;
    const int64_t end = static_cast<int64_t>(*n.first.result(1)),
                  grid = local ? kernel_.local[s.dim] : part_->groups[s.dim];
    if (*n.first.result(0) != 0 || end != grid || s.step != 1) {
      return Error(s, absl::StrCat("the ", local ? "local" : "workgroup", " loop over ", code_.NameOf(s.var),
                                   " ends at ", end, ", its grid has ", grid));
    }
    uint64_t* var = code_.Storage(s.var, 0);
    int64_t inner = 1;
    for (int d = 0; d < s.dim; ++d) inner *= kernel_.local[d];
    for (int lane = 0; lane < lanes_; ++lane) {
      var[lane] = static_cast<uint64_t>(local ? lane / inner % kernel_.local[s.dim] : group_[s.dim]);
    }
    return ExecList(n.body, active);
  }

  absl::Status ExecUniformFor(KernelNode& n, const Mask& active) {
    AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
    const int64_t begin = static_cast<int64_t>(*n.first.result(0)), end = static_cast<int64_t>(*n.first.result(1));
    if (n.stmt->step <= 0) return Error(*n.stmt, absl::StrCat("a loop has step ", n.stmt->step));
    for (int64_t v = begin; v < end; v += n.stmt->step) {
      *code_.Storage(n.stmt->var, 0) = static_cast<uint64_t>(v);
      AGC_RETURN_IF_ERROR(ExecList(n.body, active));
    }
    return absl::OkStatus();
  }

  absl::Status ExecFor(KernelNode& n, const Mask& active) {
    AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
    if (n.stmt->step <= 0) return Error(*n.stmt, absl::StrCat("a loop has step ", n.stmt->step));
    std::vector<int64_t> next(static_cast<size_t>(lanes_)), end(static_cast<size_t>(lanes_));
    for (size_t i = 0; i < next.size(); ++i) {
      next[i] = static_cast<int64_t>(n.first.result(0)[i * static_cast<size_t>(n.first.stride(0))]);
      end[i] = static_cast<int64_t>(n.first.result(1)[i * static_cast<size_t>(n.first.stride(1))]);
    }
    Mask running = active;
    uint64_t* var = code_.Storage(n.stmt->var, 0);
    while (true) {
      for (size_t i = 0; i < next.size(); ++i) {
        running[i] = running[i] != 0 && next[i] < end[i];
        if (running[i] != 0) var[i] = static_cast<uint64_t>(next[i]);
        next[i] += n.stmt->step;
      }
      if (None(running)) return absl::OkStatus();
      AGC_RETURN_IF_ERROR(ExecList(n.body, running));
    }
  }

  absl::Status ExecIf(KernelNode& n, const Mask& active) {
    AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
    const uint64_t* cond = n.first.result(0);
    const int step = n.first.stride(0);
    Mask then = active, otherwise = active;
    for (int i = 0; i < lanes_; ++i) (cond[i * step] != 0 ? otherwise : then)[static_cast<size_t>(i)] = 0;
    if (n.stmt->uniform && !None(then) && !None(otherwise)) {
      return Error(*n.stmt, absl::StrCat("an if marked uniform is taken by invocation ", First(then),
                                         " and not by invocation ", First(otherwise)));
    }
    AGC_RETURN_IF_ERROR(ExecList(n.body, then));
    return ExecList(n.otherwise, otherwise);
  }

  absl::Status ExecLet(KernelNode& n, const Mask& active) {
    AGC_RETURN_IF_ERROR(Eval(n, n.rest, active));
    for (int c = 0; c < n.width; ++c) {
      uint64_t* var = code_.Storage(n.stmt->var, c);
      const uint64_t* value = n.rest.result(0, c);
      if (n.uniform) {
        *var = *value;
        continue;
      }
      for (int i = 0; i < lanes_; ++i) {
        if (active[static_cast<size_t>(i)] != 0) var[i] = value[i * n.rest.stride(0)];
      }
    }
    return absl::OkStatus();
  }

  // Evaluates guard, index and value of a store or atomic; `active` becomes the invocations that take part.
  absl::Status EvalStore(KernelNode& n, Mask& active) {
    if (n.stmt->guard.valid()) {
      AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
      for (int i = 0; i < lanes_; ++i) {
        if (n.first.result(0)[i * n.first.stride(0)] == 0) active[static_cast<size_t>(i)] = 0;
      }
    }
    return None(active) ? absl::OkStatus() : Eval(n, n.rest, active);
  }
  void LaneOperands(const KernelNode& n, int lane, std::vector<int64_t>& index, std::vector<uint64_t>& bits) const {
    const size_t rank = n.stmt->index.size();
    index.resize(rank);
    bits.resize(static_cast<size_t>(n.width));
    for (size_t k = 0; k < rank; ++k) index[k] = static_cast<int64_t>(n.rest.result(k)[lane * n.rest.stride(k)]);
    for (int c = 0; c < n.width; ++c) bits[static_cast<size_t>(c)] = n.rest.result(rank, c)[lane * n.rest.stride(rank)];
  }
  // bits = merge(old, bits), both component-major: component c of invocation i at c * lanes + i.
  absl::Status Merge(KernelNode& n, int lanes, const std::vector<uint64_t>& old, std::vector<uint64_t>& bits) {
    if (n.state.empty()) return Error(*n.stmt, "a combiner of several components cannot be stored with");
    for (size_t c = 0; c < static_cast<size_t>(n.width); ++c) {
      std::copy_n(old.begin() + c * lanes, lanes, code_.Storage(n.state[0], 0));
      std::copy_n(bits.begin() + c * lanes, lanes, code_.Storage(n.state[1], 0));
      AGC_RETURN_IF_ERROR(n.merge.RunAll(memory_, lanes, nullptr));
      for (int i = 0; i < lanes; ++i) bits[c * lanes + i] = n.merge.result(0)[i * n.merge.stride(0)];
    }
    return absl::OkStatus();
  }

  // Stores at an index that is the same for all invocations, to a register; false: to be done one by one.
  bool StoreRegister(const KernelNode& n, KernelPlace place, const Mask& active) {
    absl::InlinedVector<int64_t, 4> index;
    absl::InlinedVector<const uint64_t*, 4> values;
    const size_t rank = n.stmt->index.size();
    for (size_t k = 0; k < rank; ++k) {
      if (n.rest.stride(k) != 0) return false;
      index.push_back(static_cast<int64_t>(*n.rest.result(k)));
    }
    for (int c = 0; c < n.width; ++c) values.push_back(n.rest.result(rank, c));
    return memory_.WriteRegister(place, index, active.data(), values, n.rest.stride(rank));
  }

  absl::Status ExecStore(KernelNode& n, Mask active) {
    AGC_RETURN_IF_ERROR(EvalStore(n, active));
    const Stmt& s = *n.stmt;
    const KernelPlace place{s.to_alloc, s.target};
    if (s.combiner == nullptr && StoreRegister(n, place, active)) return absl::OkStatus();
    const size_t width = static_cast<size_t>(n.width), lanes = static_cast<size_t>(lanes_);
    std::vector<int64_t> index;
    std::vector<uint64_t> one, bits(width * lanes), old(s.combiner != nullptr ? width * lanes : 0);
    for (size_t lane = 0; lane < lanes; ++lane) {
      if (active[lane] == 0) continue;
      LaneOperands(n, static_cast<int>(lane), index, one);
      for (size_t c = 0; c < width; ++c) bits[c * lanes + lane] = one[c];
      if (s.combiner == nullptr) continue;
      AGC_RETURN_IF_ERROR(
          Explain(s, memory_.Read(place, index, static_cast<int>(lane), n.dtype, Touch::kPlain, absl::MakeSpan(one))));
      for (size_t c = 0; c < width; ++c) old[c * lanes + lane] = one[c];
    }
    if (s.combiner != nullptr) AGC_RETURN_IF_ERROR(Merge(n, lanes_, old, bits));
    for (size_t lane = 0; lane < lanes; ++lane) {
      if (active[lane] == 0) continue;
      LaneOperands(n, static_cast<int>(lane), index, one);
      for (size_t c = 0; c < width; ++c) one[c] = bits[c * lanes + lane];
      AGC_RETURN_IF_ERROR(Explain(s, memory_.Write(place, index, static_cast<int>(lane), n.dtype, Touch::kPlain, one)));
    }
    return absl::OkStatus();
  }

  // Invocations take their turns in order.
  absl::Status ExecAtomic(KernelNode& n, Mask active) {
    AGC_RETURN_IF_ERROR(EvalStore(n, active));
    const Stmt& s = *n.stmt;
    const KernelPlace place{s.to_alloc, s.target};
    std::vector<int64_t> index;
    std::vector<uint64_t> bits;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (active[static_cast<size_t>(lane)] == 0) continue;
      LaneOperands(n, lane, index, bits);
      std::vector<uint64_t> old(bits.size());
      AGC_RETURN_IF_ERROR(Explain(s, memory_.Read(place, index, lane, n.dtype, Touch::kAtomic, absl::MakeSpan(old))));
      if (s.combiner != nullptr) AGC_RETURN_IF_ERROR(Merge(n, 1, old, bits));
      AGC_RETURN_IF_ERROR(Explain(s, memory_.Write(place, index, lane, n.dtype, Touch::kAtomic, bits)));
      code_.Storage(s.var, 0)[lane] = old[0];
    }
    return absl::OkStatus();
  }

  absl::Status ExecIfLast(KernelNode& n, const Mask& active) {
    const Stmt& s = *n.stmt;
    if (!All(active)) return Error(s, "if_last is not reached by all invocations of the workgroup");
    AGC_RETURN_IF_ERROR(Eval(n, n.first, active));
    const KernelPlace counter{false, s.target};
    const int64_t index[1] = {static_cast<int64_t>(*n.first.result(0))},
                  count = static_cast<int64_t>(*n.first.result(1));
    uint64_t arrived[1] = {};
    memory_.Barrier(Fence::kBoth);
    AGC_RETURN_IF_ERROR(Explain(s, memory_.Read(counter, index, 0, DType::kU32, Touch::kAtomic, arrived)));
    const bool last = static_cast<int64_t>(++arrived[0]) == count;
    if (last) arrived[0] = 0;
    AGC_RETURN_IF_ERROR(Explain(s, memory_.Write(counter, index, 0, DType::kU32, Touch::kAtomic, arrived)));
    if (!last) return absl::OkStatus();
    memory_.SetLast(true);
    AGC_RETURN_IF_ERROR(ExecList(n.body, active));
    memory_.SetLast(false);
    memory_.Barrier(Fence::kBoth);
    return absl::OkStatus();
  }

  absl::Status ExecLanes(KernelNode& n, const Mask& active) {
    const Stmt& s = *n.stmt;
    if (!All(active))
      return Error(s, absl::StrCat("a lanes operation is reached by invocation ", First(active),
                                   " but not by all of its workgroup"));
    AGC_RETURN_IF_ERROR(Eval(n, n.rest, active));
    const int width = options_.subgroup;
    for (int lane = 0; lane < lanes_; ++lane) {
      const int begin = lane / width * width, end = std::min(begin + width, lanes_);
      const auto value = [&](int from, int c) { return n.rest.result(0, c)[from * n.rest.stride(0)]; };
      if (s.lanes_op == LanesOp::kBallot) {
        uint64_t ballot = 0;
        for (int i = begin; i < std::min(end, begin + 32); ++i) ballot |= (value(i, 0) & 1) << (i - begin);
        code_.Storage(s.var, 0)[lane] = ballot;
        continue;
      }
      const int64_t from =
          begin + (s.lanes_op == LanesOp::kBroadcast ? int64_t{s.lane} : (lane - begin) ^ int64_t{s.lane});
      if (from >= end) {
        return Error(
            s, absl::StrCat("invocation ", lane, " asks for lane ", from - begin, " of a subgroup of ", end - begin),
            absl::StatusCode::kOutOfRange);
      }
      for (int c = 0; c < n.width; ++c) code_.Storage(s.var, c)[lane] = value(static_cast<int>(from), c);
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  const KernelOptions options_;
  KernelMemory memory_;
  KernelCode code_;
  const int lanes_;
  const KernelPart* part_ = nullptr;
  std::array<int64_t, 3> group_ = {0, 0, 0};
};

absl::Status CheckArgs(const Kernel& kernel, std::array<int64_t, 3> groups, absl::Span<const ArenaSlice> args,
                       const KernelOptions& options) {
  const auto fail = [&](absl::string_view message) {
    return ErrorAt(kernel.loc, absl::StrCat("kernel @", kernel.name, ": ", message));
  };
  if (args.size() != kernel.params.size())
    return fail(absl::StrCat(args.size(), " arguments given for ", kernel.params.size(), " parameters"));
  for (size_t i = 0; i < args.size(); ++i) {
    const KernelParam& p = kernel.params[i];
    const int64_t bytes = p.type.elements() * SizeOf(p.stored);
    if (args[i].size < bytes)
      return fail(absl::StrCat("%", p.name, " needs ", bytes, " bytes, its argument has ", args[i].size));
  }
  if (groups != kernel.groups()) {
    return fail(absl::StrCat("dispatched with groups [", absl::StrJoin(groups, ", "), "], its parts have [",
                             absl::StrJoin(kernel.groups(), ", "), "]"));
  }
  const int64_t lanes = kernel.local[0] * kernel.local[1] * kernel.local[2];
  if (lanes < 1 || lanes > 4096)
    return fail(absl::StrCat("its workgroups have ", lanes, " invocations, 1 to 4096 can be executed"));
  if (options.subgroup < 1) return fail(absl::StrCat("subgroup size ", options.subgroup));
  return absl::OkStatus();
}

}  // namespace

absl::Status ExecuteKernel(const Kernel& kernel, std::array<int64_t, 3> groups, absl::Span<const ArenaSlice> args,
                           const KernelOptions& options) {
  AGC_RETURN_IF_ERROR(CheckArgs(kernel, groups, args, options));
  return Executor(kernel, args, options).Run();
}

}  // namespace agc
