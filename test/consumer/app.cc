// What a program of another project includes; C++20 and the include path come with agc::runtime.
#include "runtime/device.h"

agc::rt::StatusOr<agc::rt::Session> Open(std::span<const uint8_t> bundle) {
  agc::rt::StatusOr<agc::rt::Device> device = agc::rt::Device::Open();
  if (!device.ok()) return device.status();
  return device->Load(bundle);
}
