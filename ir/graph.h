// The tensor graph: one block, and an op is its value. A graph reads parameters and module states, names outputs and
// updates states; all updates take effect together when the step ends.
//   graph @step(input %x: f32[2,3]) -> (%y: f32[3,2]) {
//     %0: f32[3,2] = transpose %x {perm = [1, 0]}   loc("mlp.cc":12)
//     output %y = %0
//     update @w = %0
//   }
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/loc.h"
#include "ir/scalar.h"
#include "ir/storage.h"
#include "ir/type.h"

namespace agc {

struct OpDef;
struct Program;

struct OpId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  friend bool operator==(OpId, OpId) = default;
  friend auto operator<=>(OpId, OpId) = default;
};

using Ints = absl::InlinedVector<int64_t, 6>;
// A symbol names a graph, a state or a blob of the module.
struct Symbol {
  std::string name = {};
  friend bool operator==(const Symbol&, const Symbol&) = default;
};
// Elements of a constant: one for a splat, else all, row-major.
struct Literal {
  bool splat = true;
  std::vector<Scalar> values = {};
  Scalar at(int64_t i) const { return values[splat ? 0 : static_cast<size_t>(i)]; }
  friend bool operator==(const Literal&, const Literal&) = default;
};
using LiteralPtr = std::shared_ptr<const Literal>;

// The order is that of AttrKind. Enum-like attributes are strings.
using AttrValue = std::variant<bool, int64_t, double, std::string, Ints, DType, Symbol, LiteralPtr>;
struct Attr {
  absl::string_view name = {};  // static or interned
  AttrValue value = {};
};
bool SameAttrs(absl::Span<const Attr> a, absl::Span<const Attr> b);  // literals by content
const AttrValue* FindAttr(absl::Span<const Attr> attrs, absl::string_view name);

struct Op {
  const OpDef* def = nullptr;
  absl::InlinedVector<OpId, 3> operands = {};
  absl::InlinedVector<Attr, 2> attrs = {};  // in the order of the table row; defaulted ones are present too
  Types types = {};
  Loc loc = {};
  std::string symbol = {};  // `input`: parameter name; `state`: state name; `blob`: blob name; without sigil
  std::string role = {};    // "" or "grad": made by differentiation
  int32_t group = -1;       // kernel the op belongs to, from form-groups on
  int32_t recompute = 0;    // clone number, part of CSE's key [reserve]
  Ints layout = {};         // axis order [reserve]; empty: row-major
  const TensorType& type() const { return types[0]; }
  bool is_tuple() const { return types.size() > 1; }
};

enum class ParamKind : uint8_t { kInput, kResident, kParam };
absl::string_view Name(ParamKind kind);

struct GraphParam {
  ParamKind kind = ParamKind::kInput;
  std::string name = {};
  TensorType type = {};
  bool donate = false;
  OpId op = {};  // the `input` op that stands for its value
  Loc loc = {};
};

struct Output {
  std::string name = {};
  TensorType type = {};
  bool each_step = false;
  OpId value = {};
  Loc loc = {};
};

struct Update {
  std::string state = {};
  OpId value = {};
  Loc loc = {};
};

struct Graph {
  std::string name = {};
  std::vector<GraphParam> params = {};
  std::vector<Output> outputs = {};
  std::vector<Update> updates = {};  // in state order when canonical
  std::vector<Op> ops = {};          // operands come before users
  uint32_t random_streams = 0;       // streams given out so far
  Loc loc = {};

  // From stage nest on the body is storage and steps; ops is empty.
  std::vector<Buffer> buffers = {};
  std::vector<Step> steps = {};
  std::vector<uint64_t> arena_sizes = {};  // plan stage, by rt::ArenaId
  uint64_t bound_bytes = 0;                // plan stage: live-bytes bound of the temporaries

  const Op& op(OpId id) const { return ops[id.index]; }
  Op& op(OpId id) { return ops[id.index]; }
  OpId Append(Op op);
  OpId FindState(absl::string_view state) const;  // the `state` op that reads it, or an invalid id
};

// Checks operand count, attributes and types against the table, fills in attribute defaults and infers the types. The
// error is the diagnostic, with `loc`.
absl::StatusOr<OpId> AppendChecked(Graph& graph, const OpDef& def, absl::Span<const OpId> operands,
                                   absl::Span<const Attr> attrs, Loc loc, absl::string_view symbol = {});
// A read of parameter `name` / state `name` of type `type`; reads of one state share one op.
OpId AppendInput(Graph& graph, ParamKind kind, absl::string_view name, TensorType type, Loc loc, bool donate = false);
OpId AppendState(Graph& graph, absl::string_view name, const TensorType& type, Loc loc);
OpId AppendConstant(Graph& graph, TensorType type, LiteralPtr literal, Loc loc);

// Renumbers ops in canonical order: a walk from the roots (outputs as declared, then updates in state order; operands
// left to right), then what no root reaches, in its present order. Parameters' ops come first, in order. Returns
// whether anything moved.
bool Canonicalize(Graph& graph, const Program& program);
// How often each op's value is used, by operands, outputs and updates.
std::vector<int> UseCounts(const Graph& graph);
// Drops ops for which keep[i] is false (they must be unused) and renumbers.
void Erase(Graph& graph, const std::vector<bool>& keep);

}  // namespace agc
