// Text of programs, both ways, for every stage; docs/ir.md is the grammar. Printing then parsing gives a program that
// prints the same text.
//   AGC_ASSIGN_OR_RETURN(Program program, Parse("module @m { ... }", "m.agir"));
//   std::string text = Print(program);
// Errors of Parse read "m.agir:3: error: ..."; no input crashes it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"

namespace agc {

struct PrintOptions {
  bool locations = false;            // loc("mlp.cc":12), except those of `omit_file`
  absl::string_view omit_file = {};  // the file that was parsed: its lines locate themselves
  bool labels = true;                // labels and origins: what only readers need
  bool names = true;                 // false: names inside nests and kernels are replaced by numbers, so that equal
                                     // ones print equal text; their own names print as @_
};

std::string Print(const Program& program, const PrintOptions& options = {});
std::string Print(const Graph& graph, const Program& program, const PrintOptions& options = {});
std::string Print(const Nest& nest, const PrintOptions& options = {});
std::string Print(const Kernel& kernel, const PrintOptions& options = {});

absl::StatusOr<Program> Parse(absl::string_view text, absl::string_view file_name);
// "f32[2,3]"; errors carry no location.
absl::StatusOr<TensorType> ParseType(absl::string_view text);
// Attributes of `def` as an op line has them between braces: "axes = [0, 1], keep_dims = true".
absl::StatusOr<std::vector<Attr>> ParseAttrs(const OpDef& def, absl::string_view text);

// "contract {bm = 64, place = {%m: register}}", with or without the word `schedule` in front.
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);
std::string Print(const Schedule& schedule);

// What the numbers inside Exprs are called. Vectors that are too short fall back to numbers.
struct ExprNames {
  std::vector<std::string> vars = {};                   // by VarId
  std::vector<std::string> buffers = {};                // kLoad
  std::vector<std::string> allocs = {};                 // kAllocLoad
  std::vector<std::string> components = {};             // kStage
  std::vector<std::vector<VarId>> component_axes = {};  // a read at exactly these prints without an index
  // Order of declaration in the text, which is the order of terms in sums; empty: by number.
  std::vector<uint32_t> var_rank = {}, alloc_rank = {};
  std::vector<std::pair<ExprId, std::string>> bound = {};  // expressions that print as "$0"
};
ExprNames NamesOf(const Nest& nest);
ExprNames NamesOf(const Kernel& kernel);
// A literal prints bare where its dtype is `expected`, else as f32(0.5).
std::string PrintExpr(const ExprPool& pool, ExprId e, const ExprNames& names, std::optional<DType> expected = {});

}  // namespace agc
