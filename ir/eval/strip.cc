#include "ir/eval/strip.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace agc {
namespace {

// Turns expressions into instructions, each node once, arguments before users.
class Compiler {
 public:
  Compiler(ExprPool& pool, absl::FunctionRef<VarRole(VarId)> role,
           absl::FunctionRef<bool(const ExprNode&)> varying_load)
      : pool_(pool), role_(role), varying_load_(varying_load), first_(pool.size(), UINT32_MAX) {}

  uint32_t RegOf(Expr e) {
    for (Expr x : PostOrder(e)) {
      if (first_[x.id.index] == UINT32_MAX) first_[x.id.index] = Emit(x);
    }
    return first_[e.id.index];
  }

  StripCode Take(std::vector<uint32_t> roots) {
    std::stable_partition(out_.code.begin(), out_.code.end(), [&](const StripInstr& i) { return !inner_[i.out]; });
    out_.inner = static_cast<size_t>(
        std::find_if(out_.code.begin(), out_.code.end(), [&](const StripInstr& i) { return inner_[i.out]; }) -
        out_.code.begin());
    out_.roots = std::move(roots);
    return std::move(out_);
  }

 private:
  uint32_t NewRegs(int count, bool uniform, bool inner) {
    const uint32_t first = static_cast<uint32_t>(out_.uniform.size());
    out_.uniform.insert(out_.uniform.end(), count, uniform);
    inner_.insert(inner_.end(), count, inner);
    return first;
  }

  uint32_t EmitVar(const ExprNode& n) {
    const VarRole role = role_(n.ref);
    const uint32_t reg = NewRegs(n.lanes, role.uniform, role.inner);
    out_.vars.push_back({n.ref, reg, n.lanes, role.uniform});
    return reg;
  }

  uint32_t EmitConst(const ExprNode& n) {
    const uint32_t reg = NewRegs(1, true, false);
    out_.constants.emplace_back(reg, Scalar{n.dtype, static_cast<uint64_t>(n.payload)});
    return reg;
  }

  // An operand's register for one lane of a vector value; scalars serve every lane.
  uint32_t ArgReg(const ExprNode& n, size_t arg, int component) const {
    const int width = pool_.node(n.args[arg]).lanes;
    return first_[n.args[arg].index] + static_cast<uint32_t>(width > 1 ? component : 0);
  }

  uint32_t Emit(Expr e) {
    const ExprNode& n = e.node();
    if (n.kind == ExprKind::kVar) return EmitVar(n);
    if (n.kind == ExprKind::kConst) return EmitConst(n);
    if (n.kind == ExprKind::kLane) return ArgReg(n, 0, static_cast<int>(n.payload));
    bool uniform = true, inner = false;
    for (ExprId a : n.args) {
      const uint32_t reg = first_[a.index];
      uniform = uniform && out_.uniform[reg];
      inner = inner || inner_[reg];
    }
    const bool load = n.kind == ExprKind::kLoad || n.kind == ExprKind::kAllocLoad || n.kind == ExprKind::kStage;
    if (load && varying_load_(n)) uniform = false;
    if (n.kind == ExprKind::kVec) {  // its lanes may differ in what they depend on
      const uint32_t reg = NewRegs(n.lanes, uniform, inner);
      for (int c = 0; c < n.lanes; ++c) {
        StripInstr copy{
            .kind = ExprKind::kVec, .dtype = n.dtype, .uniform = uniform, .out = reg + static_cast<uint32_t>(c)};
        copy.args.push_back(ArgReg(n, static_cast<size_t>(c), 0));
        out_.code.push_back(std::move(copy));
      }
      return reg;
    }
    const uint32_t reg = NewRegs(n.lanes, uniform, inner);
    if (load) {
      EmitLoad(n, reg, uniform);
      return reg;
    }
    for (int c = 0; c < n.lanes; ++c) out_.code.push_back(Scalarised(n, c, reg + static_cast<uint32_t>(c), uniform));
    return reg;
  }

  void EmitLoad(const ExprNode& n, uint32_t reg, bool uniform) {
    StripInstr instr{.kind = n.kind, .dtype = n.dtype, .width = n.lanes, .uniform = uniform, .ref = n.ref, .out = reg};
    const size_t indices = n.args.size() - (n.kind == ExprKind::kLoad ? 1 : 0);
    for (size_t i = 0; i < indices; ++i) instr.args.push_back(first_[n.args[i].index]);
    if (n.kind == ExprKind::kLoad && !pool_.at(n.args.back()).IsTrue()) instr.guard = first_[n.args.back().index];
    out_.code.push_back(std::move(instr));
  }

