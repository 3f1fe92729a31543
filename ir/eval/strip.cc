#include "ir/eval/strip.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ir/base/integers.h"
#include "ir/base/status.h"

namespace agc {
namespace {

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
