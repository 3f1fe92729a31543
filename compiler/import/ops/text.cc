// What counts n-grams of numbers; strings themselves have no type in agc.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

// The pool of n-grams: those of length n stand from counts[n - 1] on.
struct Pool {
  std::vector<int64_t> numbers = {};
  Ints counts = {}, places = {};
  std::vector<double> weights = {};
  int mode = 0;  // TF, IDF, TFIDF
};

// Whether lengths and places lie within the pool.
bool Fits(const Pool& pool) {
  const auto n = static_cast<int64_t>(pool.numbers.size());
  const auto within = [&](int64_t k) { return k >= 0 && k <= n; };
  return std::is_sorted(pool.counts.begin(), pool.counts.end()) &&
         std::all_of(pool.counts.begin(), pool.counts.end(), within) &&
         std::all_of(pool.places.begin(), pool.places.end(), [](int64_t k) { return k >= 0 && k < (1 << 16); });
}

// How often `gram` is in the rows of x [rows, n], with `skip` elements left out between its own.
Value CountOf(Call& c, Value x, absl::Span<const int64_t> gram, int64_t skip) {
  const auto length = static_cast<int64_t>(gram.size());
  const int64_t rows = x.dim(0), places = x.dim(1) - (length - 1) * (skip + 1);
  if (places < 1) return Full(c.builder(), {DType::kF32, {rows, 1}}, 0);
  Value all;
  for (int64_t k = 0; k < length; ++k) {
    const int64_t from = k * (skip + 1);
    const Value part = Slice(x, {0, from}, {rows, from + places}, {1, 1});
    const Value same = Equal(part, FullLike(part, static_cast<double>(gram[static_cast<size_t>(k)])));
    all = all.valid() ? LogicalAnd(all, same) : same;
  }
  return ReduceSum(CastTo(all, DType::kF32), {1}, true);
}

void TfIdfVectorizer(Call& c) {
  Value x = c.in(0);
  Pool pool{.counts = c.ints("ngram_counts"),
            .places = c.ints("ngram_indexes"),
            .weights = c.numbers("weights"),
            .mode = c.choice("mode", {"TF", "IDF", "TFIDF"}, "")};
  if (c.has_attr("pool_strings")) return void(c.Fail("pool_strings: strings are not supported"));
  const Ints numbers = c.ints("pool_int64s");
  pool.numbers.assign(numbers.begin(), numbers.end());
  const int64_t shortest = c.integer("min_gram_length"), longest = c.integer("max_gram_length"),
                most = c.integer("max_skip_count");
  if (!c.ok()) return;
  if (!IsInt(x.dtype()) || x.rank() < 1 || x.rank() > 2)
    return void(c.Fail(absl::StrCat("operand is ", ToString(x.type()), ", expected integers [n] or [rows,n]")));
  const bool flat = x.rank() == 1;
  if (flat) x = Reshape(x, {1, x.dim(0)});
  if (pool.places.empty() || !Fits(pool)) return void(c.Fail("ngram_counts and ngram_indexes do not fit the pool"));
  const auto size = *std::max_element(pool.places.begin(), pool.places.end()) + 1;
  std::vector<Value> columns(static_cast<size_t>(size));
  size_t gram = 0;
  for (int64_t n = 1; n <= static_cast<int64_t>(pool.counts.size()); ++n) {
    const auto from = static_cast<size_t>(pool.counts[static_cast<size_t>(n) - 1]);
    const size_t to = n < static_cast<int64_t>(pool.counts.size())
                          ? static_cast<size_t>(pool.counts[static_cast<size_t>(n)])
                          : pool.numbers.size();
    for (size_t at = from; at + static_cast<size_t>(n) <= to; at += static_cast<size_t>(n), ++gram) {
      if (n < shortest || n > longest || gram >= pool.places.size()) continue;
      Value sum;
      for (int64_t skip = 0; skip <= (n == 1 ? 0 : most); ++skip) {
        const Value count = CountOf(c, x, {pool.numbers.data() + at, static_cast<size_t>(n)}, skip);
        sum = sum.valid() ? Add(sum, count) : count;
      }
      if (pool.mode == 1) sum = Minimum(sum, FullLike(sum, 1));
      if (pool.mode != 0 && gram < pool.weights.size()) sum = sum * pool.weights[gram];
      columns[static_cast<size_t>(pool.places[gram])] = sum;
    }
  }
  for (Value& column : columns) {
    if (!column.valid()) column = Full(c.builder(), {DType::kF32, {x.dim(0), 1}}, 0);
  }
  const Value y = columns.size() == 1 ? columns[0] : Concat(columns, 1);
  c.out(flat ? Reshape(y, {size}) : y);
}

// clang-format off
constexpr OpRow kRows[] = {{"TfIdfVectorizer", 9, TfIdfVectorizer, "strings"}};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kTextOps(kRows);

}  // namespace agc::onnx
