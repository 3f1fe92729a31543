#include "codegen/spirv_access.h"

#include <vector>

#include "runtime/format.h"

namespace agc {
namespace {

// The instructions that matter here (SPIR-V 1.5 and the cooperative matrix extensions), with the specification's names.
enum SpvOpcode : uint32_t {
  kOpTypeArray = 28,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpConstant = 43,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpLoad = 61,
  kOpStore = 62,
  kOpCopyMemory = 63,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpPtrAccessChain = 67,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpCompositeExtract = 81,
  kOpCopyObject = 83,
  kOpUConvert = 113,
  kOpConvertPtrToU = 117,
  kOpConvertUToPtr = 120,
  kOpBitcast = 124,
  kOpIAdd = 128,
  kOpSelect = 169,
  kOpAtomicLoad = 227,
  kOpAtomicStore = 228,
  kOpAtomicAnd = 240,
  kOpAtomicOr = 241,
  kOpAtomicXor = 242,
  kOpPhi = 245,
  kOpCooperativeMatrixLoad = 4457,
  kOpCooperativeMatrixStore = 4458,
  kOpCooperativeMatrixLoadNV = 5359,
  kOpCooperativeMatrixStoreNV = 5360,
  kOpAtomicFMin = 5614,
  kOpAtomicFMax = 5615,
  kOpAtomicFAdd = 6035,
};
constexpr uint32_t kArrayStride = 6, kBinding = 33, kOffset = 35;                                  // decorations
constexpr uint32_t kPushConstantClass = 9, kStorageBufferClass = 12, kPhysicalBufferClass = 5349;  // storage classes
constexpr uint8_t kReads = static_cast<uint8_t>(rt::Access::kRead), kWrites = static_cast<uint8_t>(rt::Access::kWrite);

// What an id stands for: a pointer into a binding, into the push constants, or to (or: the number of) an address.
struct Origin {
  enum Kind : uint8_t { kNone, kBufferPointer, kPushPointer, kAddress } kind = kNone;
  uint32_t place = 0;  // binding number, or byte offset in the push constants
  bool operator==(const Origin&) const = default;
};

struct Scan {
  ModuleAccess found = {};
  std::map<uint32_t, Origin> origin = {};    // by id
  std::map<uint32_t, Origin> contents = {};  // what was stored in a local variable, by its id
  std::map<uint32_t, uint32_t> pointer_class = {}, pointee = {}, constant = {}, binding = {}, stride = {}, element = {};
  std::map<uint32_t, std::vector<uint32_t>> members = {};  // member types of a struct
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> member_offset = {};
  std::map<uint32_t, uint32_t> type_of = {};  // result type of pointers
};

using Operands = absl::Span<const uint32_t>;  // the words after the first

template <typename Map, typename Key>
typename Map::mapped_type Find(const Map& map, const Key& key) {
  auto it = map.find(key);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

void Touch(Scan& s, uint32_t pointer, uint8_t bits) {
  const Origin from = Find(s.origin, pointer);
  if (from.kind == Origin::kBufferPointer) s.found.bindings[from.place] |= bits;
  if (from.kind == Origin::kAddress) s.found.addresses[from.place] |= bits;
  if (from.kind != Origin::kNone) return;
  const uint32_t storage = Find(s.pointer_class, Find(s.type_of, pointer));
  if (storage == kStorageBufferClass || storage == kPhysicalBufferClass) s.found.complete = false;
}

// The byte that an access chain into the push constants ends at; a computed index makes the answer incomplete.
uint32_t PushOffset(Scan& s, uint32_t variable, Operands indices) {
  uint32_t type = Find(s.pointee, Find(s.type_of, variable)), offset = 0;
  for (uint32_t id : indices) {
    if (!s.constant.contains(id)) {
      s.found.complete = false;
      return offset;
    }
    const uint32_t index = s.constant[id];
    const std::vector<uint32_t> fields = Find(s.members, type);
    if (index < fields.size()) {
      offset += Find(s.member_offset, std::pair(type, index));
      type = fields[index];
    } else {
      offset += index * Find(s.stride, type);
      type = Find(s.element, type);
    }
  }
  return offset;
}

void Declare(Scan& s, uint32_t op, Operands w) {
  if (op == kOpTypeArray && w.size() >= 2) s.element[w[0]] = w[1];
  if (op == kOpTypeStruct && w.size() >= 1) s.members[w[0]].assign(w.begin() + 1, w.end());
  if (op == kOpTypePointer && w.size() >= 3) {
    s.pointer_class[w[0]] = w[1];
    s.pointee[w[0]] = w[2];
  }
  if (op == kOpConstant && w.size() >= 3) s.constant[w[1]] = w[2];
  if (op == kOpDecorate && w.size() >= 3 && w[1] == kBinding) s.binding[w[0]] = w[2];
  if (op == kOpDecorate && w.size() >= 3 && w[1] == kArrayStride) s.stride[w[0]] = w[2];
  if (op == kOpMemberDecorate && w.size() >= 4 && w[2] == kOffset) s.member_offset[{w[0], w[1]}] = w[3];
  if (op == kOpVariable && w.size() >= 3) {
    s.type_of[w[1]] = w[0];
    if (w[2] == kStorageBufferClass) s.origin[w[1]] = {Origin::kBufferPointer, Find(s.binding, w[1])};
    if (w[2] == kPushConstantClass) s.origin[w[1]] = {Origin::kPushPointer, 0};
  }
}

// Instructions that make a pointer or an address from another one. w: result type, result, operands.
void Derive(Scan& s, uint32_t op, Operands w) {
  switch (op) {
    case kOpAccessChain:
    case kOpInBoundsAccessChain:
    case kOpPtrAccessChain: {
      Origin from = Find(s.origin, w[2]);
      if (from.kind == Origin::kPushPointer) from.place += PushOffset(s, w[2], w.subspan(3));
      s.type_of[w[1]] = w[0];
      s.origin[w[1]] = from;
      break;
    }
    case kOpCopyObject:
    case kOpUConvert:
    case kOpConvertPtrToU:
    case kOpConvertUToPtr:
    case kOpBitcast:
    case kOpIAdd:
      s.type_of[w[1]] = w[0];
      for (uint32_t id : w.subspan(2)) {
        if (const Origin from = Find(s.origin, id); from.kind == Origin::kAddress || op == kOpCopyObject) {
          s.origin[w[1]] = from;
        }
      }
      break;
    case kOpFunctionCall:
    case kOpSelect:
    case kOpPhi:
    case kOpCompositeExtract:
      for (uint32_t id : w.subspan(2)) {
        if (Find(s.origin, id).kind != Origin::kNone || s.contents.contains(id)) s.found.complete = false;
      }
      break;
    default:
      break;
  }
}

void Load(Scan& s, uint32_t type, uint32_t result, uint32_t pointer) {
  s.type_of[result] = type;
  const Origin from = Find(s.origin, pointer);
  if (from.kind == Origin::kPushPointer) {
    s.origin[result] = {Origin::kAddress, from.place};
  } else if (s.contents.contains(pointer)) {
    s.origin[result] = s.contents[pointer];
  } else {
    Touch(s, pointer, kReads);
  }
}

void Store(Scan& s, uint32_t pointer, uint32_t value) {
  const Origin stored = Find(s.origin, value);
  if (stored.kind != Origin::kNone) {
    auto [it, fresh] = s.contents.emplace(pointer, stored);
    if (!fresh && !(it->second == stored)) s.found.complete = false;
  }
  Touch(s, pointer, kWrites);
}

bool IsAtomicUpdate(uint32_t op) {
  return (op > kOpAtomicStore && op <= kOpAtomicXor) || op == kOpAtomicFMin || op == kOpAtomicFMax ||
         op == kOpAtomicFAdd;
}

void Step(Scan& s, uint32_t op, Operands w) {
  Declare(s, op, w);
  if (w.size() >= 3) Derive(s, op, w);
  if (op == kOpLoad && w.size() >= 3) Load(s, w[0], w[1], w[2]);
  if (op == kOpStore && w.size() >= 2) Store(s, w[0], w[1]);
  if (op == kOpCopyMemory && w.size() >= 2) {
    Touch(s, w[0], kWrites);
    Touch(s, w[1], kReads);
  }
  if (op == kOpAtomicStore && !w.empty()) Touch(s, w[0], kWrites);
  if (w.size() < 3) return;
  if (op == kOpAtomicLoad || op == kOpCooperativeMatrixLoad || op == kOpCooperativeMatrixLoadNV) Touch(s, w[2], kReads);
  if (op == kOpCooperativeMatrixStore || op == kOpCooperativeMatrixStoreNV) Touch(s, w[0], kWrites);
  // Bits are set and cleared where narrow elements lie in words, and nobody reads what was there.
  if (IsAtomicUpdate(op)) Touch(s, w[2], op == kOpAtomicAnd || op == kOpAtomicOr ? kWrites : kReads | kWrites);
}

}  // namespace

ModuleAccess ScanAccess(absl::Span<const uint32_t> words) {
  Scan scan;
  constexpr size_t kHeaderWords = 5;
  if (words.size() < kHeaderWords || words[0] != 0x07230203) return {.complete = false};
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return {.complete = false};
    Step(scan, words[at] & 0xffff, words.subspan(at + 1, length - 1));
    at += length;
  }
  return scan.found;
}

}  // namespace agc
