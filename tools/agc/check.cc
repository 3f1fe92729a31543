// agc check MODEL: one step on a device and in the evaluator, compared; or test cases of ONNX.
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/compare.h"
#include "tools/agc/json.h"
#include "tools/agc/model.h"
#include "tools/agc/onnx_case.h"
#include "tools/agc/reference.h"
#include "tools/agc/session.h"
#include "tools/agc/subject.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

Usage CheckUsage() {
  return {
      .command = "check",
      .summary = "runs one step of an entry on a Vulkan device and in the evaluator, and compares outputs and states",
      .operand = "[MODEL.agir|MODEL.agb|MODEL.onnx]",
      .options = Join({ValueTable(),
                       {{"expect", "NAME=V", "what an output or an updated state has to be"},
                        {"data", "DIR", "an ONNX test case: DIR/input_0.pb, DIR/output_0.pb, ..."},
                        {"cases", "FILE", "many of them, a line `MODEL DIR` each; prints a line of JSON for each"}},
                       ImportTable(),
                       LimitTable(),
                       {{"trusted", "", "load a bundle without bounds checks on buffers; allows addresses"},
                        {"json", "", "print the comparisons as JSON"}},
                       DeviceTable(),
                       CompileTable()}),
      .example = "agc check mlp.agir --entry infer --input x=x.npy --expect y=y.npy --rtol 1e-3",
      .details =
          "On both sides the states start from the same values: those of --state, else the bundle's, else "
          "init's as the evaluator\ncomputes it. Where the device differs, the first op that is off is "
          "named. An ONNX model is compared with --data or --expect alone, where they are given. Exit code 0: equal, "
          "1: different,\n2: refused."};
}

// A bundle may carry the text of another module; what is compared below is there on both sides.
absl::Status CheckInterface(const rt::Entry& entry, const Program& reference) {
  const auto differs = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat("the module text of the bundle does not fit its entry ", entry.name, ": ", what));
  };
  const Graph* graph = reference.FindGraph(entry.name);
  if (graph == nullptr) return differs("there is no such graph");
  if (graph->outputs.size() != entry.outputs.size()) return differs("it has other outputs");
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    if (graph->outputs[i].name != entry.outputs[i].name || !(graph->outputs[i].type == TypeOf(entry.outputs[i]))) {
      return differs(absl::StrCat("its output ", entry.outputs[i].name, " is another"));
    }
  }
  return absl::OkStatus();
}

// --expect by the name of an output, else of a state.
absl::StatusOr<Tensors> Expectations(const Flags& flags, const DeviceResult& got) {
  Tensors expected;
  for (const auto& [name, value] : flags.Named("expect")) {
    const HostTensor* t = Find(got.outputs, name);
    if (t == nullptr) t = Find(got.states, name);
    if (t == nullptr) {
      std::vector<std::string> names;
      for (const auto* list : {&got.outputs, &got.states}) {
        for (const auto& item : *list) names.push_back(item.first);
      }
      return NoSuch("output or state", name, "the entry", names);
    }
    AGC_ASSIGN_OR_RETURN(HostTensor want, TensorOf(absl::StrCat("expectation ", name), value, t->type));
    expected.emplace_back(name, std::move(want));
  }
  return expected;
}

// The device against the evaluator.
std::vector<Difference> CompareAll(const DeviceResult& got, const EvalResult& want, const Tensors& start,
                                   const Limits& limits) {
  std::vector<Difference> all;
  for (const auto& [name, t] : got.outputs) all.push_back(Compare(name, "evaluator", t, want.outputs.at(name), limits));
  for (const auto& [name, t] : got.states) {
    const auto it = want.states.find(name);
    all.push_back(Compare(absl::StrCat("state ", name), "evaluator", t,
                          it == want.states.end() ? *Find(start, name) : it->second, limits));
  }
  return all;
}

bool AllEqual(const std::vector<Difference>& all) {
  for (const Difference& d : all) {
    if (!d.equal) return false;
  }
  return true;
}

