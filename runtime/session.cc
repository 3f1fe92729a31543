#include "runtime/session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "runtime/bundle_check.h"
#include "runtime/session_impl.h"

namespace agc::rt {
namespace {

constexpr int64_t kStepsPerSubmit = 64;  // of an entry whose steps need no ring slot

std::string Num(uint64_t n) { return std::to_string(n); }
Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

uint64_t Bytes(const Signature& s) {
  uint64_t bytes = 0;
  HostBytes(s.dtype, s.dims, &bytes);
  return bytes;
}

uint64_t Bytes(const State& s) {
  uint64_t bytes = 0;
  HostBytes(s.dtype, s.dims, &bytes);
  return bytes;
}

// Whether elements given as one dtype, none for plain bytes, are those of another; bytes are taken for bool.
bool Fits(std::optional<DType> given, DType dtype) {
  return !given.has_value() || *given == dtype || (*given == DType::kU8 && dtype == DType::kBool);
}

// Whether `data` is one value of a resident or state.
template <typename Declared>
Status CheckGiven(const char* role, const Declared& s, size_t bytes, std::optional<DType> dtype) {
  const std::string what = role + (" " + s.name) + " of " + TypeText(s.dtype, s.dims);
  if (!Fits(dtype, s.dtype)) return Invalid(what + " was given as " + DTypeName(*dtype));
  if (bytes == Bytes(s)) return Status();
  return Invalid(what + " takes " + Num(Bytes(s)) + " bytes, " + Num(bytes) + " were given");
}

// IEEE half and bfloat16 to float, which holds all their values.
float FloatOf(DType dtype, uint16_t bits) {
  uint32_t out = uint32_t{bits} << 16;
  if (dtype == DType::kF16) {
    const uint32_t sign = out & 0x80000000u, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign != 0 ? -1.0f : 1.0f);
    out = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  }
  float value = 0;
  std::memcpy(&value, &out, sizeof(value));
  return value;
}

// The argument for a signature, with its size in values of the signature's type checked: `most` or one.
StatusOr<const Arg*> FindArg(const Entry& entry, const char* role, const Signature& s, int64_t most, const Args& args) {
  const std::string where = "entry " + entry.name + ": " + role + " " + s.name + " of " + TypeText(s.dtype, s.dims);
  const Arg* found = nullptr;
  for (const Arg& arg : args) {
    if (arg.name() != s.name) continue;
    if (found != nullptr) return Invalid(where + " is given twice");
    found = &arg;
  }
  if (found == nullptr) return Invalid(where + " is missing");
  if (!Fits(found->dtype(), s.dtype)) return Invalid(where + " was given as " + DTypeName(*found->dtype()));
  const uint64_t one = Bytes(s), all = one * static_cast<uint64_t>(most);  // CheckSteps: it does not overflow
  if (found->size() != one && found->size() != all) {
    std::string wanted = Num(one);
    if (most != 1) wanted += " or " + Num(all);
    return Invalid(where + " takes " + wanted + " bytes, " + Num(found->size()) + " were given");
  }
  return found;
}

// `n` steps end some day, give and take values whose sizes 64 bits hold, and have results that the host has room for.
Status CheckSteps(const Entry& entry, int64_t n) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  constexpr int64_t kMostSteps = std::numeric_limits<int32_t>::max();
  const std::string where = "entry " + entry.name + ": " + std::to_string(n) + " steps";
  if (n < 1) return Invalid(where + ", at least 1 needed");
  if (n > kMostSteps) return Invalid(where + ", at most " + std::to_string(kMostSteps) + " in one run");
  uint64_t results = 0;
  for (const std::vector<Signature>* list : {&entry.params, &entry.outputs}) {
    for (const Signature& s : *list) {
      const bool each = list == &entry.params || s.each_step;
      const uint64_t one = Bytes(s);
      if (each && one > 0 && static_cast<uint64_t>(n) > kMost / one) {
        return Invalid(where + " of " + s.name + " take more than " + Num(kMost) + " bytes");
      }
      if (list == &entry.outputs) results += one * static_cast<uint64_t>(each ? n : 1);
    }
  }
  void* const room = ::operator new(results, std::nothrow);  // a call: new expressions may be left out by compilers
  ::operator delete(room);
  if (room == nullptr)
    return Status(Code::kResourceExhausted, where + " give " + Num(results) + " bytes, which the host has no room for");
  return Status();
}

struct BoundArgs {
  std::vector<const Arg*> inputs = {}, params = {};  // in the order of the entry's signatures
};

