// Tensors on the command line: --input x=x.npy, --param lr=0.1, --param lr=0.1,0.2; printed as text or JSON.
//   AGC_ASSIGN_OR_RETURN(HostTensor x, TensorOf("input x", "1,2,3", {DType::kF32, {3}}));
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/eval/tensor.h"
#include "runtime/format.h"
#include "runtime/session.h"
#include "tools/agc/json.h"

namespace agc::tool {

// `value` is a file in .npy format, one number for all elements, or a list of all elements (1,2,3; true,false).
// `steps`: a value per step is taken too; the result then has the steps as a first axis. Errors begin with `what`.
absl::StatusOr<HostTensor> TensorOf(absl::string_view what, const std::string& value, const TensorType& type,
                                    std::optional<int64_t> steps = std::nullopt);

// "y: f32[2,2] = [[1, 2], [3, 4]]"; of large tensors the first elements and the range.
std::string TensorText(absl::string_view name, const HostTensor& t);
Json TensorJson(const HostTensor& t);                              // flat list of the elements
std::string ElementText(const TensorType& type, int64_t element);  // where it is: "[1,2]"

// The runtime's vocabulary in the compiler's.
TensorType TypeOf(const rt::Signature& s);
TensorType TypeOf(const rt::State& s);
HostTensor TensorOf(rt::Value value);

// Of several that have a `name`: the one called so, or InvalidArgument listing all ("input").
template <typename Items>
absl::StatusOr<const typename Items::value_type*> Named(const Items& items, absl::string_view what,
                                                        const std::string& name, absl::string_view where);
absl::Status NoSuch(absl::string_view what, const std::string& name, absl::string_view where,
                    const std::vector<std::string>& names);

template <typename Items>
absl::StatusOr<const typename Items::value_type*> Named(const Items& items, absl::string_view what,
                                                        const std::string& name, absl::string_view where) {
  std::vector<std::string> names;
  for (const auto& item : items) {
    if (item.name == name) return &item;
    names.push_back(item.name);
  }
  return NoSuch(what, name, where, names);
}

}  // namespace agc::tool
