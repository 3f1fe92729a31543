#include "codegen/glsl.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/glsl_expr.h"
#include "codegen/glsl_names.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

class Printer {
 public:
  Printer(const Kernel& kernel, GlslAbi abi)
      : kernel_(kernel),
        abi_(abi),
        names_(kernel),
        expr_(kernel, names_, Accesses()),
        dtypes_(DTypesOf(kernel)),
        no_words_(LanesOfNoWords(*kernel.pool)) {}

  absl::StatusOr<std::string> Print() {
    AGC_RETURN_IF_ERROR(VerifyIndexBits(kernel_));
    int64_t first = 0;
    for (size_t i = 0; i < kernel_.parts.size(); ++i) {
      const KernelPart& part = kernel_.parts[i];
      const bool several = kernel_.parts.size() > 1;
      groups_ = part.groups;
      group_ = first == 0 ? "gl_WorkGroupID.x" : absl::StrCat("(gl_WorkGroupID.x - ", first, "u)");
      if (several) Open(absl::StrCat(i == 0 ? "" : "else ", "if (gl_WorkGroupID.x < ", first + part.groups[0], "u)"));
      AGC_RETURN_IF_ERROR(Block(part.body));
      if (several) Close();
      first += part.groups[0];
    }
    if (!expr_.unsupported().empty()) {
      return ErrorAt(kernel_.loc,
                     absl::StrCat(kernel_.name, ": ", expr_.unsupported(),
                                  " cannot be computed on a device yet; cast to a 32-bit type"),
                     absl::StatusCode::kUnimplemented);
    }
    return absl::StrCat(Head(), absl::StrJoin(expr_.helpers(), ""), "void main() {\n", body_, "}\n");
  }

 private:
  std::vector<std::string> Accesses() const {
    std::vector<std::string> all;
    for (uint32_t i = 0; i < kernel_.params.size(); ++i) {
      all.push_back(abi_ == GlslAbi::kBindings ? names_.param(i) : absl::StrCat("push.", names_.param(i), ".v"));
    }
    return all;
  }

  void Line(absl::string_view text) {
    absl::StrAppend(&body_, std::string(static_cast<size_t>(indent_) * 2, ' '), text, "\n");
  }
  void Open(absl::string_view head) {
    Line(absl::StrCat(head, " {"));
    ++indent_;
    names_.Enter();
  }
  void Close() {
    names_.Leave();
    --indent_;
    Line("}");
  }

  bool Uses(absl::string_view feature) const {
    return std::find(kernel_.features.begin(), kernel_.features.end(), feature) != kernel_.features.end();
  }

  bool Stores(std::initializer_list<DType> types) const {
    return std::any_of(kernel_.params.begin(), kernel_.params.end(), [&](const KernelParam& p) {
      return std::find(types.begin(), types.end(), p.stored) != types.end() && !p.packed;
    });
  }

  bool UsesType(std::initializer_list<DType> types) const {
    return std::any_of(types.begin(), types.end(), [&](DType t) { return dtypes_.count(t) != 0; });
  }

