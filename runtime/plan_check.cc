#include "runtime/plan_check.h"

#include <algorithm>

#include "runtime/byte_map.h"

namespace agc::rt {
namespace {

// What is known about one segment of an arena while the steps are walked. Steps and epochs start at 0; -1: never.
struct Segment {
  int64_t writer = -1;  // buffer through which it was last written
  int64_t write_step = -1, write_epoch = -1;
  int64_t read_step = -1, read_epoch = -1;
};

struct Owner {
  int64_t buffer = -1;  // one of the live buffers here; all of them belong to one alias class
  int64_t live = 0;
};

struct Checker {
  const FlatPlan& plan;
  const PlanCheckOptions& options;
  std::vector<uint32_t> root = {};  // by buffer: end of its alias chain
  std::vector<ByteMap<Segment>> bytes = {};
  int64_t epoch = 0;
};

bool Reads(Access access) { return (static_cast<int>(access) & static_cast<int>(Access::kRead)) != 0; }
bool Writes(Access access) { return (static_cast<int>(access) & static_cast<int>(Access::kWrite)) != 0; }
std::string Num(uint64_t n) { return std::to_string(n); }

// Kinds whose bytes the host or an earlier run provides.
bool HasContents(BufferKind kind) {
  return kind == BufferKind::kInput || kind == BufferKind::kResident || kind == BufferKind::kParam ||
         kind == BufferKind::kState || kind == BufferKind::kConst || kind == BufferKind::kCounter;
}

bool ReadOnly(BufferKind kind) {
  return HasContents(kind) && kind != BufferKind::kState && kind != BufferKind::kCounter;
}

bool HasLife(const Checker& c, size_t buffer) {
  const FlatBuffer& root = c.plan.buffers[c.root[buffer]];
  return root.arena == kTempArena && root.kind != BufferKind::kCounter;
}

std::string BufferText(const FlatBuffer& b) {
  return std::string(BufferKindName(b.kind)) + " buffer " + (b.name.empty() ? "(no name)" : b.name);
}

std::string StepText(const FlatPlan& plan, int64_t step) {
  const FlatStep& s = plan.steps[step];
  static constexpr std::array<const char*, 4> kKinds = {"dispatch", "copy", "fill", "barrier"};
  return "step " + Num(step) + " (" + (s.label.empty() ? kKinds[static_cast<size_t>(s.kind) & 3] : s.label) + ")";
}

std::string RangeText(const FlatBuffer& b, uint64_t begin, uint64_t end) {
  return b.name + " bytes [" + Num(begin - b.offset) + ", " + Num(end - b.offset) + ")";
}

Status Bad(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

bool ArenaAllowed(BufferKind kind, uint32_t arena) {
  switch (kind) {
    case BufferKind::kState:
      return arena == kStateArena;
    case BufferKind::kCounter:  // in the state arena it must leave itself 0; in the temp arena the plan fills it
      return arena == kStateArena || arena == kTempArena;
    case BufferKind::kTemp:
    case BufferKind::kScratch:
      return arena == kTempArena;
    case BufferKind::kConst:
      return arena == kConstArena;
    case BufferKind::kInput:
    case BufferKind::kParam:
    case BufferKind::kOutput:
      return arena == kHostArena;
    case BufferKind::kResident:
      return arena >= kFirstResidentArena;
  }
  return false;
}

// Fills `root`, in time linear in the number of buffers; a chain that comes back to itself is refused.
Status ResolveRoots(Checker& c) {
  constexpr uint32_t kUnknown = UINT32_MAX, kOnPath = UINT32_MAX - 1;
  const std::vector<FlatBuffer>& buffers = c.plan.buffers;
  c.root.assign(buffers.size(), kUnknown);
  std::vector<uint32_t> path;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    path.clear();
    uint32_t at = i;
    while (c.root[at] == kUnknown && buffers[at].alias >= 0) {
      c.root[at] = kOnPath;
      path.push_back(at);
      const size_t next = buffers[at].alias;
      if (next >= buffers.size()) return Bad(BufferText(buffers[at]) + ": alias " + Num(next) + " is not a buffer");
      at = static_cast<uint32_t>(next);
    }
    if (c.root[at] == kOnPath) return Bad(BufferText(buffers[at]) + ": its aliases form a cycle");
    if (c.root[at] == kUnknown) c.root[at] = at;
    for (uint32_t p : path) c.root[p] = c.root[at];
  }
  return Status();
}

Status CheckAlias(const Checker& c, uint32_t i) {
  const FlatBuffer& b = c.plan.buffers[i];
  if (b.alias < 0) return Status();
  const FlatBuffer& from = c.plan.buffers[b.alias];
  if (from.arena != b.arena || b.offset >= from.offset + from.size || from.offset >= b.offset + b.size) {
    return Bad(BufferText(b) + ": takes over " + from.name + " but shares no byte with it");
  }
  return Status();
}

Status CheckBuffer(const Checker& c, uint32_t i) {
  const FlatBuffer& b = c.plan.buffers[i];
  if (b.arena >= c.plan.arena_sizes.size()) {
    return Bad(BufferText(b) + ": arena " + Num(b.arena) + " of " + Num(c.plan.arena_sizes.size()));
  }
  const uint64_t room = c.plan.arena_sizes[b.arena];
  if (b.size == 0) return Bad(BufferText(b) + ": size is 0");
  if (b.offset > room || b.size > room - b.offset) {
    return Bad(BufferText(b) + ": bytes [" + Num(b.offset) + ", +" + Num(b.size) + ") leave arena " + Num(b.arena) +
               " of " + Num(room) + " bytes");
  }
  if (b.offset % c.options.alignment != 0) {
    return Bad(BufferText(b) + ": offset " + Num(b.offset) + " is not a multiple of " + Num(c.options.alignment));
  }
  return Status();
}

Status CheckPlace(const Checker& c, uint32_t i) {
  const FlatBuffer& b = c.plan.buffers[i];
  if (!ArenaAllowed(c.plan.buffers[c.root[i]].kind, b.arena))
    return Bad(BufferText(b) + ": may not lie in arena " + Num(b.arena));
  if (!HasLife(c, i)) return Status();
  if (b.first_step > b.last_step || b.last_step >= c.plan.steps.size()) {
    return Bad(BufferText(b) + ": life [" + Num(b.first_step) + ", " + Num(b.last_step) + "] in a plan of " +
               Num(c.plan.steps.size()) + " steps");
  }
  return Status();
}

// Sweeps over time: a buffer claims its bytes when its life starts and gives them up when it has ended.
Status CheckLives(const Checker& c) {
  struct Event {
    uint64_t step;
    bool begin;
    uint32_t buffer;
  };
  std::vector<Event> events;
  for (uint32_t i = 0; i < c.plan.buffers.size(); ++i) {
    const FlatBuffer& b = c.plan.buffers[i];
    if (b.arena == kConstArena || b.arena >= kFirstResidentArena) continue;  // never written: sharing is harmless
    const bool has_life = HasLife(c, i);
    events.push_back({has_life ? b.first_step : 0, true, i});
    if (has_life) events.push_back({uint64_t{b.last_step} + 1, false, i});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.begin < b.begin;
  });
  std::vector<ByteMap<Owner>> owners(c.plan.arena_sizes.size());
  for (const Event& event : events) {
    const FlatBuffer& b = c.plan.buffers[event.buffer];
    Status status;
    owners[b.arena].Visit(b.offset, b.offset + b.size, [&](uint64_t begin, uint64_t end, Owner& o) {
      if (!event.begin) {
        --o.live;
        return;
      }
      if (o.live > 0 && c.root[o.buffer] != c.root[event.buffer] && status.ok()) {
        const FlatBuffer& other = c.plan.buffers[o.buffer];
        status = Bad(BufferText(b) + ": " + RangeText(b, begin, end) + " are also " + RangeText(other, begin, end) +
                     " at step " + Num(event.step) + ", and neither takes over the other");
      }
      o.buffer = event.buffer;
      ++o.live;
    });
    if (!status.ok()) return status;
  }
  return Status();
}

Status CheckArg(const Checker& c, size_t step, size_t index) {
  const FlatStep& s = c.plan.steps[step];
  const FlatArg& arg = s.args[index];
  const std::string where = StepText(c.plan, step) + ": argument " + Num(index);
  if (arg.buffer >= c.plan.buffers.size()) return Bad(where + ": no buffer " + Num(arg.buffer));
  const FlatBuffer& b = c.plan.buffers[arg.buffer];
  if (arg.size == 0 || arg.offset > b.size || arg.size > b.size - arg.offset) {
    return Bad(where + ": bytes [" + Num(arg.offset) + ", +" + Num(arg.size) + ") of " + BufferText(b) +
               ", which has " + Num(b.size));
  }
  const int access = static_cast<int>(arg.access);
  if (access < 1 || access > 3) return Bad(where + ": access " + Num(access));
  if (s.kind == StepKind::kDispatch && (b.offset + arg.offset) % c.options.alignment != 0) {
    return Bad(where + ": " + BufferText(b) + " at byte " + Num(b.offset + arg.offset) +
               " of its arena, not a multiple of " + Num(c.options.alignment));
  }
  if (Writes(arg.access) && ReadOnly(c.plan.buffers[c.root[arg.buffer]].kind)) {
    return Bad(where + ": writes " + BufferText(b) + ", which is read-only");
  }
  if (HasLife(c, arg.buffer) && (step < b.first_step || step > b.last_step)) {
    return Bad(where + ": uses " + BufferText(b) + " outside its life [" + Num(b.first_step) + ", " + Num(b.last_step) +
               "]");
  }
  return Status();
}

Status CheckDispatch(const Checker& c, size_t step) {
  const FlatStep& s = c.plan.steps[step];
  for (uint32_t groups : s.groups) {
    if (groups == 0) return Bad(StepText(c.plan, step) + ": a group count is 0");
  }
  if (c.options.kernels == nullptr) return Status();
  if (s.kernel >= c.options.kernels->size()) return Bad(StepText(c.plan, step) + ": no kernel " + Num(s.kernel));
  const Kernel& kernel = (*c.options.kernels)[s.kernel];
  if (kernel.params.size() != s.args.size()) {
    return Bad(StepText(c.plan, step) + ": " + Num(s.args.size()) + " arguments for the " + Num(kernel.params.size()) +
               " parameters of kernel " + kernel.name);
  }
  for (size_t i = 0; i < s.args.size(); ++i) {
    if ((static_cast<int>(kernel.params[i]) & ~static_cast<int>(s.args[i].access)) != 0) {
      return Bad(StepText(c.plan, step) + ": argument " + Num(i) + " allows less access than kernel " + kernel.name +
                 " takes");
    }
  }
  return Status();
}

Status CheckTransfer(const Checker& c, size_t step) {
  const FlatStep& s = c.plan.steps[step];
  const std::string where = StepText(c.plan, step);
  if (s.kind == StepKind::kFill) {
    if (s.args.size() != 1 || s.args[0].access != Access::kWrite) return Bad(where + ": a fill writes one argument");
    if ((c.plan.buffers[s.args[0].buffer].offset + s.args[0].offset) % 4 != 0 || s.args[0].size % 4 != 0) {
      return Bad(where + ": a fill starts and ends at multiples of 4 bytes");
    }
    return Status();
  }
  if (s.args.size() != 2 || s.args[0].access != Access::kRead || s.args[1].access != Access::kWrite ||
      s.args[0].size != s.args[1].size) {
    return Bad(where + ": a copy reads one argument and writes another of the same size");
  }
  return Status();
}

Status CheckShape(const Checker& c, size_t step) {
  const FlatStep& s = c.plan.steps[step];
  if (static_cast<int>(s.kind) > static_cast<int>(StepKind::kBarrier))
    return Bad("step " + Num(step) + ": unknown kind");
  for (size_t i = 0; i < s.args.size(); ++i) {
    if (Status status = CheckArg(c, step, i); !status.ok()) return status;
  }
  if (s.kind == StepKind::kDispatch) return CheckDispatch(c, step);
  if (s.kind != StepKind::kBarrier) return CheckTransfer(c, step);
  return s.args.empty() ? Status() : Bad(StepText(c.plan, step) + ": a barrier has no arguments");
}

// Within a step: a write may share bytes only with a read of exactly its range through the buffer it takes over.
Status CheckOverlapInStep(const Checker& c, size_t step) {
  struct Range {
    uint32_t arena;
    uint64_t begin, end;
    size_t arg;
  };
  const FlatStep& s = c.plan.steps[step];
  std::vector<Range> ranges;
  for (size_t i = 0; i < s.args.size(); ++i) {
    const FlatBuffer& b = c.plan.buffers[s.args[i].buffer];
    ranges.push_back({b.arena, b.offset + s.args[i].offset, b.offset + s.args[i].offset + s.args[i].size, i});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.arena != b.arena ? a.arena < b.arena : a.begin != b.begin ? a.begin < b.begin : a.arg < b.arg;
  });
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (size_t j = i + 1; j < ranges.size() && ranges[j].arena == ranges[i].arena && ranges[j].begin < ranges[i].end;
         ++j) {
      const FlatArg& a = s.args[ranges[i].arg];
      const FlatArg& b = s.args[ranges[j].arg];
      if (!Writes(a.access) && !Writes(b.access)) continue;
      const bool same = ranges[i].begin == ranges[j].begin && ranges[i].end == ranges[j].end;
      const bool in_place = same && c.root[a.buffer] == c.root[b.buffer] && !(Writes(a.access) && Writes(b.access));
      if (in_place && s.kind == StepKind::kDispatch) continue;
      return Bad(StepText(c.plan, step) + ": arguments " + Num(ranges[i].arg) + " and " + Num(ranges[j].arg) +
                 " share " +
                 RangeText(c.plan.buffers[a.buffer], ranges[j].begin, std::min(ranges[i].end, ranges[j].end)) +
                 " and one of them writes");
    }
  }
  return Status();
}

