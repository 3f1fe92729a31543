#include "tools/agc/plan_text.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/target.h"
#include "tools/agc/model.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

// A line of words between the parentheses of a signature: "input x: f32[2], param lr: f32[]".
std::string ValueList(const std::vector<std::pair<absl::string_view, const std::vector<rt::Signature>*>>& lists) {
  std::vector<std::string> values;
  for (const auto& [role, signatures] : lists) {
    for (const rt::Signature& s : *signatures) {
      values.push_back(absl::StrCat(role, s.each_step ? "each_step " : "", s.name, ": ", ToString(TypeOf(s))));
    }
  }
  return absl::StrJoin(values, ", ");
}

std::string ArenaName(const rt::Entry& entry, uint32_t arena) {
  static constexpr absl::string_view kNames[] = {"states", "temporaries", "constants", "host"};
  if (arena < rt::kFirstResidentArena) return std::string(kNames[arena]);
  const size_t i = arena - rt::kFirstResidentArena;
  return absl::StrCat("resident ", i < entry.residents.size() ? entry.residents[i].name : absl::StrCat(i));
}

bool HasLife(const rt::FlatBuffer& b) { return b.kind == rt::BufferKind::kTemp || b.kind == rt::BufferKind::kScratch; }

std::string ArgText(const rt::FlatPlan& plan, const rt::FlatArg& arg) {
  static constexpr absl::string_view kAccess[] = {"?", "read", "write", "read_write"};
  const rt::FlatBuffer& b = plan.buffers[arg.buffer];
  const bool whole = arg.offset == 0 && arg.size == b.size;
  return absl::StrCat(b.name, whole ? "" : absl::StrCat("[", arg.offset, "..", arg.offset + arg.size, "]"), " ",
                      kAccess[static_cast<int>(arg.access) & 3]);
}

std::string StepText(const rt::Bundle& bundle, const rt::FlatPlan& plan, const rt::FlatStep& step) {
  const std::string args = absl::StrJoin(
      step.args, ", ", [&](std::string* out, const rt::FlatArg& a) { absl::StrAppend(out, ArgText(plan, a)); });
  switch (step.kind) {
    case rt::StepKind::kBarrier:
      return "barrier";
    case rt::StepKind::kCopy:
      return absl::StrCat("copy (", args, ")");
    case rt::StepKind::kFill:
      return absl::StrFormat("fill 0x%08x (%s)", step.fill_word, args);
    case rt::StepKind::kDispatch:
      break;
  }
  return absl::StrCat("dispatch ", bundle.kernels[step.kernel].name, " groups [", absl::StrJoin(step.groups, ", "),
                      "] (", args, ")");
}

std::string Ratio(uint64_t bytes, uint64_t bound) {
  return bound == 0 ? "" : absl::StrFormat(", %.2f times the bound", static_cast<double>(bytes) / bound);
}

// Arenas that the loader may find shorter or missing in a plan count as empty.
uint64_t ArenaBytes(const rt::FlatPlan& plan, uint32_t arena) {
  return arena < plan.arena_sizes.size() ? plan.arena_sizes[arena] : 0;
}

Json SignaturesJson(const std::vector<rt::Signature>& list, bool outputs = false) {
  std::vector<Json> items;
  for (const rt::Signature& s : list) {
    std::vector<std::pair<absl::string_view, Json>> members = {
        {"name", Json::Of(s.name)}, {"dtype", Json::Of(rt::DTypeName(s.dtype))}, {"shape", Json::Of(s.dims)}};
    if (outputs) members.emplace_back("each_step", Json::Of(s.each_step));
    items.push_back(Json::Object(members));
  }
  return Json::List(items);
}

Json EntryJson(const rt::Entry& e) {
  const PlanCounts counts = Count(e.plan);
  return Json::Object({{"name", Json::Of(e.name)},
                       {"kernels", Json::Of(counts.kernels)},
                       {"levels", Json::Of(counts.levels)},
                       {"barriers", Json::Of(counts.barriers)},
                       {"arena_bytes", Json::Of(ArenaBytes(e.plan, rt::kTempArena))},
                       {"bound_bytes", Json::Of(e.bound_bytes)},
                       {"state_bytes", Json::Of(ArenaBytes(e.plan, rt::kStateArena))},
                       {"inputs", SignaturesJson(e.inputs)},
                       {"outputs", SignaturesJson(e.outputs, /*outputs=*/true)},
                       {"residents", SignaturesJson(e.residents)},
                       {"params", SignaturesJson(e.params)}});
}

Json KernelJson(const rt::Kernel& k) {
  const std::vector<int64_t> local(k.local_size.begin(), k.local_size.end());
  return Json::Object({{"name", Json::Of(k.name)},
                       {"local_size", Json::Of(local)},
                       {"buffers", Json::Of(static_cast<uint64_t>(k.params.size()))},
                       {"spirv_words", Json::Of(static_cast<uint64_t>(k.spirv.size()))}});
}

Json StateJson(const rt::State& s) {
  return Json::Object({{"name", Json::Of(s.name)},
                       {"dtype", Json::Of(rt::DTypeName(s.dtype))},
                       {"shape", Json::Of(s.dims)},
                       {"trainable", Json::Of(s.trainable)}});
}

std::string TargetName(const rt::Bundle& bundle) {
  const absl::StatusOr<Target> target = ParseTarget(bundle.variants[0].requires_.target_text);
  return target.ok() ? target->name : "an unknown target";
}

}  // namespace

