// agc devices: the Vulkan devices, and the description of one as a compile target.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "runtime/device.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/json.h"

namespace agc::tool {
namespace {

Usage DevicesUsage() {
  return {.command = "devices",
          .summary = "lists the Vulkan devices; `*` marks the one that is taken by default",
          .options = {{"json", "", "for scripts"},
                      {"target", "[=NAME]", "print the description of a device, which --target=FILE of others reads"}},
          .example = "agc devices --target > here.target",
          .details = "Exit code 1: there is no device that agc can use."};
}

// Number of the device taken by default, or -1.
int DefaultDevice(const std::vector<rt::DeviceInfo>& devices) {
  const rt::StatusOr<rt::Device> device = rt::Device::Open();
  for (size_t i = 0; device.ok() && i < devices.size(); ++i) {
    if (devices[i].refusal.empty() && devices[i].name == device->name()) return static_cast<int>(i);
  }
  return -1;
}

void PrintAsJson(const std::vector<rt::DeviceInfo>& devices, int taken) {
  std::vector<Json> list;
  for (size_t i = 0; i < devices.size(); ++i) {
    const rt::DeviceInfo& d = devices[i];
    list.push_back(Json::Object({{"index", Json::Of(static_cast<uint64_t>(i))},
                                 {"name", Json::Of(d.name)},
                                 {"type", Json::Of(d.type)},
                                 {"api", Json::Of(d.api)},
                                 {"usable", Json::Of(d.refusal.empty())},
                                 {"refusal", Json::Of(d.refusal)},
                                 {"default", Json::Of(static_cast<int>(i) == taken)}}));
  }
  PrintJson(Json::List(list, true));
}

absl::StatusOr<int> Run(const Flags& flags) {
  if (flags.Has("target")) {
    AGC_ASSIGN_OR_RETURN(const rt::Device device, rt::Device::Open({.name_or_index = flags.Text("target")}));
    std::fputs(device.target().c_str(), stdout);
    return 0;
  }
  const std::vector<rt::DeviceInfo> devices = rt::ListDevices();
  const int taken = DefaultDevice(devices);
  if (flags.Has("json")) {
    PrintAsJson(devices, taken);
    return taken >= 0 ? 0 : 1;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    const rt::DeviceInfo& d = devices[i];
    const std::string line =
        absl::StrFormat("%c %d  %s, %s, Vulkan %s", static_cast<int>(i) == taken ? '*' : ' ', i, d.name, d.type, d.api);
    std::printf("%s%s\n", line.c_str(), d.refusal.empty() ? "" : absl::StrCat(" (unusable: ", d.refusal, ")").c_str());
  }
  if (devices.empty()) {
    std::fprintf(stderr, "no Vulkan device: install the GPU's driver, or mesa-vulkan-drivers for a software device\n");
  }
  return taken >= 0 ? 0 : 1;
}

}  // namespace

int Devices(const std::vector<std::string>& args) { return RunCommand(DevicesUsage(), args, Run); }

}  // namespace agc::tool
