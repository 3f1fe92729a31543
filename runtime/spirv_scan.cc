#include "runtime/spirv_scan.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace agc::rt {
namespace {

enum Opcode : uint32_t { kEntryPoint = 15, kExecutionMode = 16, kCapability = 17, kDecorate = 71 };
enum Operand : uint32_t { kGLCompute = 5, kLocalSize = 17, kBinding = 33, kDescriptorSet = 34 };

Status Bad(std::string message) { return Status(Code::kInvalidArgument, "SPIR-V: " + message); }

Status CheckHeader(const std::vector<uint32_t>& w) {
  if (w.size() < 5) return Bad("module of " + std::to_string(w.size()) + " words");
  if (w[0] != 0x07230203) return Bad("wrong magic number");
  if (w[1] < 0x00010000 || w[1] > 0x00010600 || (w[1] & 0xff) != 0) return Bad("version " + std::to_string(w[1]));
  if (w[3] == 0 || w[3] > 0x3fffff) return Bad("id bound " + std::to_string(w[3]));
  return Status();
}

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
    if (opcode == kExecutionMode && length == 6 && op[2] == kLocalSize) facts.local_size = {op[3], op[4], op[5]};
    if (opcode == kDecorate && length == 4 && op[2] == kBinding) facts.bindings.push_back(op[3]);
    if (opcode == kDecorate && length == 4 && op[2] == kDescriptorSet && op[3] != 0) facts.other_sets = true;
    at += length;
  }
  if (!main) return Bad("no compute entry point named main");
  std::sort(facts.bindings.begin(), facts.bindings.end());
  facts.bindings.erase(std::unique(facts.bindings.begin(), facts.bindings.end()), facts.bindings.end());
  return facts;
}

}  // namespace agc::rt