PlanCounts Count(const rt::FlatPlan& plan) {
  PlanCounts counts;
  for (const rt::FlatStep& step : plan.steps) {
    counts.kernels += step.kind == rt::StepKind::kDispatch;
    counts.barriers += step.kind == rt::StepKind::kBarrier;
  }
  counts.levels = plan.steps.empty() ? 0 : counts.barriers + 1;
  return counts;
}

std::string SignatureText(const rt::Entry& e) {
  return absl::StrCat(e.name, "(",
                      ValueList({{"input ", &e.inputs}, {"resident ", &e.residents}, {"param ", &e.params}}), ") -> (",
                      ValueList({{"", &e.outputs}}), ")");
}

std::string PlanText(const rt::Bundle& bundle, const rt::Entry& e) {
  std::string out = absl::StrCat("entry ", SignatureText(e), "\n");
  for (const rt::FlatBuffer& b : e.plan.buffers) {
    absl::StrAppend(&out, "  buffer ", b.name, ": ", rt::BufferKindName(b.kind), " in ", ArenaName(e, b.arena), " at ",
                    b.offset, " size ", b.size);
    if (HasLife(b)) absl::StrAppend(&out, " life ", b.first_step, "..", b.last_step);
    if (b.alias >= 0) absl::StrAppend(&out, " alias ", e.plan.buffers[b.alias].name);
    absl::StrAppend(&out, "\n");
  }
  for (size_t i = 0; i < e.plan.steps.size(); ++i) {
    const rt::FlatStep& step = e.plan.steps[i];
    absl::StrAppendFormat(&out, "  %4d %s", i, StepText(bundle, e.plan, step));
    absl::StrAppend(&out, step.origin.empty() ? "" : "  // ", step.origin, "\n");
  }
  return out;
}

std::string MemoryText(const rt::Bundle&, const rt::Entry& e) {
  std::string out = absl::StrCat("entry ", e.name, "\n");
  for (uint32_t arena = 0; arena < e.plan.arena_sizes.size(); ++arena) {
    absl::StrAppendFormat(&out, "  %-20s %12d bytes", ArenaName(e, arena), e.plan.arena_sizes[arena]);
    if (arena == rt::kTempArena) {
      absl::StrAppend(&out, " (bound ", e.bound_bytes, Ratio(e.plan.arena_sizes[arena], e.bound_bytes), ")");
    }
    absl::StrAppend(&out, "\n");
  }
  std::vector<const rt::FlatBuffer*> rows;
  for (const rt::FlatBuffer& b : e.plan.buffers) {
    if (b.arena == rt::kTempArena) rows.push_back(&b);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const rt::FlatBuffer* a, const rt::FlatBuffer* b) {
    return std::make_pair(a->offset, a->first_step) < std::make_pair(b->offset, b->first_step);
  });
  if (!rows.empty()) absl::StrAppendFormat(&out, "  %12s %12s  %-11s temporary\n", "offset", "bytes", "steps");
  for (const rt::FlatBuffer* b : rows) {
    absl::StrAppendFormat(&out, "  %12d %12d  %-11s %s", b->offset, b->size,
                          HasLife(*b) ? absl::StrCat(b->first_step, "..", b->last_step) : "all", b->name);
    if (b->alias >= 0) absl::StrAppend(&out, " in place of ", e.plan.buffers[b->alias].name);
    absl::StrAppend(&out, "\n");
  }
  return out;
}

std::string SummaryText(const rt::Bundle& bundle) {
  std::string out = absl::StrCat("module ", bundle.module_name, " for ", TargetName(bundle), ", buffers by ",
                                 AbiName(bundle.variants[0].requires_.abi), "\n");
  for (const rt::State& s : bundle.states) {
    if (s.hidden) continue;
    absl::StrAppend(&out, "state ", s.name, ": ", ToString(TypeOf(s)), s.trainable ? " trainable" : "", "\n");
  }
  if (bundle.has_state_values) absl::StrAppend(&out, "the states have values\n");
  for (const rt::Entry& e : bundle.variants[0].entries) {
    const PlanCounts counts = Count(e.plan);
    const uint64_t arena = ArenaBytes(e.plan, rt::kTempArena);
    absl::StrAppend(&out, "entry ", SignatureText(e), "\n  ", counts.kernels, " dispatches in ", counts.levels,
                    " levels; ", arena, " bytes of temporaries", Ratio(arena, e.bound_bytes), "; ",
                    ArenaBytes(e.plan, rt::kStateArena), " bytes of states\n");
  }
  for (const rt::Kernel& k : bundle.kernels) {
    absl::StrAppend(&out, "kernel ", k.name, ": local [", absl::StrJoin(k.local_size, ", "), "], ", k.params.size(),
                    " buffers, ", k.spirv.size(), " words\n");
  }
  return out;
}

Json BundleJson(const rt::Bundle& bundle) {
  std::vector<Json> entries, kernels, states;
  for (const rt::Entry& e : bundle.variants[0].entries) entries.push_back(EntryJson(e));
  for (const rt::Kernel& k : bundle.kernels) kernels.push_back(KernelJson(k));
  for (const rt::State& s : bundle.states) {
    if (!s.hidden) states.push_back(StateJson(s));
  }
  return Json::Object({{"module", Json::Of(bundle.module_name)},
                       {"abi", Json::Of(AbiName(bundle.variants[0].requires_.abi))},
                       {"target", Json::Of(TargetName(bundle))},
                       {"has_state_values", Json::Of(bundle.has_state_values)},
                       {"states", Json::List(states)},
                       {"entries", Json::List(entries)},
                       {"kernels", Json::List(kernels)}});
}

}  // namespace agc::tool