  StripInstr Scalarised(const ExprNode& n, int component, uint32_t reg, bool uniform) const {
    StripInstr instr{.kind = n.kind,
                     .dtype = n.dtype,
                     .uniform = uniform,
                     .ref = n.ref,
                     .payload = n.payload,
                     .lo = n.lo,
                     .hi = n.hi,
                     .out = reg};
    const bool select = n.kind == ExprKind::kAlu && ScalarOps()[n.ref].typing == ScalarTyping::kSelect;
    instr.from = pool_.node(n.args[select ? 1 : 0]).dtype;
    for (size_t i = 0; i < n.args.size(); ++i) instr.args.push_back(ArgReg(n, i, component));
    instr.coefs = n.coefs;
    return instr;
  }

  ExprPool& pool_;
  absl::FunctionRef<VarRole(VarId)> role_;
  absl::FunctionRef<bool(const ExprNode&)> varying_load_;
  std::vector<uint32_t> first_;  // by node
  std::vector<bool> inner_ = {};
  StripCode out_ = {};
};

// One operand: lane i lies at data[i * step].
struct Operand {
  const uint64_t* data = nullptr;
  int step = 1;
  double f(int i) const { return std::bit_cast<double>(data[i * step]); }
  int64_t i(int lane) const { return static_cast<int64_t>(data[lane * step]); }
};

// out[i] = f(x[i]) and f(x[i], y[i]), with loops that know which operands stay.
template <typename F>
void Map(Operand x, int n, uint64_t* out, F f) {
  if (x.step == 0) return std::fill(out, out + n, f(*x.data));
  for (int i = 0; i < n; ++i) out[i] = f(x.data[i]);
}
template <typename F>
void Map(Operand x, Operand y, int n, uint64_t* out, F f) {
  if (x.step == 0) {
    return Map(y, n, out, [f, v = *x.data](uint64_t w) { return f(v, w); });
  }
  if (y.step == 0) {
    return Map(x, n, out, [f, w = *y.data](uint64_t v) { return f(v, w); });
  }
  for (int i = 0; i < n; ++i) out[i] = f(x.data[i], y.data[i]);
}

template <typename Round>
void FloatAlu(const ScalarOp& op, const Operand* x, int n, uint64_t* out, Round round) {
  double (*const f)(const double*) = op.f;
  if (op.arity == 1) {
    return Map(x[0], n, out, [=](uint64_t a) {
      const double v[1] = {std::bit_cast<double>(a)};
      return std::bit_cast<uint64_t>(round(f(v)));
    });
  }
  Map(x[0], x[1], n, out, [=](uint64_t a, uint64_t b) {
    const double v[2] = {std::bit_cast<double>(a), std::bit_cast<double>(b)};
    return std::bit_cast<uint64_t>(round(f(v)));
  });
}

void IntAlu(const ScalarOp& op, DType from, DType to, const Operand* x, int n, uint64_t* out) {
  for (int i = 0; i < n; ++i) {
    int64_t v[3] = {};
    for (int k = 0; k < op.arity; ++k) v[k] = x[k].i(i);
    out[i] = static_cast<uint64_t>(WrapTo(to, op.i(from, v)));
  }
}

void RunAlu(const StripInstr& instr, EvalMode mode, const Operand* x, int n, uint64_t* out) {
  const ScalarOp& op = ScalarOps()[instr.ref];
  if (op.typing == ScalarTyping::kSelect) {
    for (int i = 0; i < n; ++i) out[i] = x[0].i(i) != 0 ? x[1].data[i * x[1].step] : x[2].data[i * x[2].step];
    return;
  }
  if (!IsFloat(instr.from)) return IntAlu(op, instr.from, instr.dtype, x, n, out);
  if (op.typing == ScalarTyping::kCompare) {
    for (int i = 0; i < n; ++i) {
      const double v[2] = {x[0].f(i), op.arity > 1 ? x[1].f(i) : 0.0};
      out[i] = op.fp(v) ? 1 : 0;
    }
    return;
  }
  if (mode == EvalMode::kDouble || instr.dtype == DType::kF64)
    return FloatAlu(op, x, n, out, [](double v) { return v; });
  if (instr.dtype == DType::kF32) {
    return FloatAlu(op, x, n, out, [](double v) { return static_cast<double>(static_cast<float>(v)); });
  }
  FloatAlu(op, x, n, out, [t = instr.dtype](double v) { return RoundTo(t, v); });
}

void RunCast(const StripInstr& instr, EvalMode mode, Operand x, int n, uint64_t* out) {
  const DType from = instr.from == DType::kIndex ? DType::kI64 : instr.from;
  const DType to = mode == EvalMode::kDouble && IsFloat(instr.dtype) ? DType::kF64 : instr.dtype;
  for (int i = 0; i < n; ++i) out[i] = Convert({from, x.data[i * x.step]}, to).bits;
}

// 32-bit floats, the common case, without a way through memory.
void RunBitcast(const StripInstr& instr, Operand x, int n, uint64_t* out) {
  if (instr.from == DType::kF32 && instr.dtype == DType::kU32) {
    return Map(x, n, out, [](uint64_t v) {
      return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(v)))};
    });
  }
  if (instr.from == DType::kU32 && instr.dtype == DType::kF32) {
    return Map(x, n, out, [](uint64_t v) {
      return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(v))));
    });
  }
  for (int i = 0; i < n; ++i) {  // under kDouble a register may hold what its dtype cannot
    const Scalar v = IsFloat(instr.from) ? Scalar::Float(instr.from, x.f(i)) : Scalar{instr.from, x.data[i * x.step]};
    out[i] = BitsAs(v, instr.dtype).bits;
  }
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

