// What the parsers of all stages share: a cursor over tokens that remembers the first error and from then on stands at
// the end, so that every loop ends; and the small pieces of grammar (integers, lists, types, locations).
#pragma once
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/base/loc.h"
#include "ir/graph.h"
#include "ir/text/lexer.h"
#include "ir/type.h"

namespace agc::text {

class Cursor {
 public:
  Cursor(absl::string_view source, absl::string_view file);

  const Token& Peek(size_t ahead = 0) const;
  Token Take();
  Loc loc() const { return LocOf(Peek()); }  // of the next token
  Loc LocOf(const Token& token) const { return file_.empty() ? Loc() : Loc{file_, token.line}; }
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }

  // The first error wins; the cursor then stands at the end.
  void Fail(Loc loc, absl::string_view message);
  void Fail(absl::string_view message) { Fail(loc(), message); }
  void Fail(const absl::Status& located);
  bool ok() const { return error_.ok(); }
  const absl::Status& error() const { return error_; }

  bool Is(absl::string_view text, size_t ahead = 0) const;  // identifier or punctuation
  bool Accept(absl::string_view text);
  void Expect(absl::string_view text);
  std::string Ident(absl::string_view what);
  std::string Value(absl::string_view what);   // %name
  std::string Symbol(absl::string_view what);  // @name
  std::string String(absl::string_view what);
  std::string Word(absl::string_view what);  // an identifier or a string
  int64_t Int(absl::string_view what, int64_t lo, int64_t hi);
  uint64_t Unsigned(absl::string_view what);
  // `open a, b, c close`, possibly empty, after `open` was taken.
  void List(absl::string_view close, absl::FunctionRef<void()> item);
  std::vector<int64_t> IntList(absl::string_view what, int64_t lo, int64_t hi);  // [1, 2]
  TensorType Type();
  DType TypeName(absl::string_view what);
  Scalar Number(DType dtype);  // a literal of that dtype
  double Double(absl::string_view what);
  Scalar ToScalar(const Token& token, bool negative, DType dtype);  // a literal that was taken
  std::string Bytes();                                              // "0a1b" as bytes
  Loc OptionalLoc(Loc fallback);                                    // loc("file":12)
  void Enter();                                                     // nesting depth of blocks and parentheses
  void Leave() { --depth_; }
  std::string Describe() const;  // the next token for messages

 private:
  double ToDouble(const Token& token, bool negative, absl::string_view what);
  Scalar ToFloat(const Token& token, bool negative, DType dtype);

  absl::string_view file_;
  std::vector<Token> tokens_ = {};
  size_t at_ = 0;
  int depth_ = 0;
  absl::Status error_ = {};
};

inline constexpr int64_t kMaxDim = int64_t{1} << 40;
inline constexpr int64_t kMaxInt = int64_t{1} << 53;  // of attributes and index literals

// " (did you mean matmul)" for the nearest of the names, or "".
std::string Nearest(absl::string_view name, const std::vector<std::string>& names);

}  // namespace agc::text
