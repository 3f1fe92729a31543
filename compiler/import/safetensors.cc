#include "compiler/import/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/base/status.h"

namespace agc {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // bytes, as the format says
constexpr int64_t kMostBytes = int64_t{1} << 50;

// The part of JSON that headers are made of. Errors stick.
class Header {
 public:
  explicit Header(absl::string_view text) : all_(text), left_(text) {}
  const std::string& error() const { return error_; }
  void Fail(absl::string_view what) {
    if (error_.empty()) error_ = absl::StrCat("header, character ", all_.size() - left_.size(), ": ", what);
    left_ = {};
  }
  bool Accept(char c) {
    while (!left_.empty() && absl::string_view(" \t\r\n").find(left_[0]) != absl::string_view::npos)
      left_.remove_prefix(1);
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(absl::StrCat("expected '", std::string(1, c), "'"));
  }
  std::string Text() {
    std::string text;
    Expect('"');
    while (!left_.empty() && left_[0] != '"') {
      const bool escape = left_[0] == '\\';
      if (escape) left_.remove_prefix(1);
      if (escape && !left_.empty() && absl::string_view("\"\\/").find(left_[0]) == absl::string_view::npos) {
        Fail("an escape other than \\\", \\\\ and \\/");
        return text;
      }
      if (left_.empty()) break;
      text += left_[0];
      left_.remove_prefix(1);
    }
    Expect('"');
    return text;
  }
  int64_t Number() {
    Accept(' ');
    int64_t value = 0;
    size_t digits = 0;
    for (; !left_.empty() && left_[0] >= '0' && left_[0] <= '9' && digits < 18; ++digits) {
      value = value * 10 + (left_[0] - '0');
      left_.remove_prefix(1);
    }
    if (digits == 0 || digits == 18) Fail("expected a number");
    return value;
  }
  std::vector<int64_t> Numbers() {
    std::vector<int64_t> values;
    Expect('[');
    if (Accept(']')) return values;
    do values.push_back(Number());
    while (error_.empty() && Accept(','));
    Expect(']');
    return values;
  }
  bool AtEnd() {
    Accept('\0');
    return left_.empty();
  }

 private:
  absl::string_view all_, left_;
  std::string error_ = {};
};

struct Entry {
  std::string name = {}, dtype = {};
  std::vector<int64_t> shape = {}, offsets = {};
};

Entry ReadEntry(Header& h, std::string name) {
  Entry e{.name = std::move(name)};
  h.Expect('{');
  do {
    const std::string key = h.Text();
    h.Expect(':');
    if (key == "dtype")
      e.dtype = h.Text();
    else if (key == "shape")
      e.shape = h.Numbers();
    else if (key == "data_offsets")
      e.offsets = h.Numbers();
    else
      h.Fail(absl::StrCat("a tensor has no '", key, "'"));
  } while (h.error().empty() && h.Accept(','));
  h.Expect('}');
  return e;
}

// Pairs of strings, which say nothing about tensors.
void SkipMetadata(Header& h) {
  h.Expect('{');
  if (h.Accept('}')) return;
  do {
    h.Text();
    h.Expect(':');
    h.Text();
  } while (h.error().empty() && h.Accept(','));
  h.Expect('}');
}

absl::StatusOr<std::vector<Entry>> ReadHeader(absl::string_view text) {
  Header h(text);
  std::vector<Entry> entries;
  h.Expect('{');
  if (!h.Accept('}')) {
    do {
      std::string name = h.Text();
      h.Expect(':');
      if (name == "__metadata__")
        SkipMetadata(h);
      else
        entries.push_back(ReadEntry(h, std::move(name)));
    } while (h.error().empty() && h.Accept(','));
    h.Expect('}');
  }
  if (!h.AtEnd()) h.Fail("something behind the header's end");
  if (!h.error().empty()) return absl::DataLossError(h.error());
  return entries;
}

absl::StatusOr<DType> DTypeOf(const Entry& e) {
  constexpr std::pair<absl::string_view, DType> kTypes[] = {
      {"F64", DType::kF64}, {"F32", DType::kF32}, {"F16", DType::kF16},  {"BF16", DType::kBF16}, {"I64", DType::kI64},
      {"I32", DType::kI32}, {"I16", DType::kI16}, {"I8", DType::kI8},    {"U64", DType::kU64},   {"U32", DType::kU32},
      {"U16", DType::kU16}, {"U8", DType::kU8},   {"BOOL", DType::kBool}};
  for (const auto& [name, dtype] : kTypes) {
    if (name == e.dtype) return dtype;
  }
  return absl::UnimplementedError(
      absl::StrCat("tensor '", e.name, "' has element type ", e.dtype, ", which agc has not"));
}

absl::StatusOr<Weight> WeightOf(const Entry& e, ByteSpan data) {
  const auto bad = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("tensor '", e.name, "': ", what));
  };
  AGC_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(e));
  int64_t bytes = SizeOf(dtype);
  for (const int64_t d : e.shape) {
    if (d != 0 && bytes > kMostBytes / d) return bad("a shape too large for any file");
    bytes *= d;
  }
  const auto size = static_cast<int64_t>(data.size());
  if (e.offsets.size() != 2 || e.offsets[0] > e.offsets[1] || e.offsets[1] > size)
    return bad("data_offsets outside of the file");
  Weight w{.name = e.name, .type = {dtype, Dims(e.shape.begin(), e.shape.end())}};
  if (e.offsets[1] - e.offsets[0] != bytes) {
    return bad(absl::StrCat(e.offsets[1] - e.offsets[0], " bytes, ", ToString(w.type), " has ", bytes));
  }
  w.bytes = data.subspan(static_cast<size_t>(e.offsets[0]), static_cast<size_t>(bytes));
  return w;
}

