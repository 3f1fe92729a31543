// Tokens of the text form. '%' is a remainder where it follows an operand without a space or stands alone, else it
// opens a name: `x%2`, `x % 2`, `%x`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/base/loc.h"

namespace agc::text {

enum class TokenKind : uint8_t { kEnd, kIdent, kInt, kFloat, kString, kValue, kSymbol, kDollar, kPunct };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text = {};  // names without their sigil, strings unescaped
  uint32_t line = 1;
  bool glued = false;   // no space before it
  bool quoted = false;  // a name given as %"..."
};

// Ends with a kEnd token. A character that belongs nowhere gives an error.
absl::Status Lex(absl::string_view source, absl::string_view file, std::vector<Token>& tokens);

bool IsIdentifier(absl::string_view name);
// Words that cannot name a variable inside expressions.
bool IsReserved(absl::string_view name);
std::string Quote(absl::string_view text);              // "a \"b\"\n" with escapes
std::string Sigil(char sigil, absl::string_view name);  // %x, or %"odd name"

}  // namespace agc::text
