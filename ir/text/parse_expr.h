// Expressions. Everything goes through the constructors of ir/expr.h, whose conditions are checked before, so that
// wrong text is a diagnostic.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/text/cursor.h"

namespace agc::text {

// What %name means inside expressions.
struct Readable {
  ExprKind kind = ExprKind::kLoad;  // kLoad, kAllocLoad or kStage
  uint32_t ref = 0;
  DType dtype = DType::kF32;
  size_t rank = 0;
  std::vector<VarId> axes = {};  // kStage: what a read without an index means
};

struct ExprScope {
  ExprPool* pool = nullptr;
  std::vector<std::pair<std::string, VarId>> vars = {};  // innermost last
  std::map<std::string, Readable> values = {};
  std::map<std::string, Expr> shared = {};  // $0
};

// A value or bool expression; a literal alone takes `expected`. Never returns an Expr without a pool; after an error it
// may be of any dtype.
Expr ParseExpr(Cursor& c, ExprScope& scope, std::optional<DType> expected = {});
Expr ParseIndex(Cursor& c, ExprScope& scope);
Expr ParseCondition(Cursor& c, ExprScope& scope);
// `[i, j if guard]`; the guard is true where none is written.
struct Place {
  std::vector<Expr> index = {};
  Expr guard = {};
};
Place ParsePlace(Cursor& c, ExprScope& scope, absl::string_view name, size_t rank);
// `$0 = expr`, where the next token is a $name.
void ParseShared(Cursor& c, ExprScope& scope);
std::optional<VarId> FindVar(const ExprScope& scope, absl::string_view name);
// "f32" or "f32x4".
std::pair<DType, int> ParseLanesType(Cursor& c);

}  // namespace agc::text