// Whether a read through `buffer` may see bytes that were last written through `writer` (-1: by no step).
bool Sees(const Checker& c, uint32_t buffer, int64_t writer) {
  if (writer < 0) {
    const FlatBuffer& root = c.plan.buffers[c.root[buffer]];
    return HasContents(root.kind) && root.arena != kTempArena;
  }
  for (int64_t at = buffer; at >= 0; at = c.plan.buffers[at].alias) {
    if (at == writer) return true;
  }
  return false;
}

Status CheckRead(Checker& c, size_t step, const FlatArg& arg) {
  const FlatBuffer& b = c.plan.buffers[arg.buffer];
  // A kernel's scratch may be written and read by one dispatch.
  const bool own = b.kind == BufferKind::kScratch && arg.access == Access::kReadWrite;
  Status status;
  const uint64_t first = b.offset + arg.offset;
  c.bytes[b.arena].Visit(first, first + arg.size, [&](uint64_t begin, uint64_t end, const Segment& s) {
    if (!status.ok()) return;
    const std::string what = StepText(c.plan, step) + ": reads " + RangeText(b, begin, end);
    if (s.write_epoch == c.epoch) {
      status = Bad(what + ", which " + StepText(c.plan, s.write_step) + " writes, without a barrier between them");
    } else if (!own && !Sees(c, arg.buffer, s.writer)) {
      status = Bad(what + (s.writer < 0 ? ", which no earlier step writes"
                                        : ", which hold " + c.plan.buffers[s.writer].name + " since " +
                                              StepText(c.plan, s.write_step)));
    }
  });
  return status;
}

