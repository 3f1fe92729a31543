// Sequences and optionals exist while importing only: lists of tensors, with positions that are known.
#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

std::vector<Item> ListOf(Call& c, int k) {
  const Item item = c.item(k);
  if (c.ok() && item.kind != Item::kSequence) c.Fail(absl::StrCat("operand ", k, " is no sequence"));
  return item.items;
}

Item Sequence(std::vector<Item> items) { return {Item::kSequence, {}, std::move(items)}; }

// A position in a list of n, from the end where it is negative; n itself where `end`.
int64_t PositionOf(Call& c, int k, int64_t n, bool end) {
  const int64_t given = c.integer(k, "the position in the sequence");
  const int64_t at = given < 0 ? given + n : given;
  if (c.ok() && (at < 0 || at >= n + (end ? 1 : 0))) c.Fail(absl::StrCat("position ", given, " in a sequence of ", n));
  return at;
}

void SequenceConstruct(Call& c) {
  std::vector<Item> items;
  for (const Value& v : c.rest(0)) items.push_back(Item::Of(v));
  c.out_item(Sequence(std::move(items)));
}

void SequenceEmpty(Call& c) {
  c.ignore("dtype");
  c.out_item(Sequence({}));
}

void SequenceAt(Call& c) {
  const std::vector<Item> items = ListOf(c, 0);
  const int64_t at = PositionOf(c, 1, static_cast<int64_t>(items.size()), false);
  if (c.ok()) c.out_item(items[static_cast<size_t>(at)]);
}

void SequenceInsert(Call& c) {
  std::vector<Item> items = ListOf(c, 0);
  const Value v = c.in(1);
  const auto n = static_cast<int64_t>(items.size());
  const int64_t at = c.has(2) ? PositionOf(c, 2, n, true) : n;
  if (!c.ok()) return;
  items.insert(items.begin() + at, Item::Of(v));
  c.out_item(Sequence(std::move(items)));
}

void SequenceErase(Call& c) {
  std::vector<Item> items = ListOf(c, 0);
  const auto n = static_cast<int64_t>(items.size());
  const int64_t at = c.has(1) ? PositionOf(c, 1, n, false) : n - 1;
  if (!c.ok()) return;
  if (n == 0) return void(c.Fail("the sequence is empty"));
  items.erase(items.begin() + at);
  c.out_item(Sequence(std::move(items)));
}

void SequenceLength(Call& c) {
  HostTensor n = HostTensor::Zeros({DType::kI64, {}});
  n.set(0, Scalar::Int(DType::kI64, static_cast<int64_t>(ListOf(c, 0).size())));
  c.out(c.Constant(n));
}

// Pieces of given sizes, of one size, or single elements without their axis.
void SplitToSequence(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  const bool keep = c.flag("keepdims", true);
  const bool given = c.has(1);
  const Value split = c.opt(1);
  Ints sizes = given ? c.ints(1, "split") : Ints();
  if (!c.ok()) return;
  if (axis < -x.rank() || axis >= x.rank()) return void(c.Fail(absl::StrCat("axis ", axis, " of rank ", x.rank())));
  const int64_t n = x.dim(static_cast<int>(axis));
  if (!given) sizes = Ints(static_cast<size_t>(n), 1);
  if (given && split.rank() == 0) {
    const int64_t each = sizes[0];
    if (each < 1) return void(c.Fail(absl::StrCat("pieces of ", each)));
    sizes.clear();
    for (int64_t left = n; left > 0; left -= each) sizes.push_back(std::min(each, left));
  }
  std::vector<Item> items;
  for (const Value& part : Split(x, sizes, axis))
    items.push_back(Item::Of(given || keep ? part : Squeeze(part, {axis})));
  c.out_item(Sequence(std::move(items)));
}

void ConcatFromSequence(Call& c) {
  const std::vector<Item> items = ListOf(c, 0);
  const int64_t axis = c.integer("axis");
  const bool fresh = c.integer("new_axis", 0) == 1;
  if (!c.ok()) return;
  if (items.empty()) return void(c.Fail("the sequence is empty"));
  std::vector<Value> values;
  for (const Item& item : items) values.push_back(item.tensor);
  c.out(fresh ? Stack(values, axis) : values.size() == 1 ? values[0] : Concat(values, axis));
}

// The body for every element; operands that are no sequences are the same for all.
void SequenceMap(Call& c) {
  const AttributeProto* body = c.attr("body", AttributeProto::kGraph);
  const std::vector<Item> first = ListOf(c, 0);
  std::vector<Item> operands = {Sequence(first)};
  for (int k = 1; k < c.inputs(); ++k) operands.push_back(c.item(k));
  if (!c.ok() || body == nullptr) return;
  std::vector<std::vector<Item>> results(static_cast<size_t>(c.outputs()));
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Item> inputs;
    for (const Item& o : operands) {
      if (o.kind == Item::kSequence && o.items.size() != first.size())
        return void(c.Fail("sequences of different lengths"));
      inputs.push_back(o.kind == Item::kSequence ? o.items[i] : o);
    }
    const std::vector<Item> one = c.Body(body->graphs[0], std::move(inputs));
    if (!c.ok()) return;
    for (size_t k = 0; k < results.size() && k < one.size(); ++k) results[k].push_back(one[k]);
  }
  for (size_t k = 0; k < results.size(); ++k) c.out_item(Sequence(std::move(results[k])), static_cast<int>(k));
}

void Optional(Call& c) {
  c.ignore("type");
  c.out_item(c.has(0) ? c.item(0) : Item{Item::kNone, {}, {}});
}

void OptionalGetElement(Call& c) {
  const Item item = c.item(0);
  if (c.ok() && item.kind == Item::kNone) return void(c.Fail("the optional has no value"));
  c.out_item(item);
}

void OptionalHasElement(Call& c) {
  const bool there = c.has(0) && c.item(0).kind != Item::kNone;
  HostTensor answer = HostTensor::Zeros({DType::kBool, {}});
  answer.set(0, Scalar::Int(DType::kBool, there ? 1 : 0));
  c.out(c.Constant(answer));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"ConcatFromSequence", 11, ConcatFromSequence}, {"Optional", 15, Optional}, {"OptionalGetElement", 15, OptionalGetElement},
    {"OptionalHasElement", 15, OptionalHasElement}, {"SequenceAt", 11, SequenceAt}, {"SequenceConstruct", 11, SequenceConstruct},
    {"SequenceEmpty", 11, SequenceEmpty}, {"SequenceErase", 11, SequenceErase}, {"SequenceInsert", 11, SequenceInsert},
    {"SequenceLength", 11, SequenceLength}, {"SequenceMap", 17, SequenceMap}, {"SplitToSequence", 11, SplitToSequence},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kSequenceOps(kRows);

}  // namespace agc::onnx
