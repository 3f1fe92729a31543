// Programs with pinned schedules: lowered to the nest stage, where every nest that a family fits gets its parameters;
// CompileProgram and LowerToPlan take it from there.
//   Program p = Clone(tensors);   EXPECT_EQ(Pin(p, TheTarget(), "rows {local = 8, threads = 8}"), 1);
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "passes/schedules/family.h"

namespace agc::test {

// How many nests took the schedule; -1 where it is not legal for one that it fits.
inline int Pin(Program& p, const Target& target, const std::string& text) {
  std::vector<std::string> passes = DefaultPipeline();
  passes.erase(std::find(passes.begin(), passes.end(), "choose-schedule"), passes.end());
  PassContext context{.target = target};
  const absl::Status lowered = RunPipeline(p, passes, context);
  EXPECT_TRUE(lowered.ok()) << lowered;
  const absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!lowered.ok() || !schedule.ok()) return 0;
  const ScheduleFamily& family = *FindFamily(schedule->family);
  int pinned = 0;
  for (Nest& nest : p.nests) {
    if (!family.matches(nest)) continue;
    if (!family.legal(nest, *schedule, target).ok()) return -1;
    nest.schedule = *schedule;
    ++pinned;
  }
  return pinned;
}

}  // namespace agc::test