void RunLin(const StripInstr& instr, const Operand* x, int n, uint64_t* out) {
  uint64_t constant = static_cast<uint64_t>(instr.payload);
  for (size_t k = 0; k < instr.args.size(); ++k) {
    if (x[k].step == 0) constant += static_cast<uint64_t>(instr.coefs[k]) * *x[k].data;
  }
  bool first = true;
  for (size_t k = 0; k < instr.args.size(); ++k) {
    const uint64_t coef = static_cast<uint64_t>(instr.coefs[k]);
    if (x[k].step == 0) continue;
    if (first) {
      Map(x[k], n, out, [=](uint64_t v) { return constant + coef * v; });
    } else {
      Map({out, 1}, x[k], n, out, [=](uint64_t sum, uint64_t v) { return sum + coef * v; });
    }
    first = false;
  }
  if (first) std::fill(out, out + n, constant);
}

void RunIndex(const StripInstr& instr, const Operand* x, int n, uint64_t* out) {
  const int64_t p = instr.payload;
  const auto each = [&](auto f) {
    Map(x[0], n, out, [f](uint64_t v) { return static_cast<uint64_t>(f(static_cast<int64_t>(v))); });
  };
  switch (instr.kind) {
    case ExprKind::kLin:
      return RunLin(instr, x, n, out);
    case ExprKind::kDiv:
      return each([p](int64_t v) { return FloorDiv(v, p); });
    case ExprKind::kMod:
      return each([p](int64_t v) { return v - p * FloorDiv(v, p); });
    case ExprKind::kMin:
      return each([p](int64_t v) { return std::min(v, p); });
    case ExprKind::kMax:
      return each([p](int64_t v) { return std::max(v, p); });
    case ExprKind::kInRange:
      return each([p](int64_t v) { return v >= 0 && v < p ? 1 : 0; });
    case ExprKind::kNonNeg:
      return each([](int64_t v) { return v >= 0 ? 1 : 0; });
    case ExprKind::kEqZero:
      return each([](int64_t v) { return v == 0 ? 1 : 0; });
    case ExprKind::kAnd:
      Map(x[0], x[1], n, out, [](uint64_t a, uint64_t b) { return a & b; });
      for (size_t k = 2; k < instr.args.size(); ++k) {
        Map({out, 1}, x[k], n, out, [](uint64_t a, uint64_t b) { return a & b; });
      }
      return;
    default:
      return each([](int64_t v) { return v; });  // kVec: a copy
  }
}

