#include "runtime/format.h"

#include <algorithm>
#include <cstring>

#include "runtime/status.h"

namespace agc::rt {
namespace {

struct DTypeRow {
  const char* name;
  uint32_t size;
};
// clang-format off
constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{
    {"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8}, {"i32", 4}, {"i16", 2}, {"i8", 1}, {"u64", 8},
    {"u32", 4}, {"u16", 2}, {"u8", 1}, {"bool", 1}}};
constexpr std::array<const char*, 9> kBufferKinds = {
    "input", "resident", "param", "state", "const", "output", "temp", "scratch", "counter"};
constexpr std::array<const char*, 8> kCodes = {
    "OK", "INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "DATA_LOSS", "FAILED_PRECONDITION",
    "INTERNAL"};
// clang-format on

}  // namespace

const char* DTypeName(DType dtype) {
  const size_t i = static_cast<size_t>(dtype);
  return i < kDTypes.size() ? kDTypes[i].name : "?";
}

uint32_t DTypeSize(DType dtype) {
  const size_t i = static_cast<size_t>(dtype);
  return i < kDTypes.size() ? kDTypes[i].size : 0;
}

const char* BufferKindName(BufferKind kind) {
  const size_t i = static_cast<size_t>(kind);
  return i < kBufferKinds.size() ? kBufferKinds[i] : "?";
}

uint64_t Checksum(const uint8_t* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<size_t>(8, size - at));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;  // without it the high bits of a word reach only the high bits of the hash
  }
  return hash ^ size;
}

const char* CodeName(Code code) {
  const size_t i = static_cast<size_t>(code);
  return i < kCodes.size() ? kCodes[i] : "?";
}

}  // namespace agc::rt
