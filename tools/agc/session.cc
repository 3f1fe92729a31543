#include "tools/agc/session.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

struct Role {
  absl::string_view name = {};
  const std::vector<rt::Signature>* signatures = nullptr;
};

std::vector<Role> RolesOf(const rt::Entry& entry) {
  return {{"input", &entry.inputs}, {"resident", &entry.residents}, {"param", &entry.params}};
}

const rt::Signature* Find(const std::vector<rt::Signature>& list, const std::string& name) {
  for (const rt::Signature& s : list) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// A name that the entry does not have in this role; it may have it in another.
absl::Status Unknown(const rt::Entry& entry, const Role& role, const std::string& name) {
  absl::Status status = Named(*role.signatures, role.name, name, absl::StrCat("entry ", entry.name)).status();
  for (const Role& other : RolesOf(entry)) {
    if (Find(*other.signatures, name) == nullptr) continue;
    return WithNote(status, absl::StrCat(name, " is a ", other.name, ": give it with --", other.name));
  }
  return status;
}

absl::StatusOr<Tensors> ValuesOf(const Flags& flags, const rt::Entry& entry, const Role& role, int64_t steps) {
  const std::vector<std::pair<std::string, std::string>> given = flags.Named(role.name);
  for (const auto& [name, value] : given) {
    if (Find(*role.signatures, name) == nullptr) return Unknown(entry, role, name);
  }
  Tensors values;
  for (const rt::Signature& s : *role.signatures) {
    const auto it = std::find_if(given.begin(), given.end(), [&](const auto& g) { return g.first == s.name; });
    std::string value = it == given.end() ? "" : it->second;
    const bool seed = value.empty() && entry.name == "init" && s.name == "seed";
    if (seed) value = absl::StrCat(static_cast<uint32_t>(flags.Count("seed", 0)));
    const std::string what = absl::StrCat(role.name, " ", s.name);
    if (value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(what, " of ", ToString(TypeOf(s)), " is missing; give it with --",
                                                     role.name, " ", s.name, "=",
                                                     role.name == "param" ? "V" : "FILE.npy"));
    }
    const std::optional<int64_t> each = role.name == "param" ? std::optional<int64_t>(steps) : std::nullopt;
    AGC_ASSIGN_OR_RETURN(HostTensor t, TensorOf(what, value, TypeOf(s), each));
    values.emplace_back(s.name, std::move(t));
  }
  return values;
}

}  // namespace

const HostTensor* Find(const Tensors& tensors, const std::string& name) {
  for (const auto& [key, value] : tensors) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::vector<Option> ValueTable() {
  return {{"entry", "NAME", "the graph to run; default: the only one besides init"},
          {"input", "NAME=V", "V: a file x.npy, one number for all elements, or a list 1,2,3"},
          {"resident", "NAME=V", "a value that is bound once"},
          {"param", "NAME=V", "a number, or one per step: 0.1,0.05"},
          {"state", "NAME=V", "where a state starts"},
          {"seed", "N", "seed of init, which gives the states their first values; default 0"}};
}

absl::StatusOr<EntryValues> GivenValues(const Flags& flags, const rt::Entry& entry, int64_t steps) {
  const std::vector<Role> roles = RolesOf(entry);
  EntryValues values;
  AGC_ASSIGN_OR_RETURN(values.inputs, ValuesOf(flags, entry, roles[0], steps));
  AGC_ASSIGN_OR_RETURN(values.residents, ValuesOf(flags, entry, roles[1], steps));
  AGC_ASSIGN_OR_RETURN(values.params, ValuesOf(flags, entry, roles[2], steps));
  return values;
}

std::vector<rt::State> Shown(const std::vector<rt::State>& states) {
  std::vector<rt::State> shown;
  std::copy_if(states.begin(), states.end(), std::back_inserter(shown), [](const rt::State& s) { return !s.hidden; });
  return shown;
}

absl::StatusOr<Tensors> GivenStates(const Flags& flags, const std::vector<rt::State>& states) {
  const std::vector<rt::State> shown = Shown(states);
  Tensors values;
  for (const auto& [name, value] : flags.Named("state")) {
    AGC_ASSIGN_OR_RETURN(const rt::State* state, Named(shown, "state", name, "the model"));
    AGC_ASSIGN_OR_RETURN(HostTensor t, TensorOf(absl::StrCat("state ", name), value, TypeOf(*state)));
    values.emplace_back(name, std::move(t));
  }
  return values;
}

absl::StatusOr<rt::Session> LoadSession(const rt::Device& device, const std::vector<uint8_t>& bytes, bool trusted) {
  AGC_ASSIGN_OR_RETURN(rt::Session session, device.Load(bytes, trusted ? rt::Trust::kTrusted : rt::Trust::kUntrusted));
  return session;
}

absl::Status WriteStates(rt::Session& session, const Tensors& states) {
  for (const auto& [name, t] : states) AGC_RETURN_IF_ERROR(session.WriteState(name, t.bytes.data(), t.bytes.size()));
  return absl::OkStatus();
}

absl::StatusOr<Tensors> ReadStates(rt::Session& session) {
  AGC_ASSIGN_OR_RETURN(std::vector<rt::Value> values, session.Save());
  Tensors states;
  for (rt::Value& v : values) {
    std::string name = v.name;
    states.emplace_back(std::move(name), TensorOf(std::move(v)));
  }
  return states;
}

absl::Status BindResidents(rt::Session& session, const EntryValues& given) {
  for (const auto& [name, t] : given.residents) AGC_RETURN_IF_ERROR(session.Bind(name, t.bytes.data(), t.bytes.size()));
  return absl::OkStatus();
}

rt::Args ArgsOf(const EntryValues& given) {
  rt::Args args;
  for (const auto* list : {&given.inputs, &given.params}) {
    for (const auto& [name, t] : *list) args.push_back(rt::Arg::View(name, t.bytes.data(), t.bytes.size()));
  }
  return args;
}

absl::StatusOr<Tensors> RunEntry(rt::Session& session, const std::string& entry, int64_t steps,
                                 const EntryValues& given) {
  AGC_RETURN_IF_ERROR(BindResidents(session, given));
  AGC_ASSIGN_OR_RETURN(rt::Outputs outputs, session.Run(entry, steps, ArgsOf(given)));
  Tensors values;
  for (rt::Value& v : outputs.values) {
    std::string name = v.name;
    values.emplace_back(std::move(name), TensorOf(std::move(v)));
  }
  return values;
}

}  // namespace agc::tool
