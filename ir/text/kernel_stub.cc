#include "ir/text/parse.h"
#include "ir/text/print.h"
namespace agc::text {
void PrintKernel(const Kernel&, const PrintOptions&, absl::string_view, std::string&) {}
void ParseKernel(ModuleParser& m) { m.c.Fail("no"); }
}  // namespace agc::text
