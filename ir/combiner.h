// The combiner table: how a reduction merges its state. A combiner has components, an identity for each, and a merge of
// two states written with Exprs, from which evaluators, schedules and split reductions all come.
//   FindCombiner("argmax")->components == 2   // value, position: ties keep the first
#pragma once
#include <array>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/expr.h"

namespace agc {

struct Combiner {
  absl::string_view name = {};
  int components = 1;
  // Identity of a component for the dtype it is kept in.
  Scalar (*identity)(int component, DType dtype) = nullptr;
  // Merges state `a` (earlier elements) with `b` (later ones); both have `components` members. Associative; the order
  // of arguments is that of the elements, so combiners need not commute.
  void (*merge)(absl::Span<const Expr> a, absl::Span<const Expr> b, absl::Span<Expr> out) = nullptr;
  absl::string_view doc = {};
};

absl::Span<const Combiner> Combiners();                // sorted by name
const Combiner* FindCombiner(absl::string_view name);  // nullptr if unknown
// The dtype sums of `dtype` are kept in: f32 for f16 and bf16, i32 for i8, i16, u8, u16 and bool, else itself.
DType AccumulatorOf(DType dtype);

}  // namespace agc