Status CheckWrite(Checker& c, size_t step, const FlatArg& arg) {
  const FlatBuffer& b = c.plan.buffers[arg.buffer];
  Status status;
  const uint64_t first = b.offset + arg.offset;
  c.bytes[b.arena].Visit(first, first + arg.size, [&](uint64_t begin, uint64_t end, const Segment& s) {
    const bool after_write = s.write_epoch == c.epoch;
    if (!status.ok() || (!after_write && s.read_epoch != c.epoch)) return;
    status = Bad(StepText(c.plan, step) + ": writes " + RangeText(b, begin, end) + ", which " +
                 StepText(c.plan, after_write ? s.write_step : s.read_step) + (after_write ? " writes" : " reads") +
                 ", without a barrier between them");
  });
  return status;
}

Status CheckHazards(Checker& c, size_t step) {
  const FlatStep& s = c.plan.steps[step];
  if (s.kind == StepKind::kBarrier) {
    ++c.epoch;
    return Status();
  }
  for (const FlatArg& arg : s.args) {
    Status status = Reads(arg.access) ? CheckRead(c, step, arg) : Status();
    if (status.ok() && Writes(arg.access)) status = CheckWrite(c, step, arg);
    if (!status.ok()) return status;
  }
  for (bool write : {false, true}) {  // after a write no earlier read matters: the write itself conflicts with more
    for (const FlatArg& arg : s.args) {
      if (!(write ? Writes(arg.access) : Reads(arg.access))) continue;
      const FlatBuffer& b = c.plan.buffers[arg.buffer];
      const uint64_t begin = b.offset + arg.offset, end = begin + arg.size;
      if (write) {
        c.bytes[b.arena].Assign(
            begin, end, {.writer = arg.buffer, .write_step = static_cast<int64_t>(step), .write_epoch = c.epoch});
        continue;
      }
      c.bytes[b.arena].Visit(begin, end, [&](uint64_t, uint64_t, Segment& segment) {
        segment.read_step = static_cast<int64_t>(step);
        segment.read_epoch = c.epoch;
      });
    }
  }
  return Status();
}

}  // namespace

Status CheckPlan(const FlatPlan& plan, const PlanCheckOptions& options) {
  if (plan.arena_sizes.size() < kFirstResidentArena) {
    return Bad("plan: " + Num(plan.arena_sizes.size()) + " arenas, at least " + Num(kFirstResidentArena) + " needed");
  }
  Checker c{.plan = plan, .options = options};
  c.bytes.resize(plan.arena_sizes.size());
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    if (Status status = CheckBuffer(c, i); !status.ok()) return status;
  }
  if (Status status = ResolveRoots(c); !status.ok()) return status;
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    if (Status status = CheckAlias(c, i); !status.ok()) return status;
    if (Status status = CheckPlace(c, i); !status.ok()) return status;
  }
  if (Status status = CheckLives(c); !status.ok()) return status;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    if (Status status = CheckShape(c, step); !status.ok()) return status;
    if (Status status = CheckOverlapInStep(c, step); !status.ok()) return status;
    if (Status status = CheckHazards(c, step); !status.ok()) return status;
  }
  return Status();
}

}  // namespace agc::rt
