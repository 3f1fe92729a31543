// Status and StatusOr of the runtime, which links no Abseil. Codes are those of absl::StatusCode that agc uses.
//   agc::rt::StatusOr<Session> s = device.Load(bytes, Trust::kUntrusted);
//   if (!s.ok()) Print(s.status().message());
#pragma once
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace agc::rt {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,     // the caller's mistake
  kNotFound,            // a file, an entry, a device
  kUnimplemented,       // not supported
  kResourceExhausted,   // a device limit, memory
  kDataLoss,            // a bad bundle
  kFailedPrecondition,  // e.g. a resident that is not bound
  kInternal,            // a Vulkan error
};
const char* CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const { return ok() ? "OK" : std::string(CodeName(code_)) + ": " + message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_ = {};
};

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    if (status_.ok()) std::abort();                       // a StatusOr without a value must say why
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_ = {};
  std::optional<T> value_ = {};
};

}  // namespace agc::rt
