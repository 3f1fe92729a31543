// The op table's contract: an OpDef is the whole meaning of an op, and the compiler knows specific ops from nowhere
// else. Adding an op is one row in ir/ops/, one declaration in ir/build.h and one file test/ops/<name>.agir.
//   {.name = "tanh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"tanh">,
//    .vjp = [](Vjp& s) { s.dx[0] = s.g - s.g * s.y * s.y; }, .numpy = "np.tanh(x0)", .doc = "Hyperbolic tangent."},
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/combiner.h"
#include "ir/expr.h"
#include "ir/graph.h"
#include "ir/value.h"

namespace agc {

enum class OpClass : uint8_t {
  kElementwise,
  kView,
  kReduce,
  kContract,
  kGather,
  kScatter,
  kScan,
  kData,
  kComposite,
  kSymbol,
};
absl::string_view Name(OpClass cls);

// The order is that of AttrValue's alternatives.
enum class AttrKind : uint8_t { kBool, kInt, kFloat, kString, kInts, kDType, kSymbol, kLiteral };
struct AttrDef {
  absl::string_view name = {};
  AttrKind kind = AttrKind::kInt;
  absl::string_view fallback = {};  // default as text ("[]", "0", "false", "zero"); empty: required
  absl::string_view choices = {};   // strings: the legal ones, "same|valid"; empty: any
};
struct AttrList {
  std::array<AttrDef, 6> defs = {};
  size_t count = 0;
  constexpr AttrList() = default;
  constexpr AttrList(std::initializer_list<AttrDef> list) {
    for (const AttrDef& a : list) defs[count++] = a;
  }
  constexpr const AttrDef* begin() const { return defs.data(); }
  constexpr const AttrDef* end() const { return defs.data() + count; }
};

struct Arity {
  int min = 0, max = 0;
  constexpr Arity(int n) : min(n), max(n) {}  // NOLINT: tables read better
  constexpr Arity(int lo, int hi) : min(lo), max(hi) {}
};

// Largest accepted error against the f64 evaluator, relative to max(1, |reference|), per dtype the op computes in.
struct Tolerance {
  double f32 = 1e-6, f16 = 2e-3, bf16 = 2e-2;
};

// How generic tests call the op: operand shapes and attributes as text (default f32[2,3] per operand), operand values
// uniform in [lo, hi]; integer operands are whole numbers in the range.
struct Sample {
  std::array<absl::string_view, 4> shapes = {};
  absl::string_view attrs = {};
  double lo = -1, hi = 1;
  bool differentiable = true;  // false: the sweep skips finite differences (kinks in range, integer results)
};

// Typed access to attributes; a missing or mistyped one is a bug of the table row, not of the user.
struct AttrReader {
  absl::Span<const Attr> attrs = {};
  const Ints& ints(absl::string_view name) const;
  int64_t integer(absl::string_view name) const;
  double number(absl::string_view name) const;
  bool flag(absl::string_view name) const;
  DType dtype(absl::string_view name) const;
  const std::string& text(absl::string_view name) const;
  const std::string& symbol(absl::string_view name) const;
  const LiteralPtr& literal(absl::string_view name) const;
};

// A call that is being checked: operand types and attributes.
struct OpCall : AttrReader {
  const OpDef* def = nullptr;
  absl::InlinedVector<Types, 3> operands = {};
  int arity() const { return static_cast<int>(operands.size()); }
  const TensorType& type(int i) const { return operands[i][0]; }
  absl::Status Error(absl::string_view message) const;  // "<op>: <message>"
};

// Where an op's definition is evaluated: a nest being lowered, or an evaluator. Implementations own the memo tables.
class AtContext {
 public:
  virtual ~AtContext() = default;
  // The operand's value at `index`: a Load where it is materialised, else its own definition there.
  virtual Expr Read(const Op& op, int operand, Index index) = 0;
  // Reduces over new axes of the given extents; `body` is called with them and returns one Expr per component of the
  // combiner, already in the dtype the state is kept in. Returns the components of the result.
  virtual std::vector<Expr> Reduce(const Op& op, const Combiner& combiner, absl::Span<const int64_t> extents,
                                   absl::FunctionRef<std::vector<Expr>(Index)> body) = 0;
  virtual Expr Guard(Expr cond, absl::FunctionRef<Expr()> then, Expr otherwise) = 0;
};

// One op at one output index.
struct At : AttrReader {
  const Graph& graph;
  const Op& op;
  int part;  // element of a tuple op
  ExprPool& pool;
  AtContext& context;
  At(const Graph& g, const Op& o, int tuple_part, ExprPool& p, AtContext& c)
      : AttrReader{o.attrs}, graph(g), op(o), part(tuple_part), pool(p), context(c) {}

  const TensorType& type(int operand) const { return graph.op(op.operands[operand]).type(); }
  const TensorType& out() const { return op.types[part]; }
  int64_t dim(int operand, int axis) const { return type(operand).dims[axis]; }
  int arity() const { return static_cast<int>(op.operands.size()); }

