// agc bench MODEL: how long a step of an entry takes on a device, and where the time goes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/compare.h"
#include "tools/agc/json.h"
#include "tools/agc/model.h"
#include "tools/agc/reference.h"
#include "tools/agc/session.h"
#include "tools/agc/subject.h"
#include "tools/agc/values.h"
#include "tools/agc/work.h"

namespace agc::tool {
namespace {

constexpr double kMostChecked = 1e8;  // FLOPs that the evaluator is asked for before timing

Usage BenchUsage() {
  return {
      .command = "bench",
      .summary = "times an entry on a Vulkan device: a step, its kernels, and the share of the copy rate they reach",
      .operand = "MODEL.agir|MODEL.agb|MODEL.onnx",
      .options = Join({ValueTable(),
                       {{"steps", "N", "steps of a block; default: so many that a block takes 50 ms"},
                        {"blocks", "N", "blocks that are timed after a first one that is not; default 7"},
                        {"no-check", "", "do not compare with the evaluator first"},
                        {"trusted", "", "load a bundle without bounds checks on buffers; allows addresses"},
                        {"json", "", "print the figures as JSON"}},
                       LimitTable(),
                       ImportTable(),
                       DeviceTable(),
                       CompileTable()}),
      .example = "agc bench mlp.agir --entry infer --steps 100",
      .details =
          "Values that are not given are random: floats in [-1, 1), integers 0 or 1. Inputs are uploaded in every "
          "step, "
          "residents are\nnot. The device is compared with the evaluator first; where it differs nothing is timed and "
          "the "
          "exit code is 1. FLOPs: two\nfor each product of a contraction. Bytes of a kernel: its arguments, each once. "
          "Kernels are timed by time stamps, step by step.\nA module at stage nest or scheduled, such as one with "
          "pinned "
          "schedules, needs --no-check."};
}

// The entry's values: those given, the rest random.
absl::StatusOr<EntryValues> ValuesFor(const Flags& flags, const rt::Entry& entry) {
  rt::Entry given = entry;
  std::mt19937 random(1);
  EntryValues filled;
  const auto split = [&](absl::string_view role, std::vector<rt::Signature>& signatures, Tensors& rest) {
    const auto named = flags.Named(role);
    std::vector<rt::Signature> kept;
    for (const rt::Signature& s : signatures) {
      if (std::any_of(named.begin(), named.end(), [&](const auto& n) { return n.first == s.name; })) {
        kept.push_back(s);
        continue;
      }
      HostTensor t = HostTensor::Zeros(TypeOf(s));
      for (int64_t i = 0; i < t.type.elements(); ++i) {
        const double unit = static_cast<double>(random()) / 4294967296.0;
        t.set(i, Scalar::Of(t.type.dtype, IsFloat(t.type.dtype) ? 2 * unit - 1 : unit < 0.5 ? 0 : 1));
      }
      rest.emplace_back(s.name, std::move(t));
    }
    signatures = std::move(kept);
  };
  split("input", given.inputs, filled.inputs);
  split("resident", given.residents, filled.residents);
  split("param", given.params, filled.params);
  AGC_ASSIGN_OR_RETURN(EntryValues values, GivenValues(flags, given, 1));
  values.inputs.insert(values.inputs.end(), filled.inputs.begin(), filled.inputs.end());
  values.residents.insert(values.residents.end(), filled.residents.begin(), filled.residents.end());
  values.params.insert(values.params.end(), filled.params.begin(), filled.params.end());
  return values;
}

// Whether outputs and states after one step are the evaluator's; prints those that are not.
absl::StatusOr<bool> Agrees(rt::Session& session, const Program& reference, const Setting& setting,
                            const Limits& limits) {
  const Graph* graph = reference.FindGraph(setting.entry);
  if (graph == nullptr) return absl::DataLossError("the module text of the bundle has no such entry");
  AGC_ASSIGN_OR_RETURN(const DeviceResult got, RunOnDevice(session, setting));
  AGC_ASSIGN_OR_RETURN(const EvalResult want, EvaluateGraph(reference, *graph, InputsOf(setting.given, setting.states),
                                                            EvaluatorFor(setting.options.numerics)));
  bool equal = true;
  const auto compare = [&](const std::string& name, const HostTensor& t, const HostTensor& w) {
    const Difference d = Compare(name, "evaluator", t, w, limits);
    if (!d.equal) std::printf("%s\n", DifferenceText(d).c_str());
    equal = equal && d.equal;
  };
  for (const auto& [name, t] : got.outputs) compare(name, t, want.outputs.at(name));
  for (const auto& [name, t] : got.states) {
    if (const auto it = want.states.find(name); it != want.states.end()) compare("state " + name, t, it->second);
  }
  return equal;
}

struct StepFigures {
  int64_t steps = 0;
  std::vector<double> blocks = {};  // microseconds a step, sorted
  double median() const { return blocks[blocks.size() / 2]; }
};

absl::StatusOr<double> BlockTime(rt::Session& session, const std::string& entry, int64_t steps, const rt::Args& args) {
  const auto start = std::chrono::steady_clock::now();
  AGC_RETURN_IF_ERROR(session.Run(entry, steps, args).status());
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(steps);
}

absl::StatusOr<StepFigures> TimeBlocks(rt::Session& session, const std::string& entry, const Flags& flags,
                                       const rt::Args& args) {
  StepFigures figures{.steps = flags.Count("steps", 0)};
  AGC_RETURN_IF_ERROR(BlockTime(session, entry, 1, args).status());
  AGC_ASSIGN_OR_RETURN(const double once, BlockTime(session, entry, 1, args));
  if (figures.steps == 0) figures.steps = std::clamp<int64_t>(static_cast<int64_t>(50e3 / once), 1, 1000);
  for (int64_t i = 0; i <= std::max<int64_t>(1, flags.Count("blocks", 7)); ++i) {
    AGC_ASSIGN_OR_RETURN(const double time, BlockTime(session, entry, figures.steps, args));
    if (i > 0) figures.blocks.push_back(time);
  }
  std::sort(figures.blocks.begin(), figures.blocks.end());
  return figures;
}

struct KernelFigures {
  std::string label = {}, origin = {};
  double microseconds = 0, bytes = 0;
  double rate() const { return bytes / microseconds * 1e-3; }  // GB/s
};

// By time stamps, slowest first; none where the device has no time stamps.
absl::StatusOr<std::vector<KernelFigures>> TimeKernels(rt::Session& session, const rt::Entry& entry, int64_t steps,
                                                       const rt::Args& args) {
  std::vector<KernelFigures> all;
  if (!session.EnableStepTimes(true).ok()) return all;
  AGC_RETURN_IF_ERROR(session.Run(entry.name, steps, args).status());
  std::vector<const rt::FlatStep*> timed;  // as the profile lists them
  for (const rt::FlatStep& step : entry.plan.steps) {
    if (step.kind != rt::StepKind::kBarrier) timed.push_back(&step);
  }
  const std::vector<rt::StepTime> times = session.profile().steps;
  if (times.size() != timed.size()) return absl::InternalError("the profile has other steps than the plan");
  for (size_t i = 0; i < times.size(); ++i) {
    KernelFigures k{.label = times[i].label, .origin = times[i].origin};
    k.microseconds = times[i].nanoseconds * 1e-3 / static_cast<double>(times[i].runs);
    k.bytes = BytesOf(*timed[i]);
    all.push_back(std::move(k));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const KernelFigures& a, const KernelFigures& b) { return a.microseconds > b.microseconds; });
  return all;
}

struct Report {
  std::string device = {}, entry = {};
  bool checked = false;
  double flops = 0, copy_rate = 0;  // of a step; GB/s, 0: not measured
  StepFigures step = {};
  std::vector<KernelFigures> kernels = {};
};

void PrintReport(const Report& r) {
  std::printf("%s: %.1f us a step (median of %zu blocks of %d; %.1f to %.1f)%s\n", r.entry.c_str(), r.step.median(),
              r.step.blocks.size(), static_cast<int>(r.step.steps), r.step.blocks.front(), r.step.blocks.back(),
              r.checked ? "" : ", results not checked");
  if (r.flops > 0) {
    std::printf("%.4g GFLOP a step in contractions, %.4g TFLOP/s\n", r.flops * 1e-9, r.flops / r.step.median() * 1e-6);
  }
  if (r.copy_rate > 0) std::printf("a copy between buffers reaches %.4g GB/s\n", r.copy_rate);
  double total = 0;
  for (const KernelFigures& k : r.kernels) total += k.microseconds;
  if (r.kernels.empty()) std::printf("the device has no time stamps: kernels are not timed\n");
  if (r.kernels.empty()) return;
  std::printf("%zu steps of the plan, %.1f us by time stamps:\n", r.kernels.size(), total);
  for (const KernelFigures& k : r.kernels) {
    const std::string share =
        r.copy_rate > 0 ? absl::StrFormat(" %5.1f%% of a copy", 100 * k.rate() / r.copy_rate) : "";
    std::printf("%10.1f us %5.1f%%  %10.1f GB/s%s  %s  %s\n", k.microseconds, 100 * k.microseconds / total, k.rate(),
                share.c_str(), k.label.c_str(), k.origin.c_str());
  }
}

Json ReportJson(const Report& r) {
  std::vector<Json> kernels;
  for (const KernelFigures& k : r.kernels) {
    kernels.push_back(Json::Object({{"label", Json::Of(k.label)},
                                    {"origin", Json::Of(k.origin)},
                                    {"microseconds", Json::Of(k.microseconds)},
                                    {"bytes", Json::Of(k.bytes)}}));
  }
  return Json::Object({{"device", Json::Of(r.device)},
                       {"entry", Json::Of(r.entry)},
                       {"checked", Json::Of(r.checked)},
                       {"steps", Json::Of(r.step.steps)},
                       {"microseconds", Json::Of(r.step.median())},
                       {"microseconds_min", Json::Of(r.step.blocks.front())},
                       {"microseconds_max", Json::Of(r.step.blocks.back())},
                       {"flops", Json::Of(r.flops)},
                       {"copy_gigabytes_per_second", Json::Of(r.copy_rate)},
                       {"kernels", Json::List(kernels, /*lines=*/true)}});
}

// GB/s, read and written, of copying a state of `bytes`.
absl::StatusOr<double> CopyRate(const rt::Device& device, const Target& target, int64_t bytes) {
  const std::string type = absl::StrCat("f32[", bytes / 4, "]");
  AGC_ASSIGN_OR_RETURN(
      Program program,
      Parse(absl::StrCat("module @copy {\n  state @from: ", type, " init constant(1)\n  state @to: ", type,
                         " init constant(0)\n  graph @copy() {\n    update @to = @from\n  }\n}\n"),
            "copy"));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileProgram(std::move(program), target, {}));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, Bundle(std::move(content)).bytes(), true));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), "copy"));
  AGC_RETURN_IF_ERROR(session.Run("copy", 1, {}).status());
  AGC_ASSIGN_OR_RETURN(const std::vector<KernelFigures> kernels, TimeKernels(session, *entry, 10, {}));
  return kernels.empty() ? 0 : kernels[0].rate();
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(Model model, ReadModel(flags));
  const bool trusted = flags.Has("trusted") || !model.is_bundle;
  AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));
  AGC_ASSIGN_OR_RETURN(Subject subject, SubjectOf(std::move(model), device, flags, !flags.Has("no-check")));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, Bundle(subject.bundle).bytes(), trusted));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), flags.Text("entry")));
  Setting setting{.device = device, .options = subject.options, .entry = entry->name};
  AGC_ASSIGN_OR_RETURN(setting.target, ParseTarget(device.target()));
  AGC_ASSIGN_OR_RETURN(setting.given, ValuesFor(flags, *entry));
  AGC_ASSIGN_OR_RETURN(setting.states, StartOfStates(subject, session, flags));
  Report report{.device = device.description(), .entry = entry->name};
  AGC_ASSIGN_OR_RETURN(report.flops, FlopsOf(subject.program, subject.reference, entry->name));
  if (!flags.Has("no-check") && report.flops > kMostChecked) {
    std::fprintf(stderr, "note: not compared with the evaluator, which would compute %.3g GFLOP; agc check does\n",
                 report.flops * 1e-9);
  } else if (!flags.Has("no-check")) {
    AGC_ASSIGN_OR_RETURN(report.checked, Agrees(session, subject.reference, setting, LimitsOf(flags)));
    if (!report.checked) return 1;
  }
  AGC_RETURN_IF_ERROR(WriteStates(session, setting.states));
  AGC_RETURN_IF_ERROR(BindResidents(session, setting.given));
  const rt::Args args = ArgsOf(setting.given);
  AGC_ASSIGN_OR_RETURN(report.step, TimeBlocks(session, entry->name, flags, args));
  AGC_ASSIGN_OR_RETURN(report.kernels, TimeKernels(session, *entry, std::min<int64_t>(report.step.steps, 100), args));
  AGC_ASSIGN_OR_RETURN(report.copy_rate, CopyRate(device, setting.target, setting.target.cpu() ? 1 << 25 : 1 << 28));
  if (flags.Has("json")) {
    PrintJson(ReportJson(report));
  } else {
    PrintReport(report);
  }
  return 0;
}

}  // namespace

int Bench(const std::vector<std::string>& args) { return RunCommand(BenchUsage(), args, Run); }

}  // namespace agc::tool
