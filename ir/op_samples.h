// Calls of a row that generic tests make: its sample, in every dtype and in other sizes, as far as the shape rule takes
// them. Extents that are equal in the sample stay equal, so that operands go on fitting each other.
//   for (const OpSample& s : SamplesOf(*FindOp("matmul"), SampleSet::kPairs)) { s.name; s.operands; s.attrs; }
//   matmul f32[3,4] f32[4,5]; matmul_one f32[1,1] f32[1,1]; matmul_odd ...; matmul_f16_empty f16[0,4] f16[4,5]; ...
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/op_def.h"

namespace agc {

// Every extent as it is; 1; odd and larger; one of them so long that strides are large and a row is more than a
// workgroup, but no call of more than 2^18 elements; one of them 0.
enum class SampleSize { kOrdinary, kOne, kOdd, kLong, kEmpty };
inline constexpr int kSampleSizes = 5;
absl::string_view Name(SampleSize size);

struct OpSample {
  const OpDef* op = nullptr;
  std::string name = {};   // distinct: op, dtypes where they are not the row's, size where it is not ordinary
  std::string dtype = {};  // what was replaced, "f16" or "i64"; empty: the row's own
  SampleSize size = SampleSize::kOrdinary;
  std::vector<TensorType> operands = {};
  std::vector<Attr> attrs = {};  // complete
  Types results = {};
  double growth = 1;  // operand elements per result element, relative to the row's sample: tolerances of sums grow so
};

// The row's own sample; it alone, in every dtype in one size and in every size but the long one in one dtype; all
// dtypes in all sizes.
enum class SampleSet { kOwn, kPairs, kAll };
// The row's own comes first. Fails where that one is wrong.
absl::StatusOr<std::vector<OpSample>> SamplesOf(const OpDef& op, SampleSet set);

// The call as a graph: inputs x0, x1, ...; outputs y0, ..., one per element of a tuple.
Graph GraphOf(const OpSample& sample, absl::string_view name);

}  // namespace agc
