// What every row of the op table has, beyond what CheckOp can see when the table is compiled.
#include <gtest/gtest.h>

#include "ir/op_def.h"

namespace agc {
namespace {

TEST(OpTable, EveryRowHasAShapeRule) {
  for (const OpDef* op : AllOps()) EXPECT_NE(op->infer, nullptr) << op->name;
}

// What an op means is said once: by its value at an index, by stages of its own or by other ops.
TEST(OpTable, EveryRowIsDefinedOnce) {
  for (const OpDef* op : AllOps()) {
    const int definitions = (op->at != nullptr) + (op->emit != nullptr) + (op->decompose != nullptr);
    const bool may_lack = op->cls == OpClass::kData || op->cls == OpClass::kSymbol;
    EXPECT_TRUE(definitions == 1 || (definitions == 0 && may_lack)) << op->name << " has " << definitions;
    EXPECT_EQ(op->cls == OpClass::kComposite, op->decompose != nullptr) << op->name;
  }
}

TEST(OpTable, WhatHasAValueHasAReference) {
  for (const OpDef* op : AllOps()) {
    // A symbol's gradient is what counts: the sweep cannot call it.
    const bool has_value = op->cls != OpClass::kSymbol && (op->at != nullptr || op->decompose != nullptr);
    EXPECT_TRUE(!has_value || !op->numpy.empty()) << op->name;
  }
}

}  // namespace
}  // namespace agc