  std::string Head() const {
    std::string out = absl::StrCat("#version 450\n// ", kernel_.name,
                                   kernel_.loc.line != 0 ? absl::StrCat(": ", ToString(kernel_.loc)) : "",
                                   kernel_.precise ? "\n// precise: no multiply-add is fused" : "", "\n");
    const auto extension = [&](bool wanted, absl::string_view name) {
      if (wanted) absl::StrAppend(&out, "#extension ", name, " : require\n");
    };
    extension(true, "GL_EXT_control_flow_attributes");
    extension(Stores({DType::kI8, DType::kU8, DType::kBool}), "GL_EXT_shader_8bit_storage");
    extension(Stores({DType::kF16, DType::kBF16, DType::kI16, DType::kU16}), "GL_EXT_shader_16bit_storage");
    extension(!kernel_.int64_pairs && UsesType({DType::kI64, DType::kU64}),
              "GL_EXT_shader_explicit_arithmetic_types_int64");
    extension(Uses("subgroup_shuffle"), "GL_KHR_shader_subgroup_basic");
    extension(Uses("subgroup_shuffle"), "GL_KHR_shader_subgroup_shuffle");
    extension(abi_ == GlslAbi::kAddresses, "GL_EXT_buffer_reference");
    absl::StrAppend(&out, FloatControls());
    absl::StrAppend(&out, "layout(local_size_x = ", kernel_.local[0], ", local_size_y = ", kernel_.local[1],
                    ", local_size_z = ", kernel_.local[2], ") in;\n");
    absl::StrAppend(&out, Params());
    for (uint32_t i = 0; i < kernel_.allocs.size(); ++i) {
      const Alloc& a = kernel_.allocs[i];
      if (a.space != AllocSpace::kShared) continue;
      absl::StrAppend(&out, "shared ", expr_.AllocType(i), " ", names_.alloc(i),
                      a.extents.empty() ? "" : absl::StrCat("[", Elements(a) / expr_.alloc_lanes(i), "]"), ";\n");
    }
    if (counts_arrivals_) absl::StrAppend(&out, "shared uint agc_arrived;\n");
    return out;
  }

  // Execution modes of SPIR-V, which GLSL has no words for.
  std::string FloatControls() const {
    struct Control {
      absl::string_view feature;
      int mode, capability;
    };
    static constexpr Control kControls[] = {
        {"denorm_preserve", 4459, 4464}, {"rounding_rte", 4462, 4467}, {"signed_zero_inf_nan_preserve", 4461, 4466}};
    std::string out;
    for (const Control& c : kControls) {
      for (int width : {32, 64}) {
        if (Uses(absl::StrCat(c.feature, "_f", width)))
          absl::StrAppend(&out, "spirv_execution_mode(capabilities = [", c.capability, "], ", c.mode, ", ", width,
                          ");\n");
      }
    }
    return out.empty() ? out : absl::StrCat("#extension GL_EXT_spirv_intrinsics : require\n", out);
  }

  std::string Params() const {
    std::string out, push;
    std::set<std::string> types;
    for (uint32_t i = 0; i < kernel_.params.size(); ++i) {
      const KernelParam& p = kernel_.params[i];
      const std::string qualifiers = absl::StrCat(p.coherent ? "coherent " : "", p.restrict_ ? "restrict " : "",
                                                  p.access == KernelAccess::kRead                 ? "readonly "
                                                  : p.access == KernelAccess::kWrite && !p.packed ? "writeonly "
                                                                                                  : "");
      if (abi_ == GlslAbi::kBindings) {
        absl::StrAppend(&out, "layout(set = 0, binding = ", i, ", std430) ", qualifiers, "buffer Buffer", i, " { ",
                        expr_.Stored(i), " ", names_.param(i), "[]; };\n");
        continue;
      }
      const std::string type = absl::StrCat("Ref", i);
      absl::StrAppend(&out, "layout(buffer_reference, std430, buffer_reference_align = 16) ", qualifiers, "buffer ",
                      type, " { ", expr_.Stored(i), " v[]; };\n");
      absl::StrAppend(&push, " ", type, " ", names_.param(i), ";");
    }
    if (abi_ == GlslAbi::kAddresses)
      absl::StrAppend(&out, "layout(push_constant, std430) uniform Push {", push, " } push;\n");
    return out;
  }

  static int64_t Elements(const Alloc& a) {
    int64_t n = 1;
    for (size_t i = 0; i < a.extents.size(); ++i) n *= a.extents[i] + (i + 1 == a.extents.size() ? a.skew : 0);
    return n;
  }

  std::string Workgroup(int dim) const {
    return dim == 0 ? group_ : dim == 1 ? "gl_WorkGroupID.y" : "gl_WorkGroupID.z";
  }
  std::string Local(int dim) const {
    if (Uses("subgroup_shuffle") && dim == 0) return "gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID";
    return absl::StrCat("gl_LocalInvocationID.", std::string(1, "xyz"[dim]));
  }

