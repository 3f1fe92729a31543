#include "ir/text/cursor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace agc::text {

Cursor::Cursor(absl::string_view source, absl::string_view file) : file_(Intern(file)) {
  if (const absl::Status s = Lex(source, file_, tokens_); !s.ok()) Fail(s);
}

const Token& Cursor::Peek(size_t ahead) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

Token Cursor::Take() {
  const Token token = Peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

namespace {

// Reads all of [begin, end); false too where the number does not fit its type.
template <typename T>
bool Whole(const char* begin, const char* end, T& value) {
  const std::from_chars_result r = std::from_chars(begin, end, value);
  return r.ec == std::errc() && r.ptr == end;
}
bool IsHex(const Token& token) { return token.text.size() > 2 && token.text[1] == 'x'; }
}  // namespace

void Cursor::Fail(Loc loc, absl::string_view message) { Fail(ErrorAt(loc, message)); }

void Cursor::Fail(const absl::Status& located) {
  if (error_.ok()) error_ = located;
  at_ = tokens_.size() - 1;
}

std::string Cursor::Describe() const {
  const Token& t = Peek();
  switch (t.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kString:
      return Quote(t.text);
    case TokenKind::kValue:
      return Sigil('%', t.text);
    case TokenKind::kSymbol:
      return Sigil('@', t.text);
    case TokenKind::kDollar:
      return absl::StrCat("$", t.text);
    default:
      return t.text;
  }
}

bool Cursor::Is(absl::string_view text, size_t ahead) const {
  const Token& t = Peek(ahead);
  return (t.kind == TokenKind::kIdent || t.kind == TokenKind::kPunct) && t.text == text;
}

bool Cursor::Accept(absl::string_view text) {
  if (!Is(text)) return false;
  Take();
  return true;
}

void Cursor::Expect(absl::string_view text) {
  if (!Accept(text)) Fail(absl::StrCat("expected ", text, ", found ", Describe()));
}

std::string Cursor::Ident(absl::string_view what) {
  if (Peek().kind == TokenKind::kIdent) return Take().text;
  Fail(absl::StrCat("expected ", what, ", found ", Describe()));
  return "";
}

std::string Cursor::Value(absl::string_view what) {
  if (Peek().kind == TokenKind::kValue) return Take().text;
  Fail(absl::StrCat("expected ", what, " (%name), found ", Describe()));
  return "";
}

std::string Cursor::Symbol(absl::string_view what) {
  if (Peek().kind == TokenKind::kSymbol) return Take().text;
  Fail(absl::StrCat("expected ", what, " (@name), found ", Describe()));
  return "";
}

std::string Cursor::String(absl::string_view what) {
  if (Peek().kind == TokenKind::kString) return Take().text;
  Fail(absl::StrCat("expected ", what, " in quotes, found ", Describe()));
  return "";
}

std::string Cursor::Word(absl::string_view what) {
  return Peek().kind == TokenKind::kString ? Take().text : Ident(what);
}

int64_t Cursor::Int(absl::string_view what, int64_t lo, int64_t hi) {
  const bool negative = Accept("-");
  const Token token = Peek();
  uint64_t magnitude = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind != TokenKind::kInt || !Whole(token.text.data(), end, magnitude) || magnitude > INT64_MAX) {
    Fail(absl::StrCat("expected ", what, ", found ", Describe()));
    return std::max<int64_t>(lo, 0);
  }
  const int64_t value = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
  if (value < lo || value > hi) {
    Fail(absl::StrCat(what, " is ", value, ", expected ", lo, " to ", hi));
    return std::max<int64_t>(lo, 0);
  }
  Take();
  return value;
}

uint64_t Cursor::Unsigned(absl::string_view what) {
  const Token& token = Peek();
  uint64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kInt && Whole(token.text.data(), end, value)) {
    Take();
    return value;
  }
  Fail(absl::StrCat("expected ", what, ", found ", Describe()));
  return 0;
}

void Cursor::List(absl::string_view close, absl::FunctionRef<void()> item) {
  if (Accept(close)) return;
  do {
    item();
  } while (Accept(","));
  Expect(close);
}

std::vector<int64_t> Cursor::IntList(absl::string_view what, int64_t lo, int64_t hi) {
  std::vector<int64_t> ints;
  Expect("[");
  List("]", [&] { ints.push_back(Int(what, lo, hi)); });
  return ints;
}

DType Cursor::TypeName(absl::string_view what) {
  const std::optional<DType> dtype = Peek().kind == TokenKind::kIdent ? DTypeNamed(Peek().text) : std::nullopt;
  if (!dtype.has_value()) {
    Fail(absl::StrCat("expected ", what, " such as f32, found ", Describe()));
    return DType::kF32;
  }
  Take();
  return *dtype;
}

