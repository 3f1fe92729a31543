// agc dump X: what is in a bundle, or would be in the bundle of a module.
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/export.h"
#include "codegen/spirv.h"
#include "compiler/agc.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "tools/agc/command.h"
#include "tools/agc/model.h"
#include "tools/agc/plan_text.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

Usage DumpUsage() {
  return {.command = "dump",
          .summary = "shows what is in a bundle, or what a module in text or an ONNX model compiles to",
          .operand = "MODEL.agb|MODEL.agir|MODEL.onnx",
          .options = Join({{{"ir", "", "the module in text"},
                            {"plan", "", "buffers and steps of every entry"},
                            {"memory", "", "arenas, bounds, and where temporaries lie"},
                            {"glsl", "[=KERNEL]", "the source of all kernels, or of one"},
                            {"spirv", "[=KERNEL]", "the assembly of all kernels, or of one"},
                            {"kernel", "KERNEL", "one kernel as nest, schedule, loop tree, GLSL and SPIR-V"},
                            {"json", "", "entries, kernels and states for scripts"}},
                           ImportTable(),
                           {{"input", "NAME=FILE", "a value whose shape binds the dimensions of an ONNX model"}},
                           TargetTable(),
                           CompileTable(),
                           DeviceTable()}),
          .example = "agc dump mlp.agb --kernel k3_matmul",
          .details =
              "Without an option it prints a summary. A module in text is compiled for --target, else for the "
              "device that `agc run`\nwould pick."};
}

// The module of a bundle in text, parsed; FailedPrecondition where it was stripped.
absl::StatusOr<Program> ModuleOf(const Model& model) {
  if (!model.is_bundle) return Clone(model.program);
  if (model.bundle.ir_text.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(model.path, " was compiled with --strip, it has no module text"));
  }
  return Parse(model.bundle.ir_text, absl::StrCat(model.path, " (module)"));
}

std::string GlslOf(const rt::Kernel& kernel) {
  if (!kernel.glsl.empty()) return kernel.glsl;
  const absl::StatusOr<std::string> text = SpirvToGlsl(kernel.spirv);
  return text.ok() ? *text : absl::StrCat("// ", text.status().message(), "\n");
}

void PrintSection(absl::string_view title, absl::string_view text) {
  std::printf("// ---- %s\n%s%s", std::string(title).c_str(), std::string(text).c_str(),
              absl::EndsWith(text, "\n") ? "" : "\n");
}

// All kernels, or the one asked for.
absl::StatusOr<std::vector<const rt::Kernel*>> Chosen(const rt::Bundle& bundle, const std::string& name) {
  std::vector<const rt::Kernel*> kernels;
  for (const rt::Kernel& k : bundle.kernels) kernels.push_back(&k);
  if (name.empty()) return kernels;
  AGC_ASSIGN_OR_RETURN(const rt::Kernel* kernel, Named(bundle.kernels, "kernel", name, "the bundle"));
  return std::vector<const rt::Kernel*>{kernel};
}

// The nest that a kernel was made from, with its schedule: the kernel's name, or the head of it, is the nest's.
absl::StatusOr<std::string> NestText(Program program, const Target& target, const CompileOptions& o,
                                     const std::string& kernel) {
  PassContext context = ContextOf(target, o);
  AGC_RETURN_IF_ERROR(RunPipeline(program, DefaultPipeline(program.stage), context, {.stop_after = "choose-schedule"}));
  const Nest* found = nullptr;
  for (const Nest& nest : program.nests) {
    const bool head = kernel == nest.name || absl::StartsWith(kernel, absl::StrCat(nest.name, "_"));
    if (head && (found == nullptr || nest.name.size() > found->name.size())) found = &nest;
  }
  return found == nullptr ? "// not found\n" : Print(*found);
}

