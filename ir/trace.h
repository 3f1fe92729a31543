// The graph that a thread is tracing, and whether a value may be used in a trace: the check of every function that
// takes values from users and does more with them than build an op.
//   Builder* b = Live(x, "dropout: input", loc);          // null after a diagnostic, or where x is poison
//   if (b == nullptr) return Poisoned(x);
#pragma once
#include "absl/strings/string_view.h"
#include "ir/value.h"

namespace agc {

// The builder of the graph that this thread traces, null outside of Module::Graph: where a mistake is recorded that no
// operand leads to a builder for.
Builder* CurrentTrace();
// While alive, `b` is the current trace.
class TraceScope {
 public:
  explicit TraceScope(Builder& b);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  Builder* before_;
};

// Whether x may be used in b's trace; if not, the reason is recorded ("<what> is an empty tensor"), unless x is poison,
// whose reason is recorded already.
bool Live(Value x, Builder& b, absl::string_view what, Loc loc);
// x's own builder under the same conditions, else null.
Builder* Live(Value x, absl::string_view what, Loc loc);
// Poison for what is made of x, after the reason was recorded.
Value Poisoned(Value x);

}  // namespace agc
