#include "codegen/glsl_names.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace agc {
namespace {

// Keywords and reserved words, then the functions that spellings call: a variable of such a name would hide them.
constexpr absl::string_view kWords[] = {"active",
                                        "asm",
                                        "attribute",
                                        "bool",
                                        "break",
                                        "buffer",
                                        "case",
                                        "cast",
                                        "centroid",
                                        "class",
                                        "coherent",
                                        "common",
                                        "const",
                                        "continue",
                                        "default",
                                        "discard",
                                        "do",
                                        "double",
                                        "else",
                                        "enum",
                                        "extern",
                                        "external",
                                        "false",
                                        "filter",
                                        "fixed",
                                        "flat",
                                        "float",
                                        "float16_t",
                                        "for",
                                        "goto",
                                        "half",
                                        "highp",
                                        "if",
                                        "image",
                                        "in",
                                        "inline",
                                        "inout",
                                        "input",
                                        "int",
                                        "int16_t",
                                        "int64_t",
                                        "int8_t",
                                        "interface",
                                        "invariant",
                                        "layout",
                                        "long",
                                        "lowp",
                                        "main",
                                        "mediump",
                                        "namespace",
                                        "noinline",
                                        "noperspective",
                                        "out",
                                        "output",
                                        "packed",
                                        "partition",
                                        "patch",
                                        "precise",
                                        "precision",
                                        "public",
                                        "push",
                                        "readonly",
                                        "resource",
                                        "restrict",
                                        "return",
                                        "sample",
                                        "sampler",
                                        "shared",
                                        "short",
                                        "sizeof",
                                        "smooth",
                                        "static",
                                        "struct",
                                        "subroutine",
                                        "superp",
                                        "switch",
                                        "template",
                                        "texture",
                                        "this",
                                        "true",
                                        "typedef",
                                        "uint",
                                        "uint16_t",
                                        "uint64_t",
                                        "uint8_t",
                                        "uniform",
                                        "union",
                                        "unsigned",
                                        "using",
                                        "varying",
                                        "void",
                                        "volatile",
                                        "while",
                                        "writeonly",

                                        "abs",
                                        "acos",
                                        "acosh",
                                        "all",
                                        "any",
                                        "asin",
                                        "asinh",
                                        "atan",
                                        "atanh",
                                        "atomicAdd",
                                        "atomicAnd",
                                        "atomicOr",
                                        "barrier",
                                        "bitCount",
                                        "bitfieldExtract",
                                        "bitfieldReverse",
                                        "ceil",
                                        "clamp",
                                        "cos",
                                        "cosh",
                                        "cross",
                                        "degrees",
                                        "distance",
                                        "dot",
                                        "equal",
                                        "exp",
                                        "exp2",
                                        "findLSB",
                                        "findMSB",
                                        "floor",
                                        "fma",
                                        "fract",
                                        "frexp",
                                        "inverse",
                                        "inversesqrt",
                                        "isinf",
                                        "isnan",
                                        "ldexp",
                                        "length",
                                        "log",
                                        "log2",
                                        "max",
                                        "memoryBarrier",
                                        "min",
                                        "mix",
                                        "mod",
                                        "modf",
                                        "normalize",
                                        "not",
                                        "pow",
                                        "radians",
                                        "reflect",
                                        "refract",
                                        "round",
                                        "roundEven",
                                        "sign",
                                        "sin",
                                        "sinh",
                                        "sqrt",
                                        "step",
                                        "tan",
                                        "tanh",
                                        "transpose",
                                        "trunc",
                                        "Push"};

// `name` is `stem` with nothing but digits after it.
bool Numbered(absl::string_view name, absl::string_view stem) {
  return name.size() > stem.size() && name.substr(0, stem.size()) == stem &&
         std::all_of(name.begin() + static_cast<int>(stem.size()), name.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c) != 0; });
}

bool Taken(absl::string_view name) {
  for (absl::string_view word : kWords) {
    if (name == word) return true;
  }
  for (absl::string_view stem : {"vec", "ivec", "uvec", "bvec", "dvec", "mat", "dmat", "Buffer", "Ref"}) {
    if (Numbered(name, stem)) return true;
  }
  for (absl::string_view start : {"gl_", "agc_", "subgroup"}) {
    if (name.substr(0, start.size()) == start) return true;
  }
  return false;
}

}  // namespace

std::string GlslName(absl::string_view name) {
  std::string out;
  for (char c : name) {
    const bool letter = absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter || (!out.empty() && out.back() != '_')) out += letter ? c : '_';
  }
  if (out.empty() || absl::ascii_isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  return Taken(out) ? (out.back() == '_' ? out + "v" : out + "_v") : out;
}

GlslNames::GlslNames(const Kernel& kernel)
    : kernel_(kernel), allocs_(kernel.allocs.size()), vars_(kernel.pool->vars()), scopes_(1) {
  for (const KernelParam& p : kernel.params) params_.push_back(Take(p.name));
  for (size_t i = 0; i < allocs_.size(); ++i) {
    if (kernel.allocs[i].space == AllocSpace::kShared) allocs_[i] = Take(kernel.allocs[i].name);
  }
}

std::string GlslNames::Take(absl::string_view name) {
  const std::string plain = GlslName(name);
  const absl::string_view joint = plain.back() == '_' ? "" : "_";  // two underscores in a row are reserved
  std::string out = plain;
  for (int n = 1; !visible_.insert(out).second; ++n) out = absl::StrCat(plain, joint, n);
  scopes_.back().push_back(out);
  return out;
}

void GlslNames::Enter() { scopes_.emplace_back(); }

void GlslNames::Leave() {
  for (const std::string& name : scopes_.back()) visible_.erase(name);
  scopes_.pop_back();
}

const std::string& GlslNames::DeclareVar(VarId v) { return vars_[v] = Take(kernel_.pool->var(v).name); }

const std::string& GlslNames::DeclareAlloc(uint32_t alloc) {
  if (kernel_.allocs[alloc].space == AllocSpace::kRegister) allocs_[alloc] = Take(kernel_.allocs[alloc].name);
  return allocs_[alloc];
}

}  // namespace agc
