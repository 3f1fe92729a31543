// Spelling of expressions, constants and types in GLSL, for the statement printer in glsl.cc.
#pragma once
#include <set>
#include <string>

#include "codegen/glsl_names.h"
#include "ir/kernel.h"

namespace agc {

absl::string_view GlslType(DType value);         // of a value in a register: u8 is uint, f16 is float, index is uint
absl::string_view GlslStored(DType element);     // of a buffer element: bool is uint8_t
std::string GlslVector(DType value, int lanes);  // of words: vec4, or float for one lane
std::string GlslConstant(Scalar value);
std::string Wrapped(std::string text);  // in parentheses unless it is a name, a literal or a call

class GlslExpr {
 public:
  // `access` is how buffer parameters are reached: "x0" or "push.x0.v".
  GlslExpr(const Kernel& kernel, const GlslNames& names, std::vector<std::string> access);

  std::string Print(ExprId id);
  std::string Convert(absl::string_view text, DType from, DType to);
  std::string Bitcast(absl::string_view text, DType from, DType to);  // dtypes of the same size
  std::string Type(DType value, int lanes = 1) const;                 // of a value in a register
  std::string Constant(Scalar value) const;
  std::string Stored(size_t param) const;          // of what a buffer is an array of: elements, or vectors of them
  std::string Load(uint32_t param, ExprId index);  // an element as a value of its stored dtype
  std::string Store(uint32_t param, ExprId index, const std::string& value);  // a statement
  std::string LoadVector(uint32_t param, ExprId index, int lanes);            // of words
  std::string StoreVector(uint32_t param, ExprId index, ExprId value);
  std::string Element(uint32_t param, absl::string_view index) const;
  std::string AllocType(uint32_t alloc) const;  // of what an alloc is an array of: elements, or vectors of them
  std::string AllocElement(uint32_t alloc, absl::Span<const ExprId> index);
  std::string LoadAllocVector(uint32_t alloc, absl::Span<const ExprId> index, int lanes);  // of words
  std::string StoreAllocVector(uint32_t alloc, absl::Span<const ExprId> index, ExprId value);
  int alloc_lanes(uint32_t alloc) const { return alloc_lanes_[alloc]; }
  const std::set<std::string>& helpers() const { return helpers_; }  // functions that the spellings call
  const std::string& unsupported() const { return unsupported_; }    // "div on i64": met, and without a spelling yet

 private:
  std::string Atom(ExprId id);  // parenthesised unless it is a name, a literal or a call
  std::string Index(const ExprNode& n);
  std::string FromIndex(const ExprNode& n);
  std::string Call(const ExprNode& n);
  std::string Sum(const ExprNode& n);
  std::string AllocIndex(uint32_t alloc, absl::Span<const ExprId> index, int lanes);
  void Need(absl::string_view helper, DType type);
  std::string ToFloat(const std::string& text, DType from, DType to);
  std::string ToInt(const std::string& text, DType from, DType to);
  std::string ToPair(const std::string& text, DType from, DType to);
  bool Pair(DType t) const { return kernel_.int64_pairs && (t == DType::kI64 || t == DType::kU64); }

  const Kernel& kernel_;
  const GlslNames& names_;
  std::vector<std::string> access_;
  std::vector<int> lanes_;        // by parameter: of its widest access, which its buffer is an array of
  std::vector<int> alloc_lanes_;  // the same by alloc
  std::set<std::string> helpers_ = {};
  std::string unsupported_ = {};
};

}  // namespace agc