  Expr Read(int operand, Index index) { return context.Read(op, operand, index); }
  // The only way an op reads conditionally: select(cond, then(), otherwise), and `cond` guards every load inside.
  Expr Guard(Expr cond, absl::FunctionRef<Expr()> then, Expr otherwise) { return context.Guard(cond, then, otherwise); }
  // Sum over [0, extents) kept in AccumulatorOf(out().dtype) and cast back.
  Expr Sum(absl::Span<const int64_t> extents, absl::FunctionRef<Expr(Index)> body);
  Expr Sum(int64_t extent, absl::FunctionRef<Expr(Expr)> body);
  // Any combiner; components are returned in the dtypes that `body` gave.
  std::vector<Expr> Reduce(absl::string_view combiner, absl::Span<const int64_t> extents,
                           absl::FunctionRef<std::vector<Expr>(Index)> body);
  Expr Number(double value) const { return agc::Number(pool, out().dtype, value); }
};

// What decompose, vjp and jvp build with: the op, its operand values and its attributes. Locations are inherited.
struct Rule : AttrReader {
  Builder& builder;
  const Op op;  // a copy: building appends to the graph
  absl::InlinedVector<Value, 3> x = {};
  Rule(Builder& b, Op o);  // fills x and attrs
};
struct Vjp : Rule {
  Value y;                                // the op's result (the tuple, for tuple ops)
  Value g;                                // cotangent of the result; for tuple ops of element 0
  absl::InlinedVector<Value, 2> gs = {};  // cotangents of a tuple's elements; absent ones are !valid()
  absl::InlinedVector<Value, 3> dx = {};  // to be filled; left !valid(): no gradient flows to that operand
  Vjp(Builder& b, Op o, OpId id);
};
struct Jvp : Rule {
  Value y;
  absl::InlinedVector<Value, 3> tx = {};  // tangents of the operands; absent ones are !valid()
  Value ty = {};                          // to be filled
  Jvp(Builder& b, Op o, OpId id);
};

struct OpDef {
  absl::string_view name = {};
  OpClass cls = OpClass::kElementwise;
  Arity arity = 0;
  AttrList attrs = {};
  absl::StatusOr<Types> (*infer)(const OpCall&) = nullptr;  // shape rule; its error is the diagnostic
  absl::Status (*verify)(const OpCall&) = nullptr;          // what infer cannot say
  // Exactly one of these three (data, symbol, `gradient` and `get` have none of them, or `at` alone):
  Expr (*at)(At&, Index) = nullptr;
  void (*emit)(struct Emit&) = nullptr;  // scatter, scan, sort: stages and stores of a nest [reserve]
  Value (*decompose)(Rule&) = nullptr;
  void (*vjp)(Vjp&) = nullptr;
  void (*jvp)(Jvp&) = nullptr;
  Tolerance tol = {};
  absl::string_view numpy = {};  // reference over x0, x1, ... and attributes by name; or a function of test/ops/ref.py
  Sample sample = {};
  absl::string_view doc = {};
};

// Compile-time completeness: a missing field stops the build, with the function's name in the message.
void OpHasNoName();
void OpHasNoDoc();
void OpHasNoInfer();
void OpHasNoNumpyReference();
void PrimitiveHasNoAt();
void CompositeHasNoDecompose();
void OpsAreNotSorted();
consteval bool CheckOp(const OpDef& op) {
  if (op.name.empty()) OpHasNoName();
  if (op.doc.empty()) OpHasNoDoc();
  if (op.cls == OpClass::kData || op.cls == OpClass::kSymbol) return true;
  if (op.infer == nullptr) OpHasNoInfer();
  if (op.numpy.empty()) OpHasNoNumpyReference();
  if (op.cls == OpClass::kComposite && op.decompose == nullptr) CompositeHasNoDecompose();
  if (op.cls != OpClass::kComposite && op.at == nullptr && op.emit == nullptr) PrimitiveHasNoAt();
  return true;
}
template <size_t n>
consteval bool CheckOps(const OpDef (&ops)[n]) {
  for (size_t i = 0; i < n; ++i) {
    CheckOp(ops[i]);
    if (i > 0 && !(ops[i - 1].name < ops[i].name)) OpsAreNotSorted();
  }
  return true;
}

const OpDef* FindOp(absl::string_view name);  // nullptr if unknown
absl::Span<const OpDef* const> AllOps();      // sorted by name
// The rows that stand for what a graph is given: see ir/ops/data.cc.
const OpDef& InputOp();
const OpDef& StateOp();
const OpDef& BlobOp();
const OpDef& ConstantOp();
const OpDef& GetOp();
const OpDef& GradientOp();
const OpDef& CastOp();  // what passes put around values of another dtype

// A string as a template argument: .at = Map<"tanh"> applies that scalar op elementwise.
template <size_t n>
struct StaticName {
  char text[n] = {};
  constexpr StaticName(const char (&s)[n]) { std::copy_n(s, n, text); }  // NOLINT
};
template <StaticName name>
Expr Map(At& s, Index i) {
  absl::InlinedVector<Expr, 3> args;
  for (int k = 0; k < s.arity(); ++k) args.push_back(s.Read(k, i));
  return Alu(absl::string_view(name.text, sizeof(name.text) - 1), args);
}

}  // namespace agc
