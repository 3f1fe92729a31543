// What run and check share: the values an entry is given, and running it on a device.
//   AGC_ASSIGN_OR_RETURN(const EntryValues given, GivenValues(flags, *entry, 1));
//   AGC_ASSIGN_OR_RETURN(const Tensors outputs, RunEntry(session, "infer", 1, given));
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/eval/tensor.h"
#include "runtime/device.h"
#include "runtime/session.h"
#include "tools/agc/flags.h"

namespace agc::tool {

using Tensors = std::vector<std::pair<std::string, HostTensor>>;  // by name, in the order of the entry
const HostTensor* Find(const Tensors& tensors, const std::string& name);

struct EntryValues {
  Tensors inputs = {}, residents = {}, params = {};
};

// --input, --resident, --param, --state.
std::vector<Option> ValueTable();
// Every value that the entry needs, read and checked; --seed stands for a param `seed` of `init`.
absl::StatusOr<EntryValues> GivenValues(const Flags& flags, const rt::Entry& entry, int64_t steps);
// The states that users know of: all but hidden ones.
std::vector<rt::State> Shown(const std::vector<rt::State>& states);
// The states given by --state.
absl::StatusOr<Tensors> GivenStates(const Flags& flags, const std::vector<rt::State>& states);

absl::StatusOr<rt::Session> LoadSession(const rt::Device& device, const std::vector<uint8_t>& bytes, bool trusted);
absl::Status WriteStates(rt::Session& session, const Tensors& states);
absl::StatusOr<Tensors> ReadStates(rt::Session& session);  // all but hidden ones
absl::Status BindResidents(rt::Session& session, const EntryValues& given);
rt::Args ArgsOf(const EntryValues& given);  // views of the inputs and params
// Binds the residents and runs: the outputs.
absl::StatusOr<Tensors> RunEntry(rt::Session& session, const std::string& entry, int64_t steps,
                                 const EntryValues& given);

}  // namespace agc::tool