struct Cause {
  std::optional<OffOp> op = {};
  std::vector<std::string> without = {};  // options with which the device agrees
};

// The op that is off on its own, else the decisions without which nothing is off.
absl::StatusOr<Cause> FindCause(const Subject& s, const Setting& setting, const EvalResult& want,
                                const Limits& limits) {
  Cause cause;
  AGC_ASSIGN_OR_RETURN(cause.op, FirstOffOp(s.reference, setting, limits));
  if (cause.op.has_value()) return cause;
  const std::pair<absl::string_view, bool CompileOptions::*> switches[] = {
      {"--no-fuse", &CompileOptions::fuse},
      {"--no-reuse", &CompileOptions::reuse_memory},
      {"--no-in-place", &CompileOptions::in_place}};
  for (const auto& [option, member] : switches) {
    Setting other = setting;
    other.options.*member = false;
    AGC_ASSIGN_OR_RETURN(const DeviceResult got, CompileAndRun(s.program, other));
    if (AllEqual(CompareAll(got, want, setting.states, limits))) cause.without.emplace_back(option);
  }
  return cause;
}

void PrintCause(const Cause& cause) {
  if (cause.op.has_value()) {
    const OffOp& off = *cause.op;
    std::printf("first op that is off: %s of %s%s%s%s\n  %s\n", off.op.c_str(), off.type.c_str(),
                off.loc.empty() ? "" : " at ", off.loc.c_str(), off.role == "grad" ? ", made by its gradient" : "",
                DifferenceText(off.difference).c_str());
  } else if (!cause.without.empty()) {
    std::printf("no op is off on its own; nothing is off with %s\n", absl::StrJoin(cause.without, " or ").c_str());
  } else {
    std::printf("no op is off on its own: the errors of several add up, or a decision of the compiler is wrong\n");
  }
}

Json ReportJson(const rt::Device& device, const Setting& setting, const std::vector<Difference>& all,
                const std::optional<Cause>& cause) {
  std::vector<Json> results, without;
  for (const Difference& d : all) results.push_back(DifferenceJson(d));
  Json off;
  if (cause.has_value() && cause->op.has_value()) {
    off = Json::Object({{"op", Json::Of(cause->op->op)},
                        {"type", Json::Of(cause->op->type)},
                        {"loc", Json::Of(cause->op->loc)},
                        {"max_abs_error", Json::Of(cause->op->difference.max_abs)}});
  }
  for (size_t i = 0; cause.has_value() && i < cause->without.size(); ++i)
    without.push_back(Json::Of(cause->without[i]));
  return Json::Object({{"equal", Json::Of(AllEqual(all))},
                       {"device", Json::Of(device.description())},
                       {"entry", Json::Of(setting.entry)},
                       {"results", Json::List(results)},
                       {"first_off", off},
                       {"equal_with", Json::List(without)}});
}

// The standard's tests allow a relative error of 1e-3. Where sums cancel, an error in proportion to the largest element
// is allowed too.
Limits CaseLimits(const Flags& flags) {
  return {.rtol = flags.Number("rtol", 1e-3), .atol = flags.Number("atol", 1e-7), .scale = 1e-6};
}

// An ONNX model with the test data of one folder.
absl::StatusOr<int> CheckData(const rt::Device& device, const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(const CaseResult r, RunCase(device, flags.operand(), flags.Text("data"), CompileOptionsOf(flags),
                                                   CaseLimits(flags)));
  for (const std::string& name : r.baked) std::printf("baked      input %s\n", name.c_str());
  for (const Difference& d : r.outputs) std::printf("%s\n", DifferenceText(d).c_str());
  return r.equal() ? 0 : 1;
}

