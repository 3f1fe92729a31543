#include "runtime/format.h"

#include "runtime/status.h"

namespace agc::rt {
namespace {

struct DTypeRow {
  const char* name;
  uint32_t size;
};
constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{{"f64", 8},
                                                        {"f32", 4},
                                                        {"f16", 2},
                                                        {"bf16", 2},
                                                        {"i64", 8},
                                                        {"i32", 4},
                                                        {"i16", 2},
                                                        {"i8", 1},
                                                        {"u64", 8},
                                                        {"u32", 4},
                                                        {"u16", 2},
                                                        {"u8", 1},
                                                        {"bool", 1}}};
constexpr std::array<const char*, 9> kBufferKinds = {"input",  "resident", "param",   "state",  "const",
                                                     "output", "temp",     "scratch", "counter"};
constexpr std::array<const char*, 8> kCodes = {
    "OK",        "INVALID_ARGUMENT",    "NOT_FOUND", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED",
    "DATA_LOSS", "FAILED_PRECONDITION", "INTERNAL"};

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

const char* CodeName(Code code) {
  const size_t i = static_cast<size_t>(code);
  return i < kCodes.size() ? kCodes[i] : "?";
}

}  // namespace agc::rt
