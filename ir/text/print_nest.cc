#include "ir/text/print.h"
#include "ir/text/parse.h"
namespace agc::text {
void PrintNest(const Nest&, const PrintOptions&, absl::string_view, std::string&) {}
void PrintKernel(const Kernel&, const PrintOptions&, absl::string_view, std::string&) {}
void ParseNest(ModuleParser& m) { m.c.Fail("no"); }
void ParseKernel(ModuleParser& m) { m.c.Fail("no"); }
}
