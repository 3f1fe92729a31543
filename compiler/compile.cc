#include "compiler/compile.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "codegen/glsl.h"
#include "codegen/reflect.h"
#include "codegen/spirv.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "passes/flat_plan.h"
#include "passes/manager.h"

namespace agc {

PassContext ContextOf(const Target& target, const CompileOptions& o) {
  PassContext context;
  context.target = target;
  context.abi = o.abi;
  context.numerics = o.numerics;
  context.precision = o.precision;
  context.fuse = o.fuse;
  context.reuse_memory = o.reuse_memory;
  context.in_place = o.in_place;
  context.ring = o.ring;
  return context;
}

// ---------------------------------------------------------------- options in the module text

namespace {

constexpr absl::string_view kCompiledWith = "// compiled with";
constexpr std::pair<Numerics, absl::string_view> kNumerics[] = {{Numerics::kPortable, " --numerics=portable"},
                                                                {Numerics::kFast, " --numerics=fast"}};

}  // namespace

std::string OptionsComment(const CompileOptions& o) {
  std::string given;
  for (const auto& [numerics, text] : kNumerics) absl::StrAppend(&given, o.numerics == numerics ? text : "");
  if (o.precision != DType::kF32) absl::StrAppend(&given, " --precision=", Name(o.precision));
  return given.empty() ? "" : absl::StrCat(kCompiledWith, given, "\n");
}

CompileOptions WithOptionsOf(absl::string_view module_text, CompileOptions o) {
  o.numerics = Numerics::kRepeatable;
  o.precision = DType::kF32;
  absl::string_view line = module_text.substr(0, module_text.find('\n'));
  if (!absl::ConsumePrefix(&line, kCompiledWith)) return o;
  for (const auto& [numerics, text] : kNumerics) {
    if (absl::StrContains(line, text)) o.numerics = numerics;
  }
  for (const DType narrow : {DType::kF16, DType::kBF16}) {
    if (absl::StrContains(line, absl::StrCat(" --precision=", Name(narrow)))) o.precision = narrow;
  }
  return o;
}

namespace {

constexpr int64_t kMaxRing = 65536;

// ---------------------------------------------------------------- kernels

absl::StatusOr<rt::Kernel> CompileKernel(const Kernel& kernel, const CompileOptions& o) {
  const bool bindings = o.abi == BufferAbi::kBindings;
  rt::Kernel out;
  out.name = kernel.name;
  AGC_ASSIGN_OR_RETURN(out.glsl, PrintGlsl(kernel, bindings ? GlslAbi::kBindings : GlslAbi::kAddresses));
  AGC_ASSIGN_OR_RETURN(out.spirv,
                       CompileGlsl(out.glsl, kernel.name, {.optimize = o.optimize, .precise = kernel.precise}));
  for (const KernelParam& p : kernel.params) out.params.push_back(static_cast<rt::Access>(p.access));
  for (int i = 0; i < 3; ++i) out.local_size[i] = static_cast<uint32_t>(kernel.local[i]);
  out.push_constant_bytes = bindings ? 0 : static_cast<uint32_t>(8 * kernel.params.size());
  AGC_RETURN_IF_ERROR(CheckReflection(out, bindings ? rt::BufferAbi::kBindings : rt::BufferAbi::kAddresses));
  if (o.strip) out.glsl.clear();
  return out;
}

// All kernels, on as many threads as the machine has; the first error in kernel order is returned.
absl::StatusOr<std::vector<rt::Kernel>> CompileKernels(const Program& program, const CompileOptions& o) {
  std::vector<absl::StatusOr<rt::Kernel>> results(program.kernels.size(), absl::UnknownError("not compiled"));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < results.size(); i = next++) results[i] = CompileKernel(program.kernels[i], o);
  };
  std::vector<std::thread> threads;
  const size_t count = std::min<size_t>(results.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  std::vector<rt::Kernel> kernels;
  for (absl::StatusOr<rt::Kernel>& r : results) {
    AGC_ASSIGN_OR_RETURN(rt::Kernel kernel, std::move(r));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// ---------------------------------------------------------------- entries

rt::Signature SignatureOf(const std::string& name, const TensorType& type, uint32_t buffer) {
  return {.name = name,
          .dtype = static_cast<rt::DType>(type.dtype),
          .dims = {type.dims.begin(), type.dims.end()},
          .buffer = buffer};
}

uint32_t BufferOf(const Graph& graph, BufferKind kind, const std::string& symbol) {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    if (graph.buffers[i].kind == kind && graph.buffers[i].symbol == symbol) return static_cast<uint32_t>(i);
  }
  AGC_CHECK(false);  // lower-to-nests makes a row for every parameter and output
  return 0;
}

absl::StatusOr<rt::Entry> EntryOf(const Program& program, const Graph& graph, const CompileOptions& o) {
  rt::Entry entry;
  entry.name = graph.name;
  AGC_ASSIGN_OR_RETURN(entry.plan, FillFlatPlan(program, graph));
  for (const GraphParam& p : graph.params) {
    static constexpr BufferKind kKinds[] = {BufferKind::kInput, BufferKind::kResident, BufferKind::kParam};
    std::vector<rt::Signature>* lists[] = {&entry.inputs, &entry.residents, &entry.params};
    const int kind = static_cast<int>(p.kind);
    lists[kind]->push_back(SignatureOf(p.name, p.type, BufferOf(graph, kKinds[kind], p.name)));
  }
  bool rings = !entry.params.empty();
  for (const Output& out : graph.outputs) {
    entry.outputs.push_back(SignatureOf(out.name, out.type, BufferOf(graph, BufferKind::kOutput, out.name)));
    entry.outputs.back().each_step = out.each_step;
    rings = rings || out.each_step;
  }
  if (rings) {
    entry.ring = static_cast<uint32_t>(o.ring);
    entry.run_index_state = program.StateIndex(kRunIndex);
  }
  entry.bound_bytes = graph.bound_bytes;
  return entry;
}

// Features that the stored and computed dtypes of a kernel need of a device.
void AddFeatures(const Kernel& kernel, std::set<std::string>& features) {
  features.insert(kernel.features.begin(), kernel.features.end());
  for (const KernelParam& p : kernel.params) {
    const absl::string_view feature = StorageFeature(p.stored);
    if (!feature.empty() && !p.packed) features.insert(std::string(feature));
  }
  for (DType t : DTypesOf(kernel)) {
    if (t == DType::kF64) features.insert("shader_float64");
    if ((t == DType::kI64 || t == DType::kU64) && !kernel.int64_pairs) features.insert("shader_int64");
  }
}

rt::Requirements RequirementsOf(const Program& program, const rt::Variant& variant, const Target& target,
                                const CompileOptions& o) {
  rt::Requirements need;
  need.target_text = ToString(target);
  need.abi = o.abi == BufferAbi::kBindings ? rt::BufferAbi::kBindings : rt::BufferAbi::kAddresses;
  std::set<std::string> features;
  if (o.abi == BufferAbi::kAddresses) features.insert("buffer_device_address");
  for (const Kernel& k : program.kernels) {
    need.shared_bytes = std::max(need.shared_bytes, static_cast<uint32_t>(k.shared_bytes()));
    need.invocations = std::max(need.invocations, static_cast<uint32_t>(k.local[0] * k.local[1] * k.local[2]));
    const auto params = static_cast<uint32_t>(k.params.size());
    if (o.abi == BufferAbi::kBindings) need.storage_buffers = std::max(need.storage_buffers, params);
    if (o.abi == BufferAbi::kAddresses) need.push_constant_bytes = std::max(need.push_constant_bytes, 8 * params);
    if (std::find(k.features.begin(), k.features.end(), "subgroup_shuffle") != k.features.end()) {
      need.min_subgroup_size = std::max(need.min_subgroup_size, static_cast<uint32_t>(target.subgroup_min));
    }
    AddFeatures(k, features);
  }
  for (const rt::Entry& entry : variant.entries) {
    for (const rt::FlatStep& step : entry.plan.steps) {
      for (const rt::FlatArg& arg : step.args) need.storage_range = std::max(need.storage_range, arg.size);
    }
  }
  need.features.assign(features.begin(), features.end());
  return need;
}

}  // namespace

absl::StatusOr<Program> LowerToPlan(Program program, const Target& target, const CompileOptions& options) {
  if (options.ring < 1 || options.ring > kMaxRing) {
    return absl::InvalidArgumentError(
        absl::StrCat("ring: one submission holds 1 to ", kMaxRing, " steps, not ", options.ring));
  }
  PassContext context = ContextOf(target, options);
  ManagerOptions manager;
  manager.dump_dir = options.dump_dir;
  manager.time = options.time;
  manager.compare = false;  // what passes say of themselves is for `agc opt` and tests
  AGC_RETURN_IF_ERROR(RunPipeline(program, DefaultPipeline(program.stage), context, manager));
  if (options.remarks != nullptr) *options.remarks = std::move(context.remarks);
  return program;
}

absl::StatusOr<rt::Bundle> CompileProgram(Program program, const Target& target, const CompileOptions& options) {
  if (program.graphs.empty() && program.states.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("module @", program.name, " has neither graph nor state, there is nothing to compile"));
  rt::Bundle bundle;
  bundle.module_name = program.name;
  if (!options.strip) bundle.ir_text = absl::StrCat(OptionsComment(options), Print(program));
  AGC_ASSIGN_OR_RETURN(program, LowerToPlan(std::move(program), target, options));
  AGC_ASSIGN_OR_RETURN(bundle.kernels, CompileKernels(program, options));
  rt::Variant variant;
  for (const Graph& graph : program.graphs) {
    AGC_ASSIGN_OR_RETURN(rt::Entry entry, EntryOf(program, graph, options));
    variant.entries.push_back(std::move(entry));
  }
  variant.requires_ = RequirementsOf(program, variant, target, options);
  for (const std::string& feature : variant.requires_.features) {
    if (target.has(feature)) continue;
    return absl::ResourceExhaustedError(absl::StrCat(program.name, " needs ", feature, ", which ", target.name,
                                                     " lacks", feature == "shader_float64" ? "; cast f64 to f32" : ""));
  }
  bundle.variants.push_back(std::move(variant));
  const StateLayout layout = LayoutStates(program, target);
  bundle.state_bytes = static_cast<uint64_t>(layout.bytes);
  for (size_t i = 0; i < program.states.size(); ++i) {
    const StateDef& s = program.states[i];
    bundle.states.push_back({.name = s.name,
                             .dtype = static_cast<rt::DType>(s.type.dtype),
                             .dims = {s.type.dims.begin(), s.type.dims.end()},
                             .offset = static_cast<uint64_t>(layout.offsets[i]),
                             .trainable = s.trainable,
                             .hidden = s.hidden});
  }
  for (const Graph& graph : program.graphs) {
    if (!graph.arena_sizes.empty()) bundle.state_bytes = std::max(bundle.state_bytes, graph.arena_sizes[0]);
  }
  bundle.const_data = ConstantBytes(program);
  return bundle;
}

absl::StatusOr<rt::Bundle> WithStates(rt::Bundle bundle, const std::vector<StateValue>& states) {
  std::map<std::string, const StateValue*> given;
  for (const StateValue& s : states) {
    const bool known = std::any_of(bundle.states.begin(), bundle.states.end(),
                                   [&](const rt::State& state) { return !state.hidden && state.name == s.name; });
    if (!known) return absl::InvalidArgumentError(absl::StrCat("the bundle has no state @", s.name));
    if (!given.emplace(s.name, &s).second) {
      return absl::InvalidArgumentError(absl::StrCat("state @", s.name, " is given twice"));
    }
  }
  bundle.state_values.assign(bundle.state_bytes, 0);
  for (const rt::State& s : bundle.states) {
    if (s.hidden) continue;
    const TensorType type{static_cast<DType>(s.dtype), {s.dims.begin(), s.dims.end()}};
    const auto it = given.find(s.name);
    if (it == given.end()) return absl::InvalidArgumentError(absl::StrCat("state @", s.name, " is missing"));
    const StateValue& value = *it->second;
    if (value.dtype.has_value() && (*value.dtype != s.dtype || value.dims != s.dims)) {
      const TensorType other{static_cast<DType>(*value.dtype), {value.dims.begin(), value.dims.end()}};
      return absl::InvalidArgumentError(
          absl::StrCat("state @", s.name, " is ", ToString(type), ", given as ", ToString(other)));
    }
    const auto bytes = static_cast<size_t>(type.bytes());
    if (value.bytes.size() != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("state @", s.name, ": ", value.bytes.size(), " bytes given, ", bytes, " expected"));
    }
    if (bytes > 0) std::memcpy(bundle.state_values.data() + s.offset, value.bytes.data(), bytes);
  }
  bundle.has_state_values = true;
  return bundle;
}

}  // namespace agc
