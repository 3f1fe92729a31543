#include "compiler/import/wire.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace agc {

void WireReader::Fail(absl::string_view what) {
  if (!error_->ok()) return;
  error_->message =
      absl::StrCat("byte ", left_.data() - error_->base, ": ", what, " in field ", field_, " of ", message_);
}

bool WireReader::Varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
    const uint8_t byte = left_[0];
    left_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  Fail("a number without an end");
  return false;
}

bool WireReader::Next() {
  if (!error_->ok() || left_.empty()) return false;
  uint64_t tag = 0;
  if (!Varint(tag)) return false;
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return Fail("no field number"), false;
  uint64_t size = 0;
  switch (wire_) {
    case kVarint:
      return Varint(number_);
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      if (!Varint(size)) return false;
      break;
    default:
      return Fail(absl::StrCat("wire type ", tag & 7)), false;
  }
  if (size > left_.size()) return Fail(absl::StrCat(size, " bytes where ", left_.size(), " are left")), false;
  bytes_ = left_.subspan(0, size);
  left_.remove_prefix(size);
  return true;
}

bool WireReader::Expect(Wire wire) {
  if (wire_ == wire) return error_->ok();
  Fail(absl::StrCat("wire type ", static_cast<uint32_t>(wire_), " instead of ", static_cast<uint32_t>(wire)));
  return false;
}

void WireReader::Int(int64_t& value) {
  if (Expect(kVarint)) value = static_cast<int64_t>(number_);
}

void WireReader::Ints(std::vector<int64_t>& values) {
  if (wire_ == kVarint) return values.push_back(static_cast<int64_t>(number_));
  if (!Expect(kBytes)) return;
  WireReader packed(bytes_, message_, *error_);
  packed.field_ = field_;
  uint64_t value = 0;
  while (!packed.left_.empty() && packed.Varint(value)) values.push_back(static_cast<int64_t>(value));
}

template <typename T>
void WireReader::Fixed(Wire wire, std::vector<T>& values) {
  if (wire_ != kBytes && !Expect(wire)) return;
  if (bytes_.size() % sizeof(T) != 0) return Fail("a list that ends within a number");
  if (bytes_.empty()) return;
  const size_t before = values.size();
  values.resize(before + bytes_.size() / sizeof(T));
  std::memcpy(values.data() + before, bytes_.data(), bytes_.size());
}

void WireReader::Float(float& value) {
  if (Expect(kFixed32)) std::memcpy(&value, bytes_.data(), sizeof(value));
}
void WireReader::Floats(std::vector<float>& values) { Fixed(kFixed32, values); }
void WireReader::Doubles(std::vector<double>& values) { Fixed(kFixed64, values); }

void WireReader::Text(std::string& value) {
  const ByteSpan bytes = Bytes();
  value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

ByteSpan WireReader::Bytes() { return Expect(kBytes) ? bytes_ : ByteSpan(); }

}  // namespace agc
