// Runs an entry of a bundle with the runtime alone: no compiler, no Abseil.
//   runtime_only BUNDLE [--device=NAME] [--trusted] [ENTRY [STEPS] [NAME=NUMBER | NAME=@FILE]...]
// Without an entry it lists what the bundle offers. Values that are not given are zeros; FILE holds raw bytes,
// row-major.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace {

using namespace agc::rt;

int Fail(const Status& status) {
  fprintf(stderr, "error: %s\n", status.message().c_str());
  return 2;
}

StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(Code::kNotFound, "cannot read " + path);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string Type(const Signature& s) {
  std::string text = DTypeName(s.dtype);
  for (size_t i = 0; i < s.dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(s.dims[i]);
  return text + (s.dims.empty() ? "" : "]");
}

void List(const Session& session) {
  for (const Entry& entry : session.entries()) {
    printf("entry %s\n", entry.name.c_str());
    const std::pair<const char*, const std::vector<Signature>*> roles[] = {
        {"input", &entry.inputs}, {"resident", &entry.residents}, {"param", &entry.params}, {"output", &entry.outputs}};
    for (const auto& [role, list] : roles) {
      for (const Signature& s : *list) printf("  %s %s: %s\n", role, s.name.c_str(), Type(s).c_str());
    }
  }
}

template <typename T>
void Fill(std::vector<uint8_t>& bytes, double number) {
  const T value = static_cast<T>(number);
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) std::memcpy(bytes.data() + i, &value, sizeof(T));
}

// The bytes for a value: from a file, every element a number, or zeros.
StatusOr<std::vector<uint8_t>> Bytes(const Signature& s, const std::map<std::string, std::string>& given) {
  size_t count = 1;
  for (int64_t d : s.dims) count *= static_cast<size_t>(d);
  std::vector<uint8_t> bytes(count * DTypeSize(s.dtype));
  const auto it = given.find(s.name);
  if (it == given.end()) return bytes;
  if (it->second[0] == '@') return ReadFile(it->second.substr(1));
  char* end = nullptr;
  const double number = std::strtod(it->second.c_str(), &end);
  const Status refused(Code::kInvalidArgument, s.name + "=" + it->second + ": give " + Type(s) + " as a file, @FILE");
  if (end == it->second.c_str() || *end != 0) return refused;
  switch (s.dtype) {
    case DType::kF32:
      Fill<float>(bytes, number);
      return bytes;
    case DType::kI32:
      Fill<int32_t>(bytes, number);
      return bytes;
    case DType::kU32:
      Fill<uint32_t>(bytes, number);
      return bytes;
    case DType::kU8:
    case DType::kBool:
      Fill<uint8_t>(bytes, number);
      return bytes;
    default:
      return refused;
  }
}

void Print(const Value& value) {
  printf("%s:", value.name.c_str());
  const StatusOr<std::vector<float>> floats = value.Get<float>();
  const StatusOr<std::vector<int32_t>> ints = value.Get<int32_t>();
  for (size_t i = 0; floats.ok() && i < floats->size() && i < 8; ++i) printf(" %g", static_cast<double>((*floats)[i]));
  for (size_t i = 0; ints.ok() && i < ints->size() && i < 8; ++i) printf(" %d", (*ints)[i]);
  printf(" (%zu bytes)\n", value.bytes.size());
}

int RunEntry(Session& session, const Entry& entry, int64_t steps, const std::map<std::string, std::string>& given) {
  for (const Entry& e : session.entries()) {
    if (e.name != "init" || entry.name == "init") continue;
    if (Status s = session.Init(1); !s.ok()) return Fail(s);
  }
  for (const Signature& r : entry.residents) {
    const StatusOr<std::vector<uint8_t>> bytes = Bytes(r, given);
    if (!bytes.ok()) return Fail(bytes.status());
    if (Status s = session.Bind(r.name, bytes->data(), bytes->size()); !s.ok()) return Fail(s);
  }
  Args args;
  for (const auto* list : {&entry.inputs, &entry.params}) {
    for (const Signature& s : *list) {
      StatusOr<std::vector<uint8_t>> bytes = Bytes(s, given);
      if (!bytes.ok()) return Fail(bytes.status());
      args.push_back(Arg::Raw(s.name, *std::move(bytes)));
    }
  }
  StatusOr<Outputs> outputs = session.Run(entry.name, steps, args);
  if (!outputs.ok()) return Fail(outputs.status());
  for (const Value& value : outputs->values) Print(value);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  DeviceOptions options;
  Trust trust = Trust::kUntrusted;
  std::vector<std::string> words;
  std::map<std::string, std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (word.rfind("--device=", 0) == 0) {
      options.name_or_index = word.substr(9);
    } else if (word == "--trusted") {
      trust = Trust::kTrusted;
    } else if (word.rfind("--", 0) == 0) {
      fprintf(stderr, "error: there is no option %s\n", word.c_str());
      return 2;
    } else if (equals != std::string::npos && !words.empty()) {
      given[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      words.push_back(word);
    }
  }
  if (words.empty() || words.size() > 3) {
    fprintf(stderr, "usage: runtime_only BUNDLE [--device=NAME] [--trusted] [ENTRY [STEPS] [NAME=VALUE]...]\n");
    return 2;
  }
  StatusOr<Device> device = Device::Open(options);
  if (!device.ok()) return Fail(device.status());
  printf("device: %s\n", device->description().c_str());
  const StatusOr<std::vector<uint8_t>> file = ReadFile(words[0]);
  if (!file.ok()) return Fail(file.status());
  StatusOr<Session> session = device->Load(*file, trust);
  if (!session.ok()) return Fail(session.status());
  if (words.size() == 1) {
    List(*session);
    return 0;
  }
  for (const Entry& entry : session->entries()) {
    if (entry.name != words[1]) continue;
    return RunEntry(*session, entry, words.size() > 2 ? std::strtoll(words[2].c_str(), nullptr, 10) : 1, given);
  }
  fprintf(stderr, "error: no entry %s\n", words[1].c_str());
  List(*session);
  return 2;
}
