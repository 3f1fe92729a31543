// agc run MODEL: runs an entry of a bundle, or of a module in text, on a device.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/eval/npy.h"
#include "tools/agc/command.h"
#include "tools/agc/json.h"
#include "tools/agc/model.h"
#include "tools/agc/session.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

constexpr int64_t kJsonElements = 4096;             // of outputs that --json lists
constexpr int64_t kOutputBytes = int64_t{1} << 34;  // of all outputs, which have a slice per step

Usage RunUsage() {
  return {
      .command = "run",
      .summary =
          "runs an entry of a bundle, a module in text or an ONNX model on a Vulkan device, which it names on stderr",
      .operand = "MODEL.agb|MODEL.agir|MODEL.onnx",
      .options = Join({ValueTable(),
                       {{"steps", "N", "runs the entry N times; default 1"},
                        {"output", "NAME=FILE", "write an output to an .npy file; others are printed"},
                        {"save", "NAME=FILE", "write a state to an .npy file after the run"},
                        {"save-bundle", "FILE", "write the bundle with the values of its states after the run"},
                        {"trusted", "", "load without bounds checks on buffers; allows --abi=addresses"},
                        {"json", "", "print the outputs as JSON"}},
                       ImportTable(),
                       DeviceTable(),
                       CompileTable()}),
      .example = "agc run mlp.agb --entry infer --input x=x.npy --output y=y.npy",
      .details =
          "Where a bundle has no values of its states, its entry init runs first. The options of compile are for "
          "modules in text.\nJSON has the elements of outputs up to 4096, and \"nan\", \"inf\" and \"-inf\" as "
          "strings. A NAME with = in it is given in quotes, as '\"a=b\"=1'."};
}

// The model as it is loaded: the bundle as it is, or the module compiled for the device.
absl::StatusOr<Bundle> BundleOf(Model& model, const rt::Device& device, const Flags& flags) {
  if (model.is_bundle) return Bundle(std::move(model.bundle));
  AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(device.target()));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileModel(model, target, CompileOptionsOf(flags)));
  return Bundle(std::move(content));
}

// States start from the bundle's values, else from init; then --state.
absl::Status StartStates(rt::Session& session, const rt::Bundle& bundle, const std::string& entry, const Flags& flags) {
  const auto& entries = session.entries();
  const bool has_init =
      std::any_of(entries.begin(), entries.end(), [](const rt::Entry& e) { return e.name == "init"; });
  if (bundle.has_state_values) {
    if (flags.Has("seed")) std::fprintf(stderr, "note: the bundle has the values of its states, --seed is not used\n");
  } else if (has_init && entry != "init") {
    AGC_RETURN_IF_ERROR(session.Init(static_cast<uint64_t>(flags.Count("seed", 0))));
  }
  AGC_ASSIGN_OR_RETURN(const Tensors states, GivenStates(flags, session.states()));
  return WriteStates(session, states);
}

absl::Status WriteFiles(const std::vector<std::pair<std::string, std::string>>& files, const Tensors& values) {
  for (const auto& [name, file] : files) {
    const HostTensor* t = Find(values, name);
    AGC_CHECK(t != nullptr);  // names were checked before the run
    AGC_RETURN_IF_ERROR(WriteNpy(file, *t));
  }
  return absl::OkStatus();
}

// Outputs with a slice per step must fit in memory.
absl::Status CheckSteps(const rt::Entry& entry, int64_t steps) {
  int64_t bytes = 1;
  for (const rt::Signature& s : entry.outputs) bytes += s.each_step ? TypeOf(s).bytes() : 0;
  if (steps <= kOutputBytes / bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--steps is ", steps, ", the outputs of ", kOutputBytes / bytes,
                                                 " steps fit in memory: run several times, with --save-bundle"));
}