StatusOr<BoundArgs> CheckArgs(const Entry& entry, int64_t n, const Args& args) {
  BoundArgs bound;
  for (const Signature& s : entry.inputs) {
    StatusOr<const Arg*> arg = FindArg(entry, "input", s, 1, args);
    if (!arg.ok()) return arg.status();
    bound.inputs.push_back(*arg);
  }
  for (const Signature& s : entry.params) {
    StatusOr<const Arg*> arg = FindArg(entry, "param", s, n, args);
    if (!arg.ok()) return arg.status();
    bound.params.push_back(*arg);
  }
  for (const Arg& arg : args) {
    const auto named = [&](const Signature& s) { return s.name == arg.name(); };
    if (std::any_of(entry.inputs.begin(), entry.inputs.end(), named)) continue;
    if (std::any_of(entry.params.begin(), entry.params.end(), named)) continue;
    std::string known;
    for (const Signature& s : entry.inputs) known += (known.empty() ? "" : ", ") + s.name;
    for (const Signature& s : entry.params) known += (known.empty() ? "" : ", ") + s.name;
    const bool resident = std::any_of(entry.residents.begin(), entry.residents.end(), named);
    return Invalid("entry " + entry.name + " has no input or param " + arg.name() +
                   (resident ? " (it is a resident: bind it)" : "") + "; it has " + (known.empty() ? "none" : known));
  }
  return bound;
}

Status CheckResidents(const SessionImpl& s, const Entry& entry) {
  for (const Signature& r : entry.residents) {
    if (Bytes(r) == 0 || s.residents.count(r.name) != 0) continue;
    return Status(Code::kFailedPrecondition, "entry " + entry.name + ": resident " + r.name + " of " +
                                                 TypeText(r.dtype, r.dims) + " is not bound");
  }
  return Status();
}

uint8_t* HostPointer(SessionImpl& s, const Entry& entry, const Signature& sig) {
  return s.host.At(entry.plan.buffers[sig.buffer].offset).mapped;
}

// Values of steps [first, first + count) into slots [0, count).
void WriteParams(SessionImpl& s, const Entry& entry, const BoundArgs& bound, int64_t first, int64_t count) {
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const uint64_t one = Bytes(entry.params[i]);
    if (one == 0) continue;
    uint8_t* slots = HostPointer(s, entry, entry.params[i]);
    const bool each = bound.params[i]->size() != one;
    for (int64_t k = 0; k < count; ++k) {
      const uint8_t* from = bound.params[i]->data() + (each ? static_cast<uint64_t>(first + k) * one : 0);
      std::memcpy(slots + static_cast<uint64_t>(k) * one, from, one);
    }
  }
}

Outputs MakeOutputs(const Entry& entry, int64_t n) {
  Outputs outputs;
  for (const Signature& s : entry.outputs) {
    Value value = {.name = s.name, .dtype = s.dtype, .dims = s.dims};
    if (s.each_step) value.dims.insert(value.dims.begin(), n);
    value.bytes.resize(Bytes(s) * static_cast<uint64_t>(s.each_step ? n : 1));
    outputs.values.push_back(std::move(value));
  }
  return outputs;
}

void ReadOutputs(SessionImpl& s, const Entry& entry, int64_t first, int64_t count, bool last, Outputs* outputs) {
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const Signature& sig = entry.outputs[i];
    const uint64_t one = Bytes(sig);
    if (one == 0 || (!sig.each_step && !last)) continue;
    uint8_t* to = outputs->values[i].bytes.data() + (sig.each_step ? static_cast<uint64_t>(first) * one : 0);
    std::memcpy(to, HostPointer(s, entry, sig), one * static_cast<uint64_t>(sig.each_step ? count : 1));
  }
}

