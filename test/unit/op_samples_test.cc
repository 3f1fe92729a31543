// The samples that generic tests call ops with: long ones are long, and none is so large that thousands of them would
// take hours.
#include "ir/op_samples.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace agc {
namespace {

std::vector<OpSample> LongSamples(const OpDef& op) {
  std::vector<OpSample> all = SamplesOf(op, SampleSet::kAll).value();
  all.erase(std::remove_if(all.begin(), all.end(), [](const OpSample& s) { return s.size != SampleSize::kLong; }),
            all.end());
  return all;
}

int64_t Elements(const OpSample& s) {
  int64_t n = 0;
  for (const TensorType& t : s.operands) n += t.elements();
  for (const TensorType& t : s.results) n += t.elements();
  return n;
}

TEST(OpSamples, LongOnesAreBounded) {
  for (const OpDef* op : AllOps()) {
    if (op->numpy.empty()) continue;
    for (const OpSample& s : LongSamples(*op)) {
      EXPECT_GE(Elements(s), 1031) << s.name;
      EXPECT_LE(Elements(s), 1 << 18) << s.name;
    }
  }
}

// Where equal axes would all become long another one does, and recurrence keeps its few steps.
TEST(OpSamples, OneAxisGetsLong) {
  const auto first = [](const char* op) { return ToString(LongSamples(*FindOp(op)).at(0).operands[0]); };
  EXPECT_EQ(first("scatter_rows"), "f32[2,1031,2]");
  EXPECT_EQ(first("embedding"), "f32[1031,3]");
  EXPECT_EQ(first("lstm"), "f32[2,2,1031]");
  EXPECT_EQ(first("softmax"), "f32[2,1031]");
}

}  // namespace
}  // namespace agc