// Names of --output and --save, before anything runs.
absl::Status CheckNames(const Flags& flags, const rt::Entry& entry, const std::vector<rt::State>& states) {
  for (const auto& [name, file] : flags.Named("output")) {
    AGC_RETURN_IF_ERROR(Named(entry.outputs, "output", name, absl::StrCat("entry ", entry.name)).status());
  }
  for (const auto& [name, file] : flags.Named("save")) {
    AGC_RETURN_IF_ERROR(Named(states, "state", name, "the model").status());
  }
  return absl::OkStatus();
}

void PrintOutputs(const Flags& flags, const Tensors& outputs) {
  const auto files = flags.Named("output");
  for (const auto& [name, t] : outputs) {
    const bool written =
        std::any_of(files.begin(), files.end(), [&name = name](const auto& f) { return f.first == name; });
    if (!written) std::printf("%s\n", TensorText(name, t).c_str());
  }
}

Json ReportJson(const rt::Device& device, const std::string& entry, int64_t steps, double milliseconds,
                const Tensors& outputs) {
  std::vector<Json> list;
  for (const auto& [name, t] : outputs) {
    std::vector<std::pair<absl::string_view, Json>> members = {
        {"name", Json::Of(name)}, {"dtype", Json::Of(Name(t.type.dtype))}, {"shape", Json::Of(t.type.dims)}};
    if (t.type.elements() <= kJsonElements) members.emplace_back("values", TensorJson(t));
    list.push_back(Json::Object(members));
  }
  return Json::Object({{"device", Json::Of(device.description())},
                       {"entry", Json::Of(entry)},
                       {"steps", Json::Of(steps)},
                       {"milliseconds", Json::Of(milliseconds)},
                       {"outputs", Json::List(list)}});
}

absl::Status SaveBundle(const Flags& flags, rt::Session& session, const Bundle& bundle) {
  if (!flags.Has("save-bundle")) return absl::OkStatus();
  AGC_ASSIGN_OR_RETURN(const std::vector<rt::Value> values, session.Save());
  AGC_ASSIGN_OR_RETURN(const Bundle with, WithStates(bundle, values));
  return with.WriteFile(flags.Text("save-bundle"));
}

absl::StatusOr<int> Run(const Flags& flags) {
  const int64_t steps = flags.Count("steps", 1);
  if (steps < 1) return absl::InvalidArgumentError("--steps is 0, at least 1 is needed");
  AGC_ASSIGN_OR_RETURN(Model model, ReadModel(flags));
  const bool trusted = flags.Has("trusted") || !model.is_bundle;  // what was compiled here is trusted
  AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));
  AGC_ASSIGN_OR_RETURN(const Bundle bundle, BundleOf(model, device, flags));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, bundle.bytes(), trusted));
  AGC_ASSIGN_OR_RETURN(const rt::Entry* entry, EntryOf(session.entries(), flags.Text("entry")));
  AGC_RETURN_IF_ERROR(CheckSteps(*entry, steps));
  AGC_RETURN_IF_ERROR(CheckNames(flags, *entry, Shown(session.states())));
  AGC_ASSIGN_OR_RETURN(const EntryValues given, GivenValues(flags, *entry, steps));
  AGC_RETURN_IF_ERROR(StartStates(session, bundle.content(), entry->name, flags));
  const auto start = std::chrono::steady_clock::now();
  AGC_ASSIGN_OR_RETURN(const Tensors outputs, RunEntry(session, entry->name, steps, given));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  AGC_ASSIGN_OR_RETURN(const Tensors states, ReadStates(session));
  AGC_RETURN_IF_ERROR(WriteFiles(flags.Named("output"), outputs));
  AGC_RETURN_IF_ERROR(WriteFiles(flags.Named("save"), states));
  AGC_RETURN_IF_ERROR(SaveBundle(flags, session, bundle));
  if (flags.Has("json")) {
    PrintJson(ReportJson(device, entry->name, steps, took.count(), outputs));
  } else {
    PrintOutputs(flags, outputs);
  }
  return 0;
}

}  // namespace

int RunModel(const std::vector<std::string>& args) { return RunCommand(RunUsage(), args, Run); }

}  // namespace agc::tool