Status AddStepTimes(SessionImpl& s, Recording& rec) {
  if (rec.queries == VK_NULL_HANDLE) return Status();
  std::vector<uint64_t> ticks(2 * rec.times.size());
  const VkResult r =
      vkGetQueryPoolResults(s.device->device, rec.queries, 0, static_cast<uint32_t>(ticks.size()), ticks.size() * 8,
                            ticks.data(), 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (r != VK_SUCCESS) return s.device->Error(r, "vkGetQueryPoolResults", "");
  const uint32_t bits = s.device->timestamp_bits;
  const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  for (size_t i = 0; i < rec.times.size(); ++i) {
    const uint64_t passed = (ticks[2 * i + 1] - ticks[2 * i]) & mask;
    rec.times[i].nanoseconds += static_cast<double>(passed) * s.device->properties.limits.timestampPeriod;
    ++rec.times[i].runs;
  }
  return Status();
}

// One submission of `count` steps.
Status Submit(SessionImpl& s, const Entry& entry, Recording& rec, int64_t count) {
  std::vector<VkCommandBuffer> commands;
  if (rec.reset_index != VK_NULL_HANDLE) commands.push_back(rec.reset_index);
  commands.insert(commands.end(), static_cast<size_t>(count), rec.commands);
  ++s.profile.submits;
  s.profile.runs += static_cast<uint64_t>(count);
  s.profile.dispatches += rec.dispatches * static_cast<uint64_t>(count);
  if (Status st = SubmitAndWait(*s.device, commands, s.fence, "entry " + entry.name); !st.ok()) return st;
  return AddStepTimes(s, rec);
}

int64_t ChunkSize(const SessionImpl& s, const Entry& entry) {
  if (s.step_times) return 1;
  bool rings = !entry.params.empty();
  for (const Signature& o : entry.outputs) rings = rings || o.each_step;
  return rings ? int64_t{entry.ring} : kStepsPerSubmit;
}

const State* FindState(const SessionImpl& s, const std::string& name) {
  for (const State& state : s.bundle.states) {
    if (state.name == name && !state.hidden) return &state;
  }
  return nullptr;
}

}  // namespace

