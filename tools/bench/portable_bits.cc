// Runs every op of the table in portable numerics on a device and prints, op by op, a hash of the result's bits and
// whether they are those of the evaluator: equal lists from two devices mean equal results.
//   portable_bits [--device=NAME] > bits.txt
// Operands: the row's sample, and for scalar ops on floats 4096 elements of random bits in f32 and, where the device
// has it, f64. Exit code 1 where a device's bits are not the evaluator's.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "runtime/device.h"

namespace agc {
namespace {

struct Case {
  std::string label = {};
  Program program = {};
  EvalInputs inputs = {};
};

// Every n-th element without its exponent.
void MakeSubnormal(HostTensor& t, size_t n) {
  const bool wide = t.type.dtype == DType::kF64;
  const size_t size = wide ? 8 : 4;
  for (size_t at = 0; at < t.bytes.size(); at += n * size) {
    t.bytes[at + size - 1] &= 0x80;
    t.bytes[at + size - 2] &= wide ? 0x0f : 0x7f;
  }
}

// In [lo, hi], or any bits, of which every fourth number is subnormal.
HostTensor Operand(const TensorType& type, double lo, double hi, bool any, std::mt19937& random) {
  HostTensor t = HostTensor::Zeros(type);
  if (IsUnsigned(type.dtype)) lo = std::max(lo, 0.0);
  for (size_t i = 0; any && i < t.bytes.size(); ++i) t.bytes[i] = static_cast<uint8_t>(random() >> 24);
  if (any) MakeSubnormal(t, 4);
  for (int64_t i = 0; !any && i < type.elements(); ++i) {
    const double v = lo + (hi - lo) * static_cast<double>(random()) / 4294967296.0;
    t.set(i, IsFloat(type.dtype) ? Scalar::Float(type.dtype, v) : Scalar::Of(type.dtype, std::floor(v)));
  }
  return t;
}

absl::StatusOr<Case> MakeCase(const OpDef& op, const std::vector<std::string>& shapes, bool any) {
  Case c;
  c.program.graphs.emplace_back();
  Graph& graph = c.program.graphs[0];
  graph.name = "g";
  std::mt19937 random(1);
  std::vector<OpId> operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    AGC_ASSIGN_OR_RETURN(const TensorType type, ParseType(shapes[i]));
    const std::string name = absl::StrCat("x", i);
    operands.push_back(AppendInput(graph, ParamKind::kInput, name, type, {}));
    c.inputs.params[name] = Operand(type, op.sample.lo, op.sample.hi, any, random);
  }
  AGC_ASSIGN_OR_RETURN(const std::vector<Attr> attrs, ParseAttrs(op, op.sample.attrs));
  AGC_ASSIGN_OR_RETURN(const OpId id, AppendChecked(graph, op, operands, attrs, {}));
  const Types types = graph.op(id).types;
  for (size_t part = 0; part < types.size(); ++part) {
    OpId value = id;
    if (types.size() > 1) {
      AGC_ASSIGN_OR_RETURN(value, AppendChecked(graph, GetOp(), {id}, {Attr{"index", static_cast<int64_t>(part)}}, {}));
    }
    graph.outputs.push_back({absl::StrCat("y", part), types[part], false, value, {}});
  }
  c.label = absl::StrCat(op.name, any ? absl::StrCat(" of any ", shapes[0]) : "");
  return c;
}

bool TakesFloats(const ScalarOp& op) {
  return op.domain != ScalarDomain::kInt && op.domain != ScalarDomain::kBits &&
         (op.typing == ScalarTyping::kSame || op.typing == ScalarTyping::kCompare);
}

std::vector<Case> Cases(const Target& target) {
  std::vector<Case> all;
  for (const OpDef* op : AllOps()) {
    if (op->numpy.empty()) continue;
    std::vector<std::string> shapes;
    for (absl::string_view s : op->sample.shapes) {
      if (!s.empty()) shapes.emplace_back(s);
    }
    while (static_cast<int>(shapes.size()) < op->arity.min) shapes.emplace_back("f32[2,3]");
    if (absl::StatusOr<Case> c = MakeCase(*op, shapes, false); c.ok()) all.push_back(*std::move(c));
    const ScalarOp* scalar = FindScalarOp(op->name);
    if (scalar == nullptr || !TakesFloats(*scalar)) continue;
    for (const char* type : {"f32[4096]", "f64[4096]"}) {
      if (type[1] == '6' && !(target.has("shader_float64") && target.has("shader_int64"))) continue;
      const std::vector<std::string> same(static_cast<size_t>(scalar->arity), type);
      if (absl::StatusOr<Case> c = MakeCase(*op, same, true); c.ok()) all.push_back(*std::move(c));
    }
  }
  return all;
}

// All NaNs count as one.
uint64_t Bits(const Scalar& v) { return IsFloat(v.dtype) && std::isnan(v.f()) ? 0x7ff8000000000000 : v.bits; }

// FNV-1a over the elements' bits.
uint64_t HashOf(const HostTensor& t, uint64_t hash) {
  for (int64_t i = 0; i < t.type.elements(); ++i) {
    uint64_t bits = Bits(t.at(i));
    for (int byte = 0; byte < 8; ++byte, bits >>= 8) hash = (hash ^ (bits & 255)) * 0x100000001b3;
  }
  return hash;
}

// How many elements differ and what the first of them is, with the operands' elements of that number; empty: none.
std::string FirstDifference(const Case& c, const HostTensor& got, const HostTensor& want) {
  int64_t count = 0, first = 0;
  for (int64_t i = got.type.elements() - 1; i >= 0; --i) {
    if (Bits(got.at(i)) == Bits(want.at(i))) continue;
    first = i;
    ++count;
  }
  if (count == 0) return "";
  std::string text = absl::StrFormat(": %d of %d; element %d is %x, expected %x", count, got.type.elements(), first,
                                     Bits(got.at(first)), Bits(want.at(first)));
  for (const auto& [name, t] : c.inputs.params) {
    if (first < t.type.elements()) absl::StrAppendFormat(&text, ", %s %x", name, Bits(t.at(first)));
  }
  return text;
}

absl::StatusOr<bool> RunCase(const Case& c, rt::Device& device, const Target& target) {
  const Graph& graph = c.program.graphs[0];
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileProgram(Clone(c.program), target, {.numerics = Numerics::kPortable}));
  AGC_ASSIGN_OR_RETURN(rt::Session session, device.Load(Bundle(std::move(content)).bytes(), rt::Trust::kTrusted));
  rt::Args args;
  for (const auto& [name, t] : c.inputs.params) args.push_back(rt::Arg::Raw(name, t.bytes));
  AGC_ASSIGN_OR_RETURN(const rt::Outputs out, session.Run("g", 1, args));
  AGC_ASSIGN_OR_RETURN(const EvalResult want, EvaluateGraph(c.program, graph, c.inputs, EvalMode::kPortable));
  uint64_t got_hash = 0xcbf29ce484222325, want_hash = got_hash;
  std::string difference;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const HostTensor got = {graph.outputs[i].type, out.values[i].bytes};
    const HostTensor& expected = want.outputs.at(graph.outputs[i].name);
    if (difference.empty()) difference = FirstDifference(c, got, expected);
    got_hash = HashOf(got, got_hash);
    want_hash = HashOf(expected, want_hash);
  }
  std::printf("%016llx %s %s%s\n", static_cast<unsigned long long>(got_hash), difference.empty() ? "equal" : "DIFFERS",
              c.label.c_str(), difference.c_str());
  return difference.empty();
}

absl::StatusOr<int> Main(const std::string& name) {
  AGC_ASSIGN_OR_RETURN(rt::Device device, rt::Device::Open({.name_or_index = name}));
  AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(device.target()));
  std::fprintf(stderr, "device: %s\n", device.description().c_str());
  int differ = 0;
  for (const Case& c : Cases(target)) {
    const absl::StatusOr<bool> same = RunCase(c, device, target);
    if (!same.ok()) std::printf("- FAILED %s: %s\n", c.label.c_str(), std::string(same.status().message()).c_str());
    differ += same.ok() && *same ? 0 : 1;
  }
  std::fprintf(stderr, "%d differ\n", differ);
  return differ == 0 ? 0 : 1;
}

}  // namespace
}  // namespace agc

int main(int argc, char** argv) {
  std::string device;
  if (argc > 1 && std::strncmp(argv[1], "--device=", 9) == 0) device = argv[1] + 9;
  const absl::StatusOr<int> code = agc::Main(device);
  if (!code.ok()) std::fprintf(stderr, "error: %s\n", std::string(code.status().message()).c_str());
  return code.ok() ? *code : 2;
}
