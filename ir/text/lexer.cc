#include "ir/text/lexer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/type.h"

namespace agc::text {
namespace {

bool NameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool NameChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool Digit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

struct Lexer {
  absl::string_view source;
  absl::string_view file;
  std::vector<Token>& tokens;
  size_t at = 0;
  uint32_t line = 1;
  absl::Status error = {};

  char Peek(size_t ahead = 0) const { return at + ahead < source.size() ? source[at + ahead] : '\0'; }
  void Fail(absl::string_view message) {
    if (error.ok()) error = ErrorAt(file.empty() ? Loc() : Loc{file, line}, message);
  }

  // Skips spaces and comments; whether there were any.
  bool SkipSpace() {
    const size_t start = at;
    while (at < source.size()) {
      if (source[at] == '\n') ++line;
      if (absl::ascii_isspace(static_cast<unsigned char>(source[at]))) {
        ++at;
      } else if (Peek() == '/' && Peek(1) == '/') {
        while (at < source.size() && source[at] != '\n') ++at;
      } else {
        break;
      }
    }
    return at != start;
  }

  // letters, digits, '_' and single dots between them
  std::string Name() {
    const size_t start = at;
    while (at < source.size() && (NameChar(Peek()) || (Peek() == '.' && NameChar(Peek(1)) && at > start))) ++at;
    return std::string(source.substr(start, at - start));
  }

  std::string String() {
    const size_t start = ++at;
    while (at < source.size() && source[at] != '"' && source[at] != '\n') at += source[at] == '\\' ? 2 : 1;
    std::string text;
    if (at >= source.size() || source[at] != '"') {
      Fail("a string is not closed, add the missing \"");
      return text;
    }
    std::string why;
    const absl::string_view raw = source.substr(start, at - start);
    if (!absl::CUnescape(raw, &text, &why)) Fail(absl::StrCat("bad escape in a string: ", why));
    ++at;
    return text;
  }

  Token Number() {
    const size_t start = at;
    Token token{.kind = TokenKind::kInt};
    if (Peek() == '0' && Peek(1) == 'x' && absl::ascii_isxdigit(static_cast<unsigned char>(Peek(2)))) {
      at += 2;
      while (absl::ascii_isxdigit(static_cast<unsigned char>(Peek()))) ++at;
    } else {
      while (Digit(Peek())) ++at;
      if (Peek() == '.' && Digit(Peek(1))) {
        token.kind = TokenKind::kFloat;
        for (++at; Digit(Peek());) ++at;
      }
      const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
      if ((Peek() == 'e' || Peek() == 'E') && Digit(Peek(1 + sign))) {
        token.kind = TokenKind::kFloat;
        for (at += 1 + sign; Digit(Peek());) ++at;
      }
    }
    token.text = std::string(source.substr(start, at - start));
    return token;
  }

  // Whether a '%' here is the remainder operator.
  bool PercentIsOperator(bool glued) const {
    if (!NameChar(Peek(1)) && Peek(1) != '"') return true;
    if (!glued || tokens.empty()) return false;
    const Token& before = tokens.back();
    return before.kind != TokenKind::kPunct || before.text == ")" || before.text == "]";
  }

  Token Sigiled(TokenKind kind, absl::string_view what) {
    ++at;
    Token token{.kind = kind};
    token.quoted = Peek() == '"';
    token.text = token.quoted ? String() : Name();
    if (token.text.empty()) Fail(absl::StrCat("a ", what, " needs a name"));
    return token;
  }

  Token Punct() {
    static constexpr absl::string_view kTwo[] = {"->", "==", "!=", "<=", ">=", ".."};
    static constexpr absl::string_view kOne = "()[]{}<>,:;=+-*/%&|";
    Token token{.kind = TokenKind::kPunct};
    const absl::string_view two = source.substr(at, 2);
    if (std::find(std::begin(kTwo), std::end(kTwo), two) != std::end(kTwo)) {
      token.text = std::string(two);
    } else if (kOne.find(Peek()) != absl::string_view::npos && Peek() != '\0') {
      token.text = std::string(1, Peek());
    } else {
      const unsigned char c = static_cast<unsigned char>(Peek());
      Fail(absl::ascii_isprint(c) ? absl::StrCat("unexpected character ", absl::string_view(source.data() + at, 1))
                                  : absl::StrFormat("unexpected byte 0x%02x", c));
      token.text = ";";
    }
    at += token.text.size();
    return token;
  }

  Token Next(bool glued) {
    const char c = Peek();
    if (NameStart(c)) return {.kind = TokenKind::kIdent, .text = Name()};
    if (Digit(c)) return Number();
    if (c == '"') return {.kind = TokenKind::kString, .text = String()};
    if (c == '%' && !PercentIsOperator(glued)) return Sigiled(TokenKind::kValue, "value");
    if (c == '@') return Sigiled(TokenKind::kSymbol, "symbol");
    if (c == '$') return Sigiled(TokenKind::kDollar, "shared expression");
    return Punct();
  }
};

constexpr absl::string_view kReserved[] = {"along", "cast", "dim",  "else",    "false", "if", "in",
                                           "index", "inf",  "lane", "loc",     "nan",   "of", "over",
                                           "range", "step", "true", "uniform", "vec"};

}  // namespace

absl::Status Lex(absl::string_view source, absl::string_view file, std::vector<Token>& tokens) {
  Lexer lexer{source, file, tokens};
  while (lexer.error.ok()) {
    const bool glued = !lexer.SkipSpace();
    if (lexer.at >= source.size()) break;
    const uint32_t line = lexer.line;
    Token token = lexer.Next(glued);
    token.line = line;
    token.glued = glued;
    tokens.push_back(std::move(token));
  }
  tokens.push_back({.line = lexer.line});
  return lexer.error;
}

bool IsIdentifier(absl::string_view name) {
  if (name.empty() || !NameStart(name[0])) return false;
  for (size_t i = 1; i < name.size(); ++i) {
    if (!NameChar(name[i]) && !(name[i] == '.' && i + 1 < name.size() && NameChar(name[i + 1]))) return false;
  }
  return true;
}

bool IsReserved(absl::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved) ||
         DTypeNamed(name).has_value();
}

std::string Quote(absl::string_view text) { return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\""); }

std::string Sigil(char sigil, absl::string_view name) {
  return absl::StrCat(absl::string_view(&sigil, 1), IsIdentifier(name) ? std::string(name) : Quote(name));
}

}  // namespace agc::text