absl::Status RunToIndex(const StripInstr& instr, Operand x, int n, const uint8_t* active, uint64_t* out) {
  for (int i = 0; i < n; ++i) {
    const int64_t v = x.i(i);
    out[i] = static_cast<uint64_t>(v);
    if ((v < instr.lo || v > instr.hi) && (active == nullptr || active[i] != 0)) {
      return absl::OutOfRangeError(
          absl::StrCat("computed index ", v, " lies outside its declared range [", instr.lo, ", ", instr.hi, "]"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

double RoundFor(EvalMode mode, DType dtype, double value) {
  return mode == EvalMode::kDouble ? value : RoundTo(dtype, value);
}

namespace {
template <typename T>
void Decode(const uint8_t* bytes, const int64_t* elements, int n, uint64_t* out) {
  for (int i = 0; i < n; ++i) {
    T v = 0;
    if (elements[i] >= 0) std::memcpy(&v, bytes + elements[i] * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = std::bit_cast<uint64_t>(static_cast<double>(v));
    } else {
      out[i] = static_cast<uint64_t>(static_cast<int64_t>(v));
    }
  }
}
}  // namespace

void DecodeElements(DType dtype, const uint8_t* bytes, const int64_t* elements, int n, uint64_t* out) {
  switch (dtype) {
    case DType::kF64:
      return Decode<double>(bytes, elements, n, out);
    case DType::kF32:
      return Decode<float>(bytes, elements, n, out);
    case DType::kI64:
    case DType::kU64:
    case DType::kIndex:
      return Decode<int64_t>(bytes, elements, n, out);
    case DType::kI32:
      return Decode<int32_t>(bytes, elements, n, out);
    case DType::kU32:
      return Decode<uint32_t>(bytes, elements, n, out);
    case DType::kU8:
    case DType::kBool:
      return Decode<uint8_t>(bytes, elements, n, out);
    default:
      for (int i = 0; i < n; ++i) {
        out[i] = elements[i] < 0 ? 0 : LoadElement(dtype, bytes + elements[i] * SizeOf(dtype)).bits;
      }
  }
}

StripCode CompileStrip(ExprPool& pool, absl::Span<const Expr> roots, absl::FunctionRef<VarRole(VarId)> role,
                       absl::FunctionRef<bool(const ExprNode&)> varying_load) {
  Compiler compiler(pool, role, varying_load);
  std::vector<uint32_t> regs;
  for (Expr e : roots) regs.push_back(compiler.RegOf(e));
  return compiler.Take(std::move(regs));
}

StripMachine::StripMachine(StripCode code, int capacity, EvalMode mode) : code_(std::move(code)), mode_(mode) {
  size_t slots = 0;
  for (bool uniform : code_.uniform) slots += uniform ? 1 : static_cast<size_t>(capacity);
  slots_.resize(slots);
  mask_.resize(static_cast<size_t>(capacity));
  uint64_t* next = slots_.data();
  for (bool uniform : code_.uniform) {
    regs_.push_back(next);
    next += uniform ? 1 : capacity;
  }
  for (const auto& [reg, value] : code_.constants) *regs_[reg] = value.bits;
}

void StripMachine::BindVar(VarId var, uint64_t* data, int component) {
  for (const StripVar& v : code_.vars) {
    if (v.var == var && component < v.width) regs_[v.reg + static_cast<uint32_t>(component)] = data;
  }
}

absl::Status StripMachine::Run(size_t begin, size_t end, StripMemory& memory, int lanes, const uint8_t* active) {
  absl::InlinedVector<Operand, 8> x;
  for (size_t pc = begin; pc < end; ++pc) {
    const StripInstr& instr = code_.code[pc];
    const int n = instr.uniform ? 1 : lanes;
    if (instr.kind == ExprKind::kLoad || instr.kind == ExprKind::kAllocLoad || instr.kind == ExprKind::kStage) {
      AGC_RETURN_IF_ERROR(RunLoad(instr, memory, n, instr.uniform ? nullptr : active));
      continue;
    }
    x.clear();
    for (uint32_t reg : instr.args) x.push_back({regs_[reg], code_.uniform[reg] ? 0 : 1});
    uint64_t* out = regs_[instr.out];
    switch (instr.kind) {
      case ExprKind::kAlu:
        RunAlu(instr, mode_, x.data(), n, out);
        break;
      case ExprKind::kCast:
      case ExprKind::kFromIndex:
        RunCast(instr, mode_, x[0], n, out);
        break;
      case ExprKind::kBitcast:
        RunBitcast(instr, x[0], n, out);
        break;
      case ExprKind::kToIndex:
        AGC_RETURN_IF_ERROR(RunToIndex(instr, x[0], n, instr.uniform ? nullptr : active, out));
        break;
      default:
        RunIndex(instr, x.data(), n, out);
    }
  }
  return absl::OkStatus();
}

absl::Status StripMachine::RunLoad(const StripInstr& instr, StripMemory& memory, int lanes, const uint8_t* active) {
  StripLoad load{.instr = &instr, .lanes = lanes, .active = active};
  if (instr.guard != UINT32_MAX) {
    const uint64_t* guard = regs_[instr.guard];
    const int step = code_.uniform[instr.guard] ? 0 : 1;
    for (int i = 0; i < lanes; ++i) mask_[i] = guard[i * step] != 0 && (active == nullptr || active[i] != 0);
    load.active = mask_.data();
  }
  for (uint32_t reg : instr.args) {
    load.index.push_back(regs_[reg]);
    load.stride.push_back(code_.uniform[reg] ? 0 : 1);
  }
  for (int c = 0; c < instr.width; ++c) load.out.push_back(regs_[instr.out + static_cast<uint32_t>(c)]);
  return memory.Load(load);
}

}  // namespace agc
