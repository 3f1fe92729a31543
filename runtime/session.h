// A loaded bundle: its states, its residents, and its entries, each recorded once into a command buffer and replayed.
//   AGC_RETURN_IF_ERROR(session.Init(/*seed=*/1));                          // or session.Restore(checkpoint)
//   AGC_RETURN_IF_ERROR(session.Bind("images", data, bytes));
//   AGC_ASSIGN_OR_RETURN(Outputs out, session.Run("train_step", 50, {{"lr", 0.05f}, {"rows", rows}}));
//   AGC_ASSIGN_OR_RETURN(std::vector<float> losses, out.Get<float>("loss"));    // 50 of them, an each_step output
// One thread at a time per session; several sessions may share a device.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/format.h"
#include "runtime/status.h"

namespace agc::rt {

struct SessionImpl;

enum class Trust : uint8_t { kUntrusted, kTrusted };

template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<double> { static constexpr DType value = DType::kF64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::kF32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kI64; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kI32; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kI16; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kI8; };
template <> struct DTypeOf<uint64_t> { static constexpr DType value = DType::kU64; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::kU32; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::kU16; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kU8; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
// clang-format on

// One input or param of a Run. A scalar or vector brings its dtype, which must be the declared one (uint8_t also passes
// for bool); bytes given by Raw or View bring none.
class Arg {
 public:
  template <typename T>
  requires requires { DTypeOf<T>::value; }
  Arg(std::string name, T value) : Arg(std::move(name), std::vector<uint8_t>(sizeof(T)), DTypeOf<T>::value) {
    std::memcpy(owned_.data(), &value, sizeof(T));
  }
  template <typename T>
  Arg(std::string name, const std::vector<T>& values)
      : Arg(std::move(name), std::vector<uint8_t>(values.size() * sizeof(T)), DTypeOf<T>::value) {
    if (!values.empty()) std::memcpy(owned_.data(), values.data(), owned_.size());
  }
  static Arg Raw(std::string name, std::vector<uint8_t> bytes) { return Arg(std::move(name), std::move(bytes), {}); }
  // Not copied: `data` must stay until Run returns.
  static Arg View(std::string name, const void* data, size_t bytes) {
    Arg arg(std::move(name), std::vector<uint8_t>(), {});
    arg.view_ = static_cast<const uint8_t*>(data);
    arg.view_bytes_ = bytes;
    return arg;
  }

  const std::string& name() const { return name_; }
  const uint8_t* data() const { return view_ != nullptr ? view_ : owned_.data(); }
  size_t size() const { return view_ != nullptr ? view_bytes_ : owned_.size(); }
  std::optional<DType> dtype() const { return dtype_; }

 private:
  Arg(std::string name, std::vector<uint8_t> bytes, std::optional<DType> dtype)
      : name_(std::move(name)), owned_(std::move(bytes)), dtype_(dtype) {}
  std::string name_;
  std::vector<uint8_t> owned_;
  const uint8_t* view_ = nullptr;
  size_t view_bytes_ = 0;
  std::optional<DType> dtype_;
};
using Args = std::vector<Arg>;

// A value that came back, row-major; bool is one byte per element.
struct Value {
  std::string name = {};
  DType dtype = DType::kF32;
  std::vector<int64_t> dims = {};
  std::vector<uint8_t> bytes = {};

  // The elements. T is the dtype's, or float for f16 and bf16, whose values it holds, or uint8_t for bool.
  template <typename T>
  StatusOr<std::vector<T>> Get() const {
    std::vector<T> values(bytes.size() / DTypeSize(dtype));
    if (Status st = CopyTo(DTypeOf<T>::value, values.data()); !st.ok()) return st;
    return values;
  }

 private:
  Status CopyTo(DType as, void* to) const;
};

struct Outputs {
  std::vector<Value> values = {};                    // in the order the entry declares
  const Value* Find(const std::string& name) const;  // null if there is none
  template <typename T>
  StatusOr<std::vector<T>> Get(const std::string& name) const {
    const Value* value = Find(name);
    return value == nullptr ? StatusOr<std::vector<T>>(Missing(name)) : value->Get<T>();
  }

 private:
  Status Missing(const std::string& name) const;
};

struct StepTime {
  std::string label = {}, origin = {};
  uint64_t runs = 0;
  double nanoseconds = 0;  // of all runs together
};

struct Profile {
  uint64_t recordings = 0, submits = 0, dispatches = 0, runs = 0, pipelines = 0;
  uint64_t state_bytes = 0, temp_bytes = 0, const_bytes = 0, host_bytes = 0, resident_bytes = 0;
  std::vector<StepTime> steps = {};  // of the entries run since EnableStepTimes(true), in plan order
};

// Movable. A call after the device was lost returns the error that reported the loss.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Names, types and plans of the variant that was taken.
  const std::vector<Entry>& entries() const;
  const std::vector<State>& states() const;
  BufferAbi abi() const;

  // Uploads a resident (exactly its bytes; a dtype that is given must be its own). A first Bind marks the entries that
  // use it for recording; later ones overwrite the same memory.
  Status Bind(const std::string& name, const void* data, size_t bytes, std::optional<DType> dtype = {});
  template <typename T>
  Status Bind(const std::string& name, const std::vector<T>& values) {
    return Bind(name, values.data(), values.size() * sizeof(T), DTypeOf<T>::value);
  }

  // Runs `entry` n times. Every input is given once and is the same for all n; a param has one value or n. Outputs
  // declared each_step come back as [n, ...], the others from the last step.
  StatusOr<Outputs> Run(const std::string& entry, int64_t n, const Args& args = {});

  // Runs the entry "init", which writes every state; its param "seed" gets the number (cut to its dtype).
  Status Init(uint64_t seed);

  // All states but hidden ones. Restoring a saved list continues bit for bit; Restore wants every state.
  StatusOr<std::vector<Value>> Save();
  Status Restore(const std::vector<Value>& states);
  StatusOr<Value> ReadState(const std::string& name);
  Status WriteState(const std::string& name, const void* data, size_t bytes, std::optional<DType> dtype = {});
  template <typename T>
  Status WriteState(const std::string& name, const std::vector<T>& values) {
    return WriteState(name, values.data(), values.size() * sizeof(T), DTypeOf<T>::value);
  }

  Profile profile() const;
  // From now on, entries are recorded with time stamps and run step by step. Unimplemented where the device has none.
  Status EnableStepTimes(bool on);

 private:
  friend class Device;
  explicit Session(std::unique_ptr<SessionImpl> impl);
  std::unique_ptr<SessionImpl> impl_;
};

}  // namespace agc::rt
