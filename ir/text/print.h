// What the printers share. Every Print* appends whole lines, indented by two spaces per level.
#pragma once
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/text/lexer.h"
#include "ir/text/text.h"

namespace agc::text {

std::string LocSuffix(Loc loc, const PrintOptions& options);  // ` loc("mlp.cc":12)` or ""
std::string Word(absl::string_view text);                     // bare where it is an identifier, else quoted
std::string Hex(absl::string_view bytes);                     // "0a1b" with quotes
std::string IntList(absl::Span<const int64_t> ints);          // [1, 2]
std::string TypeWithLanes(DType dtype, int lanes);            // f32x4

// Names in scope. Take gives a name a suffix where it is taken; Rewind forgets what was taken since Mark.
class NameScope {
 public:
  std::string Take(std::string name);
  size_t Mark() const { return entries_.size(); }
  void Rewind(size_t mark);

 private:
  struct Entry {
    std::string name, base;
    int next_before;
  };
  std::vector<Entry> entries_ = {};
  absl::flat_hash_set<std::string> taken_ = {};
  absl::flat_hash_map<std::string, int> next_ = {};  // base -> the suffix to try next
};

// A form of `name` that expressions can hold: an identifier that is no word of theirs.
std::string VarName(absl::string_view name);

// Plans `$0` lines for the expressions of one statement that share large parts: fills names.bound and appends a line
// for each. Trees that are small print in full.
void PrintShared(const ExprPool& pool, absl::Span<const ExprId> roots, ExprNames& names, absl::string_view indent,
                 std::string& out);

// Range of a loop's variable as its bounds say it; kernels print the range of the variable where it is another.
std::pair<int64_t, int64_t> LoopRange(const ExprNode& begin, const ExprNode& end, int64_t step);

void PrintGraph(const Graph& graph, const Program& program, const PrintOptions& options, std::string& out);
void PrintStorage(const Graph& graph, const Program& program, const PrintOptions& options, std::string& out);
void PrintNest(const Nest& nest, const PrintOptions& options, absl::string_view indent, std::string& out);
void PrintKernel(const Kernel& kernel, const PrintOptions& options, absl::string_view indent, std::string& out);

}  // namespace agc::text
