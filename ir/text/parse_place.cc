// What statements and expressions share: places, shared expressions, variables and types with lanes.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/text/parse_expr.h"

namespace agc::text {

Place ParsePlace(Cursor& c, ExprScope& scope, absl::string_view name, size_t rank) {
  Place place{.guard = scope.pool->Bool(true)};
  const Loc here = c.loc();
  c.Expect("[");
  while (c.ok() && !c.Is("]") && !c.Is("if")) {
    place.index.push_back(ParseIndex(c, scope));
    if (!c.Accept(",")) break;
  }
  if (c.Accept("if")) place.guard = ParseCondition(c, scope);
  c.Expect("]");
  if (c.ok() && place.index.size() != rank) {
    c.Fail(here,
           absl::StrCat("%", name, " takes ", rank, rank == 1 ? " index" : " indices", ", found ", place.index.size()));
  }
  return place;
}

void ParseShared(Cursor& c, ExprScope& scope) {
  const std::string name = c.Take().text;
  c.Expect("=");
  const Expr e = ParseExpr(c, scope);
  scope.shared.insert_or_assign(name, e);
}

std::optional<VarId> FindVar(const ExprScope& scope, absl::string_view name) {
  for (auto it = scope.vars.rbegin(); it != scope.vars.rend(); ++it) {
    if (it->first == name) return it->second;
  }
  return std::nullopt;
}

std::pair<DType, int> ParseLanesType(Cursor& c) {
  const Token token = c.Peek();
  const size_t x = token.text.rfind('x');
  int lanes = 1;
  std::optional<DType> dtype = DTypeNamed(token.text);
  if (!dtype.has_value() && token.text == "index") dtype = DType::kIndex;
  if (!dtype.has_value() && x != std::string::npos && absl::SimpleAtoi(token.text.substr(x + 1), &lanes)) {
    dtype = DTypeNamed(token.text.substr(0, x));
  }
  if (token.kind != TokenKind::kIdent || !dtype.has_value() || lanes < 1 || lanes > 16) {
    c.Fail(absl::StrCat("expected a type such as f32 or f32x4, found ", c.Describe()));
    return {DType::kF32, 1};
  }
  c.Take();
  return {*dtype, lanes};
}

}  // namespace agc::text