// The outputs of one step against --expect, without the evaluator.
absl::StatusOr<int> CheckExpected(const rt::Device& device, const Model& model, const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(device.target()));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileModel(model, target, CompileOptionsOf(flags)));
  const Bundle bundle(std::move(content));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, bundle.bytes(), true));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), flags.Text("entry")));
  AGC_ASSIGN_OR_RETURN(const EntryValues given, GivenValues(flags, *entry, 1));
  DeviceResult got;
  AGC_ASSIGN_OR_RETURN(got.outputs, RunEntry(session, entry->name, 1, given));
  AGC_ASSIGN_OR_RETURN(const Tensors expected, Expectations(flags, got));
  bool equal = true;
  for (const auto& [name, t] : expected) {
    const Difference d = Compare(name, "expectation", *Find(got.outputs, name), t, LimitsOf(flags));
    std::printf("%s\n", DifferenceText(d).c_str());
    equal = equal && d.equal;
  }
  return equal ? 0 : 1;
}

absl::StatusOr<int> Run(const Flags& flags) {
  if (flags.operand().empty() != flags.Has("cases")) {
    return absl::InvalidArgumentError(flags.Has("cases") ? "--cases names the models, give no other"
                                                         : "a model is expected");
  }
  if (flags.Has("cases") || flags.Has("data")) {
    AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));
    if (flags.Has("data")) return CheckData(device, flags);
    return RunCases(device, flags.Text("cases"), CompileOptionsOf(flags), CaseLimits(flags));
  }
  AGC_ASSIGN_OR_RETURN(Model model, ReadModel(flags));
  const bool trusted = flags.Has("trusted") || !model.is_bundle;
  AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));
  if (model.imported && flags.Has("expect")) return CheckExpected(device, model, flags);
  AGC_ASSIGN_OR_RETURN(const Subject subject, SubjectOf(std::move(model), device, flags));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, Bundle(subject.bundle).bytes(), trusted));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), flags.Text("entry")));
  AGC_RETURN_IF_ERROR(CheckInterface(*entry, subject.reference));
  Setting setting{.device = device, .options = subject.options, .entry = entry->name};
  AGC_ASSIGN_OR_RETURN(setting.target, ParseTarget(device.target()));
  AGC_ASSIGN_OR_RETURN(setting.given, GivenValues(flags, *entry, 1));
  AGC_ASSIGN_OR_RETURN(setting.states, StartOfStates(subject, session, flags));
  AGC_ASSIGN_OR_RETURN(const DeviceResult got, RunOnDevice(session, setting));
  AGC_ASSIGN_OR_RETURN(const Tensors expected, Expectations(flags, got));
  const Graph* graph = subject.reference.FindGraph(setting.entry);  // not null
  AGC_ASSIGN_OR_RETURN(const EvalResult want,
                       EvaluateGraph(subject.reference, *graph, InputsOf(setting.given, setting.states),
                                     EvaluatorFor(setting.options.numerics)));
  const Limits limits = LimitsOf(flags);
  std::vector<Difference> all = CompareAll(got, want, setting.states, limits);
  std::optional<Cause> cause;
  if (!AllEqual(all)) {
    AGC_ASSIGN_OR_RETURN(cause, FindCause(subject, setting, want, limits));
  }
  for (const auto& [name, t] : expected) {
    const HostTensor* value = Find(got.outputs, name);
    all.push_back(Compare(value != nullptr ? name : absl::StrCat("state ", name), "expectation",
                          value != nullptr ? *value : *Find(got.states, name), t, limits));
  }
  if (flags.Has("json")) {
    PrintJson(ReportJson(device, setting, all, cause));
    return AllEqual(all) ? 0 : 1;
  }
  for (const Difference& d : all) std::printf("%s\n", DifferenceText(d).c_str());
  if (cause.has_value()) PrintCause(*cause);
  if (!cause.has_value() && !AllEqual(all)) {
    std::printf("device and evaluator agree: the module is not what the expectation was made with\n");
  }
  return AllEqual(all) ? 0 : 1;
}

}  // namespace

int Check(const std::vector<std::string>& args) { return RunCommand(CheckUsage(), args, Run); }

}  // namespace agc::tool