// The name in the module, and which rule gave it.
std::string Renamed(const std::string& name, const std::map<std::string, std::string>& names,
                    std::set<std::string>& used) {
  for (const auto& [from, to] : names) {
    const bool head = absl::EndsWith(from, "*");
    const absl::string_view key = absl::StripSuffix(from, "*");
    if (head ? !absl::StartsWith(name, key) : name != from) continue;
    used.insert(from);
    return head ? absl::StrCat(absl::StripSuffix(to, "*"), name.substr(key.size())) : to;
  }
  return name;
}

}  // namespace

absl::StatusOr<std::vector<Weight>> ParseSafetensors(ByteSpan bytes, const std::map<std::string, std::string>& names) {
  uint64_t header = 0;
  if (bytes.size() < sizeof(header)) return absl::DataLossError("no safetensors file: it has no header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header > kMostHeader || header > bytes.size() - sizeof(header)) {
    return absl::DataLossError(absl::StrCat("no safetensors file: a header of ", header, " bytes in ", bytes.size()));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + sizeof(header));
  AGC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadHeader({text, static_cast<size_t>(header)}));
  std::vector<Weight> weights;
  std::set<std::string> used, seen;
  for (const Entry& e : entries) {
    AGC_ASSIGN_OR_RETURN(Weight w, WeightOf(e, bytes.subspan(sizeof(header) + static_cast<size_t>(header))));
    w.name = Renamed(e.name, names, used);
    if (!seen.insert(w.name).second)
      return absl::InvalidArgumentError(absl::StrCat("two tensors are called '", w.name, "'"));
    weights.push_back(std::move(w));
  }
  for (const auto& [from, to] : names) {
    if (used.count(from) == 0) return absl::InvalidArgumentError(absl::StrCat("no tensor is called '", from, "'"));
  }
  return weights;
}

absl::StatusOr<std::vector<Weight>> ReadSafetensors(const std::string& path,
                                                    const std::map<std::string, std::string>& names) {
  AGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  absl::StatusOr<std::vector<Weight>> weights = ParseSafetensors(file.bytes(), names);
  if (!weights.ok()) return absl::Status(weights.status().code(), absl::StrCat(path, ": ", weights.status().message()));
  const auto owner = std::make_shared<const MappedFile>(file);
  for (Weight& w : *weights) w.owner = owner;
  return weights;
}

}  // namespace agc