  // All invocations of the grid run what the loop holds, unless it has fewer iterations.
  absl::Status ParallelFor(const Stmt& s) {
    const bool local = s.mode == ForMode::kLocal;
    const std::string number = local ? Local(s.dim) : Workgroup(s.dim);
    const int64_t extent = kernel_.pool->node(s.end).payload, grid = local ? kernel_.local[s.dim] : groups_[s.dim];
    if (extent < grid) Open(absl::StrCat("if (", Wrapped(number), " < ", extent, "u)"));
    Line(absl::StrCat("uint ", names_.DeclareVar(s.var), " = ", number, ";"));
    AGC_RETURN_IF_ERROR(Block(s.body));
    if (extent < grid) Close();
    return absl::OkStatus();
  }

  absl::Status For(const Stmt& s) {
    if (s.mode == ForMode::kWorkgroup || s.mode == ForMode::kLocal) return ParallelFor(s);
    const std::string begin = expr_.Print(s.begin), end = expr_.Print(s.end);
    names_.Enter();
    const std::string name = names_.DeclareVar(s.var);
    Open(absl::StrCat(s.mode == ForMode::kUnroll ? "[[unroll]] " : "", "for (uint ", name, " = ", begin, "; ", name,
                      " < ", end, "; ",
                      s.step == 1 ? absl::StrCat("++", name) : absl::StrCat(name, " += ", s.step, "u"), ")"));
    AGC_RETURN_IF_ERROR(Block(s.body));
    Close();
    names_.Leave();
    return absl::OkStatus();
  }

  absl::Status If(const Stmt& s) {
    Open(absl::StrCat("if (", expr_.Print(s.cond), ")"));
    AGC_RETURN_IF_ERROR(Block(s.body));
    Close();
    if (s.otherwise.empty()) return absl::OkStatus();
    Open("else");
    AGC_RETURN_IF_ERROR(Block(s.otherwise));
    Close();
    return absl::OkStatus();
  }

  void Store(const Stmt& s) {
    const DType dtype = kernel_.pool->node(s.value).dtype;
    const bool wide = kernel_.pool->node(s.value).lanes > 1;
    std::string store;
    if (s.to_alloc) {
      store = wide ? expr_.StoreAllocVector(s.target, s.index, s.value)
                   : absl::StrCat(expr_.AllocElement(s.target, s.index), " = ", expr_.Print(s.value), ";");
    } else {
      store = wide ? expr_.StoreVector(s.target, s.index[0], s.value)
                   : expr_.Store(s.target, s.index[0],
                                 expr_.Convert(expr_.Print(s.value), dtype, kernel_.params[s.target].stored));
    }
    if (s.guard.valid()) {
      const bool several = wide || (!s.to_alloc && kernel_.params[s.target].packed);
      store = absl::StrCat("if (", expr_.Print(s.guard), ") ", several ? absl::StrCat("{ ", store, " }") : store);
    }
    Line(store);
  }

  void AllocOf(const Stmt& s) {
    const Alloc& a = kernel_.allocs[s.target];
    if (a.space == AllocSpace::kRegister)
      Line(absl::StrCat(expr_.Type(a.dtype), " ", names_.DeclareAlloc(s.target),
                        a.extents.empty() ? "" : absl::StrCat("[", Elements(a), "]"), ";"));
  }

  // What the workgroup wrote is made visible before it counts itself; the last one sees what all of them wrote.
  absl::Status IfLast(const Stmt& s) {
    const std::string counter = expr_.Element(s.target, expr_.Print(s.index[0])), count = expr_.Print(s.count);
    counts_arrivals_ = true;
    Line("memoryBarrierBuffer();");
    Line("barrier();");
    Line(absl::StrCat("if (gl_LocalInvocationIndex == 0u) agc_arrived = atomicAdd(", counter, ", 1u) + 1u;"));
    Line("barrier();");
    Open(absl::StrCat("if (agc_arrived == ", count, ")"));
    Line("memoryBarrierBuffer();");
    Line(absl::StrCat("if (gl_LocalInvocationIndex == 0u) ", counter, " = 0u;"));
    AGC_RETURN_IF_ERROR(Block(s.body));
    Close();
    return absl::OkStatus();
  }