const Value* Outputs::Find(const std::string& name) const {
  for (const Value& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

Status Outputs::Missing(const std::string& name) const {
  std::string known;
  for (const Value& value : values) known += (known.empty() ? "" : ", ") + value.name;
  return Status(Code::kNotFound, "no output " + name + "; the entry has " + (known.empty() ? "none" : known));
}

Status Value::CopyTo(DType as, void* to) const {
  if (as == DType::kF32 && (dtype == DType::kF16 || dtype == DType::kBF16)) {
    for (size_t i = 0; i < bytes.size() / 2; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      static_cast<float*>(to)[i] = FloatOf(dtype, bits);
    }
    return Status();
  }
  if (!Fits(as, dtype)) return Invalid(name + " of " + TypeText(dtype, dims) + " was asked for as " + DTypeName(as));
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return Status();
}

Session::Session(std::unique_ptr<SessionImpl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const std::vector<Entry>& Session::entries() const { return impl_->entries(); }
const std::vector<State>& Session::states() const { return impl_->bundle.states; }
BufferAbi Session::abi() const { return impl_->abi(); }

Status Session::Bind(const std::string& name, const void* data, size_t bytes, std::optional<DType> dtype) {
  SessionImpl& s = *impl_;
  if (Status st = s.device->Alive(); !st.ok()) return st;
  const Signature* found = nullptr;
  for (const Entry& entry : s.entries()) {
    for (const Signature& r : entry.residents) found = r.name == name ? &r : found;
  }
  if (found == nullptr) return Invalid("no entry has a resident " + name);
  if (Status st = CheckGiven("resident", *found, bytes, dtype); !st.ok()) return st;
  auto it = s.residents.find(name);
  if (it == s.residents.end()) {
    // The plan may give the arena a few bytes more than the value has.
    uint64_t size = 0;
    for (size_t e = 0; e < s.entries().size(); ++e) {
      const Entry& entry = s.entries()[e];
      for (size_t i = 0; i < entry.residents.size(); ++i) {
        if (entry.residents[i].name == name) size = std::max(size, entry.plan.arena_sizes[kFirstResidentArena + i]);
      }
    }
    Arena arena;
    Status st = CreateArena(*s.device, "resident " + name, size, MemoryUse::kDevice, {}, &arena);
    if (!st.ok()) return st;
    it = s.residents.emplace(name, std::move(arena)).first;
    s.profile.resident_bytes += size;
    for (size_t e = 0; e < s.entries().size(); ++e) {
      for (const Signature& r : s.entries()[e].residents) s.recordings[e].dirty |= r.name == name;
    }
  }
  return Upload(*s.device, s.stager, it->second, 0, data, bytes);
}

StatusOr<Outputs> Session::Run(const std::string& name, int64_t n, const Args& args) {
  SessionImpl& s = *impl_;
  if (Status st = s.device->Alive(); !st.ok()) return st;
  size_t index = 0;
  while (index < s.entries().size() && s.entries()[index].name != name) ++index;
  if (index == s.entries().size()) {
    std::string known;
    for (const Entry& e : s.entries()) known += (known.empty() ? "" : ", ") + e.name;
    return Status(Code::kNotFound, "no entry " + name + "; the bundle has " + (known.empty() ? "none" : known));
  }
  const Entry& entry = s.entries()[index];
  if (Status st = CheckSteps(entry, n); !st.ok()) return st;
  StatusOr<BoundArgs> bound = CheckArgs(entry, n, args);
  if (!bound.ok()) return bound.status();
  if (Status st = CheckResidents(s, entry); !st.ok()) return st;
  Recording& rec = s.recordings[index];
  if (rec.dirty) {
    if (Status st = RecordEntry(s, index); !st.ok()) return st;
  }
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    if (bound->inputs[i]->size() == 0) continue;
    std::memcpy(HostPointer(s, entry, entry.inputs[i]), bound->inputs[i]->data(), bound->inputs[i]->size());
  }
  Outputs outputs = MakeOutputs(entry, n);
  const int64_t chunk = ChunkSize(s, entry);
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(chunk, n - done);
    WriteParams(s, entry, *bound, done, count);
    if (Status st = Submit(s, entry, rec, count); !st.ok()) return st;
    ReadOutputs(s, entry, done, count, done + count == n, &outputs);
    done += count;
  }
  return outputs;
}

Status Session::Init(uint64_t seed) {
  for (const Entry& entry : impl_->entries()) {
    if (entry.name != "init") continue;
    Args args;
    for (const Signature& p : entry.params) {
      std::vector<uint8_t> bytes(Bytes(p));
      if (p.name == "seed") std::memcpy(bytes.data(), &seed, std::min<size_t>(8, bytes.size()));
      if (p.name == "seed") args.push_back(Arg::Raw(p.name, bytes));
    }
    return Run("init", 1, args).status();
  }
  return Status(Code::kNotFound, "bundle " + impl_->bundle.module_name + " has no entry init");
}

StatusOr<Value> Session::ReadState(const std::string& name) {
  SessionImpl& s = *impl_;
  if (Status st = s.device->Alive(); !st.ok()) return st;
  const State* state = FindState(s, name);
  if (state == nullptr) return Status(Code::kNotFound, "no state " + name);
  Value value = {.name = name, .dtype = state->dtype, .dims = state->dims};
  value.bytes.resize(Bytes(*state));
  Status st = Download(*s.device, s.stager, s.state, state->offset, value.bytes.data(), value.bytes.size());
  if (!st.ok()) return st;
  return value;
}

Status Session::WriteState(const std::string& name, const void* data, size_t bytes, std::optional<DType> dtype) {
  SessionImpl& s = *impl_;
  if (Status st = s.device->Alive(); !st.ok()) return st;
  const State* state = FindState(s, name);
  if (state == nullptr) return Status(Code::kNotFound, "no state " + name);
  if (Status st = CheckGiven("state", *state, bytes, dtype); !st.ok()) return st;
  return Upload(*s.device, s.stager, s.state, state->offset, data, bytes);
}

StatusOr<std::vector<Value>> Session::Save() {
  std::vector<Value> values;
  for (const State& state : impl_->bundle.states) {
    if (state.hidden) continue;
    StatusOr<Value> value = ReadState(state.name);
    if (!value.ok()) return value.status();
    values.push_back(std::move(*value));
  }
  return values;
}

Status Session::Restore(const std::vector<Value>& states) {
  const auto given = [&](const std::string& name) {
    return std::count_if(states.begin(), states.end(), [&](const Value& v) { return v.name == name; });
  };
  for (const State& state : impl_->bundle.states) {  // all of it is checked before anything is written
    if (!state.hidden && given(state.name) != 1) {
      return Invalid("state " + state.name + " is given " + std::to_string(given(state.name)) + " times, not once");
    }
  }
  for (const Value& v : states) {
    const State* state = FindState(*impl_, v.name);
    if (state == nullptr) return Invalid("no state " + v.name);
    if (v.dtype != state->dtype || v.dims != state->dims || v.bytes.size() != Bytes(*state)) {
      return Invalid("state " + v.name + " of " + TypeText(state->dtype, state->dims) + " was given as " +
                     TypeText(v.dtype, v.dims) + " in " + Num(v.bytes.size()) + " bytes");
    }
  }
  for (const Value& v : states) {
    if (Status st = WriteState(v.name, v.bytes.data(), v.bytes.size()); !st.ok()) return st;
  }
  return Status();
}

Profile Session::profile() const {
  Profile profile = impl_->profile;
  for (const Recording& rec : impl_->recordings) {
    profile.steps.insert(profile.steps.end(), rec.times.begin(), rec.times.end());
  }
  return profile;
}

Status Session::EnableStepTimes(bool on) {
  if (on && impl_->device->timestamp_bits == 0) {
    return Status(Code::kUnimplemented, "device " + impl_->device->name + " has no time stamps");
  }
  if (on == impl_->step_times) return Status();
  impl_->step_times = on;
  for (Recording& rec : impl_->recordings) rec.dirty = true;
  return Status();
}

}  // namespace agc::rt
