#include "codegen/spirv_contraction.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace agc {
namespace {

constexpr size_t kHeader = 5;
constexpr uint32_t kDecorate = 71, kNoContraction = 42;

// FNegate, FAdd, FSub, FMul, FDiv, FRem, FMod and the products of vectors and matrices up to Dot.
constexpr uint32_t kArithmetic[] = {127, 129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148};
// What may stand before and among the decorations: from the capabilities to the names, and decorations of every kind.
constexpr uint32_t kBeforeTypes[] = {2,  3,  4,  5,  6,  7,  8,   10,  11,  14,  15,   16,
                                     17, 71, 72, 73, 74, 75, 317, 330, 331, 332, 5632, 5633};

template <size_t n>
bool Has(const uint32_t (&list)[n], uint32_t opcode) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

}  // namespace

std::vector<uint32_t> ForbidContraction(std::vector<uint32_t> words) {
  std::set<uint32_t> results, decorated;
  size_t types = 0;  // where they begin
  for (size_t at = kHeader; at < words.size();) {
    const uint32_t length = words[at] >> 16, opcode = words[at] & 0xffff;
    if (length == 0 || length > words.size() - at) return words;
    if (types == 0 && !Has(kBeforeTypes, opcode)) types = at;
    if (opcode == kDecorate && length == 3 && words[at + 2] == kNoContraction) decorated.insert(words[at + 1]);
    if (Has(kArithmetic, opcode) && length > 2) results.insert(words[at + 2]);
    at += length;
  }
  std::vector<uint32_t> added;
  for (uint32_t id : results) {
    if (decorated.count(id) == 0) added.insert(added.end(), {3u << 16 | kDecorate, id, kNoContraction});
  }
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(types), added.begin(), added.end());
  return words;
}

}  // namespace agc
