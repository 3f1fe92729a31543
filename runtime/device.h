// A Vulkan device: how it is chosen, what it can do, and where bundles are loaded. Nothing is chosen silently: name()
// and description() say what was taken, and callers print it.
//   AGC_ASSIGN_OR_RETURN(Device device, Device::Open({.name_or_index = "llvmpipe"}));
//   printf("device: %s\n", device.description().c_str());  // llvmpipe (LLVM 15.0.6, 256 bits), software,
//   Vulkan 1.4.305 AGC_ASSIGN_OR_RETURN(Session session, device.Load(bytes, Trust::kUntrusted));
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "runtime/status.h"

namespace agc::rt {

struct DeviceState;

struct DeviceOptions {
  // Empty: the first discrete, else integrated, else virtual, else software device. Digits: the number in
  // ListDevices(). Else a part of the name, in any case.
  std::string name_or_index = {};
  bool validation = false;  // Khronos layer with synchronization validation; messages go to stderr
  std::string abi = {};     // "bindings" or "addresses": only variants with that ABI are taken; empty: any
  // For tests, to take the paths of other devices: a smaller limit of one allocation (0: the device's own), and no
  // mapping of device memory, as on a discrete device.
  uint64_t max_allocation_bytes = 0;
  bool never_map = false;
};

struct DeviceInfo {
  std::string name = {};
  std::string type = {};     // discrete, integrated, virtual, software, other
  std::string api = {};      // "1.4.305"
  std::string refusal = {};  // why agc cannot use it; empty: it can
};

// In the order the loader gives; empty where there is no Vulkan at all.
std::vector<DeviceInfo> ListDevices();

// Movable; sessions keep what they need of the device alive.
class Device {
 public:
  // NotFound (which lists the devices there are) where none fits or the validation layer is missing, Unimplemented for
  // a named device that lacks what agc needs.
  static StatusOr<Device> Open(const DeviceOptions& options = {});

  const std::string& name() const;
  std::string description() const;
  // The target description: lines `key = value`, which agc::ParseTarget reads.
  const std::string& target() const;
  // Messages of the validation layer so far; 0 without it.
  int validation_messages() const;

  // Takes the first variant of the bundle whose requirements this device meets; else an error with the first unmet
  // requirement of each. Untrusted bundles run with bounds-checked buffer access and may hold no raw pointers.
  // `bytes` need not outlive the call.
  StatusOr<Session> Load(std::span<const uint8_t> bytes, Trust trust = Trust::kUntrusted) const;

 private:
  explicit Device(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}
  std::shared_ptr<DeviceState> state_;
};

}  // namespace agc::rt
