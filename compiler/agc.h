// What users include: tensors, modules, layers, optimisers and Compile.
//   agc::Module m("scale");
//   m.Graph("infer", [](agc::Trace& t) { t.Output("y", t.Input("x", agc::kF32, {8}) * 2.0); });
//   AGC_ASSIGN_OR_RETURN(agc::Bundle bundle, agc::Compile(m, device.target()));
//   AGC_ASSIGN_OR_RETURN(agc::rt::Session s, device.Load(bundle.bytes()));
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/compile.h"
#include "compiler/grad.h"
#include "compiler/init.h"
#include "compiler/module.h"
#include "compiler/nn.h"
#include "compiler/optim.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/build_shape.h"
#include "ir/build_window.h"
#include "runtime/status.h"

namespace agc {

inline constexpr DType kF64 = DType::kF64, kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;
inline constexpr DType kI64 = DType::kI64, kI32 = DType::kI32, kI16 = DType::kI16, kI8 = DType::kI8;
inline constexpr DType kU64 = DType::kU64, kU32 = DType::kU32, kU16 = DType::kU16, kU8 = DType::kU8;
inline constexpr DType kBool = DType::kBool;

// Runtime statuses become Abseil's, so that the AGC_ macros take both.
absl::Status AsStatus(const rt::Status& status);

inline Tensor Cast(Tensor x, DType dtype, Loc loc = Loc::Here()) { return CastTo(x, dtype, loc); }
// Literals take the tensor's dtype.
inline Tensor Rem(Tensor a, double b, Loc loc = Loc::Here()) { return Rem(a, ScalarLike(a, b, loc), loc); }
inline Tensor Maximum(Tensor a, double b, Loc loc = Loc::Here()) { return Maximum(a, ScalarLike(a, b, loc), loc); }
inline Tensor Minimum(Tensor a, double b, Loc loc = Loc::Here()) { return Minimum(a, ScalarLike(a, b, loc), loc); }
inline Tensor Pow(Tensor a, double b, Loc loc = Loc::Here()) { return Pow(a, ScalarLike(a, b, loc), loc); }
inline Tensor Greater(Tensor a, double b, Loc loc = Loc::Here()) { return Greater(a, ScalarLike(a, b, loc), loc); }
inline Tensor Less(Tensor a, double b, Loc loc = Loc::Here()) { return Less(a, ScalarLike(a, b, loc), loc); }
inline Tensor Equal(Tensor a, double b, Loc loc = Loc::Here()) { return Equal(a, ScalarLike(a, b, loc), loc); }

// A compiled module: contents and the bytes of the file.
class Bundle {
 public:
  explicit Bundle(rt::Bundle content);
  const rt::Bundle& content() const { return content_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  absl::Status WriteFile(const std::string& path) const;

 private:
  rt::Bundle content_;
  std::vector<uint8_t> bytes_;
};

// Writes the file of a bundle without a second copy of what is in it.
absl::Status WriteBundleFile(const std::string& path, const rt::Bundle& content);

// Compiles for the device whose description is given. All independent errors of the traces come back in one status. The
// buffer ABI is that of the options: bindings, which every load takes, unless they say otherwise.
absl::StatusOr<Bundle> Compile(const Module& module, absl::string_view target, CompileOptions options = {});

// The bundle with the values of all states, as Session::Save gives them.
template <typename Values>
absl::StatusOr<Bundle> WithStates(const Bundle& bundle, const Values& values) {
  std::vector<StateValue> states;
  for (const auto& v : values) states.push_back({v.name, v.bytes, v.dtype, v.dims});
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, WithStates(bundle.content(), states));
  return Bundle(std::move(content));
}

}  // namespace agc