  void Lanes(const Stmt& s) {
    const absl::string_view f = s.lanes_op == LanesOp::kShuffleXor ? "subgroupShuffleXor" : "subgroupShuffle";
    const std::string value = expr_.Print(s.value);
    Line(absl::StrCat(expr_.Type(kernel_.pool->var(s.var).dtype), " ", names_.DeclareVar(s.var), " = ", f, "(", value,
                      ", ", s.lane, "u);"));
  }

  absl::Status Block(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) AGC_RETURN_IF_ERROR(Statement(s));
    return absl::OkStatus();
  }

  absl::Status Unspelt(const Stmt& s, absl::string_view what) const {
    return ErrorAt(s.loc.line == 0 ? kernel_.loc : s.loc,
                   absl::StrCat("@", kernel_.name, ": ", what, " has no GLSL spelling yet"),
                   absl::StatusCode::kUnimplemented);
  }

  // Values of several lanes have a spelling where they are words in buffers, shared arrays and lets.
  bool HasOtherLanes(const Stmt& s) const {
    for (ExprId id : ExprsOf(s)) {
      if (no_words_[id.index]) return true;
    }
    return s.kind == StmtKind::kAlloc && kernel_.allocs[s.target].lanes > 1;
  }

  // By expression: it or a part of it has several lanes that are no words. Arguments come before what they are
  // arguments of.
  static std::vector<bool> LanesOfNoWords(const ExprPool& pool) {
    std::vector<bool> wide(pool.size());
    for (uint32_t i = 0; i < wide.size(); ++i) {
      const ExprNode& n = pool.node({i});
      const bool word = n.dtype == DType::kF32 || n.dtype == DType::kI32 || n.dtype == DType::kU32;
      wide[i] =
          (n.lanes > 1 && !word) || std::any_of(n.args.begin(), n.args.end(), [&](ExprId a) { return wide[a.index]; });
    }
    return wide;
  }

  absl::Status Statement(const Stmt& s) {
    if (HasOtherLanes(s)) return Unspelt(s, "a value of several lanes that are no words");
    switch (s.kind) {
      case StmtKind::kFor:
        return For(s);
      case StmtKind::kIf:
        return If(s);
      case StmtKind::kLet: {
        const std::string value = expr_.Print(s.value);
        const VarInfo& v = kernel_.pool->var(s.var);
        Line(absl::StrCat(expr_.Type(v.dtype, v.lanes), " ", names_.DeclareVar(s.var), " = ", value, ";"));
        return absl::OkStatus();
      }
      case StmtKind::kAlloc:
        AllocOf(s);
        return absl::OkStatus();
      case StmtKind::kStore:
        if (s.combiner != nullptr) return Unspelt(s, absl::StrCat("store ", s.combiner->name));
        Store(s);
        return absl::OkStatus();
      case StmtKind::kLanes:
        if (s.lanes_op == LanesOp::kBallot) return Unspelt(s, "lanes ballot");
        Lanes(s);
        return absl::OkStatus();
      case StmtKind::kBarrier:
        if (s.fence != Fence::kShared) Line("memoryBarrierBuffer();");
        Line("barrier();");
        return absl::OkStatus();
      case StmtKind::kRegion:
        Line(absl::StrCat("// ", s.label, s.loc.line != 0 ? absl::StrCat(": ", ToString(s.loc)) : ""));
        return Block(s.body);
      case StmtKind::kIfLast:
        return IfLast(s);
      case StmtKind::kAtomic:
        return Unspelt(s, "atomic");
      case StmtKind::kTile:
        return Unspelt(s, "tile");
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  GlslAbi abi_;
  GlslNames names_;
  GlslExpr expr_;
  std::set<DType> dtypes_;
  std::vector<bool> no_words_;
  std::string body_ = {}, group_ = {};
  std::array<int64_t, 3> groups_ = {1, 1, 1};  // of the present part
  int indent_ = 1;
  bool counts_arrivals_ = false;  // printed so far
};

}  // namespace

absl::StatusOr<std::string> PrintGlsl(const Kernel& kernel, GlslAbi abi) { return Printer(kernel, abi).Print(); }

}  // namespace agc