absl::Status PrintIrOfKernel(const Model& model, const rt::Bundle& bundle, const CompileOptions& options,
                             const std::string& name) {
  const rt::Requirements& needs = bundle.variants[0].requires_;
  CompileOptions o = model.is_bundle ? WithOptionsOf(bundle.ir_text, options) : options;
  o.abi = needs.abi == rt::BufferAbi::kBindings ? BufferAbi::kBindings : BufferAbi::kAddresses;
  AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(needs.target_text));
  AGC_ASSIGN_OR_RETURN(Program program, ModuleOf(model));
  AGC_ASSIGN_OR_RETURN(const Program plan, LowerToPlan(Clone(program), target, o));
  const absl::StatusOr<const Kernel*> kernel = Named(plan.kernels, "kernel", name, "the module");
  if (!kernel.ok()) {  // a bundle that was compiled with other options
    return WithNote(kernel.status(), "give dump the options that the bundle was compiled with");
  }
  AGC_ASSIGN_OR_RETURN(const std::string nest, NestText(std::move(program), target, o, name));
  PrintSection("nest and schedule", nest);
  PrintSection("loop tree", Print(**kernel));
  return absl::OkStatus();
}

absl::Status PrintKernel(const Model& model, const rt::Bundle& bundle, const CompileOptions& options,
                         const std::string& name) {
  AGC_ASSIGN_OR_RETURN(const rt::Kernel* kernel, Named(bundle.kernels, "kernel", name, "the bundle"));
  const absl::Status ir = PrintIrOfKernel(model, bundle, options, name);
  if (!ir.ok()) PrintSection("nest, schedule and loop tree", absl::StrCat("// ", ir.message()));
  PrintSection("GLSL", GlslOf(*kernel));
  PrintSection("SPIR-V", DisassembleSpirv(kernel->spirv));
  return absl::OkStatus();
}

absl::Status PrintParts(const Flags& flags, const Model& model, const rt::Bundle& bundle,
                        const CompileOptions& options) {
  for (const rt::Entry& e : bundle.variants[0].entries) {
    if (flags.Has("plan")) std::fputs(PlanText(bundle, e).c_str(), stdout);
    if (flags.Has("memory")) std::fputs(MemoryText(bundle, e).c_str(), stdout);
  }
  for (const bool glsl : {true, false}) {
    const absl::string_view part = glsl ? "glsl" : "spirv";
    if (!flags.Has(part)) continue;
    AGC_ASSIGN_OR_RETURN(const std::vector<const rt::Kernel*> kernels, Chosen(bundle, flags.Text(part)));
    for (const rt::Kernel* k : kernels)
      PrintSection(absl::StrCat("kernel ", k->name), glsl ? GlslOf(*k) : DisassembleSpirv(k->spirv));
  }
  return flags.Has("kernel") ? PrintKernel(model, bundle, options, flags.Text("kernel")) : absl::OkStatus();
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(const Model model, ReadModel(flags));
  const CompileOptions options = CompileOptionsOf(flags);
  if (flags.Has("ir") && flags.Has("json")) {
    return absl::InvalidArgumentError("--ir prints text and --json JSON, give one of them");
  }
  bool parts = false;  // that need the compiled model
  for (absl::string_view part : {"plan", "memory", "glsl", "spirv", "kernel"}) parts = parts || flags.Has(part);
  if (flags.Has("ir")) {
    AGC_ASSIGN_OR_RETURN(const Program program, ModuleOf(model));
    const CompileOptions made_with = WithOptionsOf(model.bundle.ir_text, {});  // none for a module in text
    std::fputs(absl::StrCat(OptionsComment(made_with), Print(program, {.locations = model.imported})).c_str(), stdout);
    if (!parts) return 0;
  }
  rt::Bundle compiled;
  if (!model.is_bundle) {
    AGC_ASSIGN_OR_RETURN(const Target target, TargetOf(flags));
    AGC_ASSIGN_OR_RETURN(compiled, CompileModel(model, target, options));
  }
  const rt::Bundle& bundle = model.is_bundle ? model.bundle : compiled;
  AGC_RETURN_IF_ERROR(PrintParts(flags, model, bundle, options));
  if (flags.Has("json")) PrintJson(BundleJson(bundle));
  if (!parts && !flags.Has("json")) std::fputs(SummaryText(bundle).c_str(), stdout);
  return 0;
}

}  // namespace

int Dump(const std::vector<std::string>& args) { return RunCommand(DumpUsage(), args, Run); }

}  // namespace agc::tool