TensorType Cursor::Type() {
  TensorType type;
  type.dtype = TypeName("a type");
  Expect("[");
  double elements = 1;
  List("]", [&] {
    type.dims.push_back(Int("a dimension", 0, kMaxDim));
    elements *= std::max<double>(1, static_cast<double>(type.dims.back()));
  });
  if (elements > static_cast<double>(kMaxDim)) {
    Fail(absl::StrCat("type ", ToString(type), " has too many elements, at most 2^40 are supported"));
    type.dims.clear();
  }
  return type;
}

double Cursor::ToDouble(const Token& token, bool negative, absl::string_view what) {
  double value = 0;
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.kind == TokenKind::kIdent && (token.text == "inf" || token.text == "nan")) {
    value = token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (token.kind == TokenKind::kInt && IsHex(token)) {
    uint64_t bits = 0;
    if (std::from_chars(begin + 2, end, bits, 16).ptr != end)
      Fail(LocOf(token), absl::StrCat(what, " has too many digits"));
    value = std::bit_cast<double>(bits);
  } else if ((token.kind != TokenKind::kInt && token.kind != TokenKind::kFloat) ||
             std::from_chars(begin, end, value).ec != std::errc()) {
    Fail(LocOf(token),
         absl::StrCat("expected ", what, ", found ", token.text.empty() ? "the end of the text" : token.text));
  }
  return negative ? -value : value;
}

double Cursor::Double(absl::string_view what) {
  const bool negative = Accept("-");
  return ToDouble(Take(), negative, what);
}

Scalar Cursor::ToFloat(const Token& token, bool negative, DType dtype) {
  const char *begin = token.text.data(), *end = begin + token.text.size();
  float nearest = 0;  // through double it would round twice
  const bool decimal = (token.kind == TokenKind::kFloat || token.kind == TokenKind::kInt) && !IsHex(token);
  if (dtype != DType::kF64 && decimal && std::from_chars(begin, end, nearest).ec == std::errc()) {
    return Scalar::Float(dtype, negative ? -static_cast<double>(nearest) : static_cast<double>(nearest));
  }
  const double value = ToDouble(token, negative, absl::StrCat("a value of ", Name(dtype)));
  return std::isnan(value) ? Scalar{dtype, std::bit_cast<uint64_t>(value)} : Scalar::Float(dtype, value);
}

Scalar Cursor::ToScalar(const Token& token, bool negative, DType dtype) {
  if (IsFloat(dtype)) return ToFloat(token, negative, dtype);
  if (dtype == DType::kBool) {
    if (token.kind != TokenKind::kIdent || negative || (token.text != "true" && token.text != "false")) {
      Fail(LocOf(token), absl::StrCat("expected true or false, found ", token.text));
    }
    return Scalar::Int(dtype, token.text == "true");
  }
  uint64_t magnitude = 0;
  const char* end = token.text.data() + token.text.size();
  const bool whole = token.kind == TokenKind::kInt && Whole(token.text.data(), end, magnitude);
  const uint64_t most = dtype == DType::kU64 ? UINT64_MAX : static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  const int64_t value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  const bool fits =
      magnitude <= most && WrapTo(dtype, value) == value && (!negative || magnitude == 0 || !IsUnsigned(dtype));
  if (!whole || !fits) {
    Fail(LocOf(token), absl::StrCat("expected a value of ", Name(dtype), ", found ", negative ? "-" : "", token.text));
    return {dtype, 0};
  }
  return {dtype, static_cast<uint64_t>(value)};
}

Scalar Cursor::Number(DType dtype) {
  const bool negative = Accept("-");
  return ToScalar(Take(), negative, dtype);
}

std::string Cursor::Bytes() {
  const Loc here = loc();
  const std::string hex = String("bytes");
  const bool bad = hex.size() % 2 != 0 ||
                   !std::all_of(hex.begin(), hex.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); });
  if (bad) {
    Fail(here, "bytes are pairs of hexadecimal digits");
    return "";
  }
  return absl::HexStringToBytes(hex);
}

Loc Cursor::OptionalLoc(Loc fallback) {
  if (!Is("loc") || !Is("(", 1)) return fallback;
  Take();
  Take();
  const std::string file = String("a file name");
  int64_t line = 0;
  if (Accept(":")) line = Int("a line", 0, UINT32_MAX);
  Expect(")");
  return {Intern(file), static_cast<uint32_t>(line)};
}

void Cursor::Enter() {
  if (++depth_ > 200) Fail("nested too deeply, at most 200 levels are supported");
}

std::string Nearest(absl::string_view name, const std::vector<std::string>& names) {
  size_t best = std::min(name.size(), name.size() / 2 + 1);
  std::string found;
  if (name.size() > 64) return "";
  for (const std::string& candidate : names) {
    std::vector<size_t> row(candidate.size() + 1);  // Wagner and Fischer (1974): edit distance, row by row
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0]++;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t replaced = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() < best) {
      best = row.back();
      found = candidate;
    }
  }
  return found.empty() ? "" : absl::StrCat(" (did you mean ", found, ")");
}

}  // namespace agc::text
