// Reads protocol-buffer messages straight from bytes: four wire types, nothing copied but text. Errors stick: after the
// first one Next() is false, and the message that is read tells which field of which message was wrong, and where.
//   WireError error;
//   for (WireReader in(bytes, "NodeProto", error); in.Next();) {
//     if (in.field() == 1) in.Text(node.inputs.emplace_back());
//   }
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace agc {

using ByteSpan = absl::Span<const uint8_t>;

struct WireError {
  const uint8_t* base = nullptr;  // the file's first byte: places in messages are counted from here
  std::string message = {};       // the first error; empty: none
  bool ok() const { return message.empty(); }
};

class WireReader {
 public:
  // `message` names the type in errors; `bytes`, `message` and `error` must outlive the reader.
  WireReader(ByteSpan bytes, absl::string_view message, WireError& error)
      : left_(bytes), message_(message), error_(&error) {}

  // Reads the next field's number and value; false at the end of the message and after an error.
  bool Next();
  uint32_t field() const { return field_; }

  // The field's value. Scalars that repeat may be packed, so the lists append one or many.
  void Int(int64_t& value);
  void Ints(std::vector<int64_t>& values);
  void Float(float& value);
  void Floats(std::vector<float>& values);
  void Doubles(std::vector<double>& values);
  void Text(std::string& value);
  ByteSpan Bytes();
  WireReader Message(absl::string_view message) { return {Bytes(), message, *error_}; }

 private:
  enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  void Fail(absl::string_view what);
  bool Expect(Wire wire);
  bool Varint(uint64_t& value);
  template <typename T>
  void Fixed(Wire wire, std::vector<T>& values);

  ByteSpan left_;
  absl::string_view message_;
  WireError* error_;
  uint32_t field_ = 0;
  Wire wire_ = kVarint;
  uint64_t number_ = 0;  // value of kVarint
  ByteSpan bytes_ = {};  // value of the others
};

}  // namespace agc
