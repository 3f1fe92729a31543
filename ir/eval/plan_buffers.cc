#include "ir/eval/plan_buffers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace agc {
namespace {

TensorType Slot(const TensorType& ring) { return {ring.dtype, Dims(ring.dims.begin() + 1, ring.dims.end())}; }

// A ring whose every slot holds `value`.
HostTensor FillRing(const HostTensor& value, const TensorType& ring) {
  HostTensor all = HostTensor::Zeros({value.type.dtype, ring.dims});
  for (int64_t slot = 0; slot < ring.dims[0]; ++slot) {
    std::copy(value.bytes.begin(), value.bytes.end(), all.bytes.begin() + slot * value.type.bytes());
  }
  return all;
}

}  // namespace

int64_t RunIndex(const Program& program, const EvalInputs& inputs) {
  const absl::StatusOr<HostTensor> t = StartOfState(program, std::string(kRunIndex), inputs, EvalMode::kExact);
  return t.ok() && t->type.elements() > 0 ? t->at(0).i() : 0;
}

absl::StatusOr<std::optional<HostTensor>> StartOf(const Program& program, const Buffer& row, const EvalInputs& inputs,
                                                  EvalMode mode) {
  switch (row.kind) {
    case BufferKind::kInput:
    case BufferKind::kResident:
    case BufferKind::kParam: {
      const auto given = inputs.params.find(row.symbol);
      const std::string what = absl::StrCat(Name(row.kind), " %", row.symbol);
      if (row.ring && (given == inputs.params.end() || given->second.type.dims != row.type.dims)) {
        AGC_ASSIGN_OR_RETURN(const HostTensor one,
                             GivenTensor(inputs.params, row.symbol, Slot(row.type), what, row.loc, mode));
        return FillRing(one, row.type);
      }
      AGC_ASSIGN_OR_RETURN(HostTensor t, GivenTensor(inputs.params, row.symbol, row.type, what, row.loc, mode));
      return t;
    }
    case BufferKind::kState: {
      AGC_ASSIGN_OR_RETURN(HostTensor t, StartOfState(program, row.symbol, inputs, mode));
      return t;
    }
    case BufferKind::kConst: {
      HostTensor t{row.type, row.data};
      if (static_cast<int64_t>(t.bytes.size()) != row.type.bytes()) {
        return absl::InternalError(
            absl::StrCat("const buffer %", row.name, " has ", t.bytes.size(), " bytes, its type ", ToString(row.type)));
      }
      return ConvertTo(t, EvalType(row.type, mode).dtype);
    }
    case BufferKind::kCounter:
      return HostTensor::Zeros(row.type);
    case BufferKind::kOutput:
    case BufferKind::kTemp:
    case BufferKind::kScratch:
      break;
  }
  return std::nullopt;
}

HostTensor Visible(const Buffer& row, HostTensor value, int64_t run_index) {
  if (!row.ring) return value;
  HostTensor slice = HostTensor::Zeros({value.type.dtype, Slot(row.type).dims});
  const int64_t slot = row.type.dims[0] > 0 ? run_index % row.type.dims[0] : 0;
  const auto begin = value.bytes.begin() + slot * slice.type.bytes();
  std::copy(begin, begin + slice.type.bytes(), slice.bytes.begin());
  return slice;
}

size_t RootOf(const Graph& graph, size_t buffer) {
  for (size_t hops = 0; graph.buffers[buffer].alias >= 0 && hops < graph.buffers.size(); ++hops) {
    buffer = static_cast<size_t>(graph.buffers[buffer].alias);
  }
  return buffer;
}

absl::Status StepError(const Step& step, size_t number, absl::string_view message, absl::StatusCode code) {
  return ErrorAt(
      step.origin,
      absl::StrCat("step ", number, step.label.empty() ? "" : absl::StrCat(" (", step.label, ")"), ": ", message),
      code);
}

}  // namespace agc
