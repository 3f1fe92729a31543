#include "runtime/spirv_scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace agc::rt {
namespace {

enum Opcode : uint32_t {
  kEntryPoint = 15,
  kExecutionMode = 16,
  kCapability = 17,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kConstantComposite = 44,
  kVariable = 59,
  kDecorate = 71,
  kExecutionModeId = 331,
};
enum Operand : uint32_t {
  kGLCompute = 5,
  kBuiltIn = 11,
  kLocalSize = 17,
  kWorkgroupSize = 25,
  kBinding = 33,
  kDescriptorSet = 34,
};
enum StorageClass : uint32_t {
  kInput = 1,
  kWorkgroup = 4,
  kPrivate = 6,
  kFunction = 7,
  kPushConstant = 9,
  kStorageBuffer = 12,
};

Status Bad(std::string message) { return Status(Code::kInvalidArgument, "SPIR-V: " + message); }

Status CheckHeader(const std::vector<uint32_t>& w) {
  if (w.size() < 5) return Bad("module of " + std::to_string(w.size()) + " words");
  if (w[0] != 0x07230203) return Bad("wrong magic number");
  if (w[1] < 0x00010000 || w[1] > 0x00010600 || (w[1] & 0xff) != 0) return Bad("version " + std::to_string(w[1]));
  if (w[3] == 0 || w[3] > 0x3fffff) return Bad("id bound " + std::to_string(w[3]));
  return Status();
}

// The workgroup size: the execution mode, and constants decorated WorkgroupSize, which win over it and must agree.
struct Sizes {
  std::map<uint32_t, uint32_t> constant = {};                  // by id; no specialisation constants
  std::map<uint32_t, std::array<uint32_t, 3>> composite = {};  // ids of its parts
  std::vector<uint32_t> decorated = {};
  std::vector<std::array<uint32_t, 3>> modes = {};
  bool by_id = false;  // an execution mode may refer to specialisation constants

  void See(const uint32_t* op, uint32_t opcode, uint32_t length) {
    if (opcode == kConstant && length == 4) constant[op[2]] = op[3];
    if (opcode == kConstantComposite && length == 6) composite[op[2]] = {op[3], op[4], op[5]};
    if (opcode == kExecutionMode && length == 6 && op[2] == kLocalSize) modes.push_back({op[3], op[4], op[5]});
    if (opcode == kDecorate && length == 4 && op[2] == kBuiltIn && op[3] == kWorkgroupSize) decorated.push_back(op[1]);
    by_id |= opcode == kExecutionModeId;
  }

  bool Literal() const {
    if (modes.size() != 1 || by_id) return false;
    for (uint32_t id : decorated) {
      const auto parts = composite.find(id);
      if (parts == composite.end()) return false;
      for (int d = 0; d < 3; ++d) {
        const auto value = constant.find(parts->second[d]);
        if (value == constant.end() || value->second != modes[0][d]) return false;
      }
    }
    return true;
  }
};

// Variables by storage class; types come before them in a module.
struct Resources {
  std::set<uint32_t> structs = {};
  std::map<uint32_t, uint32_t> pointee = {};

  void See(const uint32_t* op, uint32_t opcode, uint32_t length, SpirvFacts* facts) {
    if (opcode == kTypeStruct && length >= 2) structs.insert(op[1]);
    if (opcode == kTypePointer && length == 4) pointee[op[1]] = op[3];
    if (opcode != kVariable || length < 4) return;
    switch (op[3]) {
      case kInput:
      case kWorkgroup:
      case kPrivate:
      case kFunction:
        return;
      case kPushConstant:
        facts->push_constants = true;
        return;
      case kStorageBuffer: {  // a block of its own: an array of them takes more descriptors than its layout has
        const auto it = pointee.find(op[1]);
        facts->other_resources |= it == pointee.end() || structs.count(it->second) == 0;
        return;
      }
      default:
        facts->other_resources = true;
    }
  }
};

bool IsMain(const uint32_t* instruction, uint32_t length) {
  return length >= 5 && instruction[1] == kGLCompute && std::memcmp(instruction + 3, "main\0\0\0", 8) == 0;
}

}  // namespace

bool SpirvFacts::HasCapability(uint32_t number) const {
  return std::find(capabilities.begin(), capabilities.end(), number) != capabilities.end();
}

StatusOr<SpirvFacts> ScanSpirv(const std::vector<uint32_t>& words) {
  if (Status status = CheckHeader(words); !status.ok()) return status;
  SpirvFacts facts;
  Resources resources;
  Sizes sizes;
  bool main = false;
  for (size_t at = 5; at < words.size();) {
    const uint32_t length = words[at] >> 16, opcode = words[at] & 0xffff;
    if (length == 0 || length > words.size() - at) {
      return Bad("instruction of " + std::to_string(length) + " words at word " + std::to_string(at) + " of " +
                 std::to_string(words.size()));
    }
    const uint32_t* op = &words[at];
    if (opcode == kCapability && length == 2) facts.capabilities.push_back(op[1]);
    if (opcode == kEntryPoint) main = main || IsMain(op, length);
    sizes.See(op, opcode, length);
    resources.See(op, opcode, length, &facts);
    if (opcode == kDecorate && length == 4 && op[2] == kBinding) facts.bindings.push_back(op[3]);
    if (opcode == kDecorate && length == 4 && op[2] == kDescriptorSet && op[3] != 0) facts.other_sets = true;
    at += length;
  }
  if (!main) return Bad("no compute entry point named main");
  facts.literal_local_size = sizes.Literal();
  if (!sizes.modes.empty()) facts.local_size = sizes.modes[0];
  std::sort(facts.bindings.begin(), facts.bindings.end());
  facts.bindings.erase(std::unique(facts.bindings.begin(), facts.bindings.end()), facts.bindings.end());
  return facts;
}

}  // namespace agc::rt
