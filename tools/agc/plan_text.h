// Plans of bundles as text and JSON: steps, buffers, memory. Names of the JSON members are a stable interface.
//   std::fputs(PlanText(bundle, entry).c_str(), stdout);
#pragma once
#include <string>

#include "runtime/format.h"
#include "tools/agc/json.h"

namespace agc::tool {

struct PlanCounts {
  int64_t kernels = 0;   // dispatches of one run
  int64_t levels = 0;    // barrier epochs: barriers + 1, 0 for an empty plan
  int64_t barriers = 0;  // barrier steps
};
PlanCounts Count(const rt::FlatPlan& plan);

std::string SignatureText(const rt::Entry& entry);  // "infer(input x: f32[2]) -> (y: f32[2])"
std::string PlanText(const rt::Bundle& bundle, const rt::Entry& entry);
std::string MemoryText(const rt::Bundle& bundle, const rt::Entry& entry);
std::string SummaryText(const rt::Bundle& bundle);
Json BundleJson(const rt::Bundle& bundle);

}  // namespace agc::tool
