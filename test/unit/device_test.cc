// LABELS: vulkan
// Choosing a device, its target description, and what needs no session: errors of Vulkan calls, cutting arenas.
#include "runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/target.h"
#include "runtime/memory.h"

namespace agc::rt {
namespace {

using ::testing::HasSubstr;

TEST(Devices, LossIsRemembered) {
  DeviceState state;
  EXPECT_EQ(state.Error(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkAllocateMemory", "5 bytes").ToString(),
            "RESOURCE_EXHAUSTED: vkAllocateMemory returned VK_ERROR_OUT_OF_DEVICE_MEMORY (-2): 5 bytes");
  EXPECT_TRUE(state.Alive().ok());
  const Status lost = state.Error(VK_ERROR_DEVICE_LOST, "vkQueueSubmit", "entry step");
  EXPECT_EQ(lost.code(), Code::kInternal);
  EXPECT_THAT(lost.message(), HasSubstr("vkQueueSubmit returned VK_ERROR_DEVICE_LOST (-4): entry step; the device is"));
  EXPECT_FALSE(state.Error(VK_ERROR_DEVICE_LOST, "vkWaitForFences", "later").ok());
  EXPECT_EQ(state.Alive().message(), lost.message());
}

TEST(Devices, CutsArenas) {
  EXPECT_EQ(CutArena(100, {{0, 40}}, 100), (ByteRanges{{0, 100}}));
  EXPECT_EQ(CutArena(2048, {{0, 512}, {512, 1000}, {1024, 1500}, {1400, 2048}}, 1024),
            (ByteRanges{{0, 1000}, {1024, 2048}}));
  EXPECT_EQ(CutArena(2048, {{0, 1500}, {1536, 1600}}, 1024), (ByteRanges{{0, 1500}, {1536, 1600}}));
}

TEST(Devices, ListAndChoice) {
  const std::vector<DeviceInfo> devices = ListDevices();
  ASSERT_FALSE(devices.empty());
  EXPECT_TRUE(Device::Open({.name_or_index = devices[0].name.substr(0, 4)}).ok());
  EXPECT_TRUE(Device::Open({.name_or_index = "0"}).ok());
  const Status status = Device::Open({.name_or_index = "voodoo"}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  const std::string first = devices.size() == 1 ? "the only one is 0: " : "there are 0: ";
  EXPECT_THAT(status.message(), HasSubstr("no device \"voodoo\": " + first + devices[0].name));
  EXPECT_EQ(Device::Open({.name_or_index = "999"}).status().code(), Code::kNotFound);
  EXPECT_EQ(Device::Open({.abi = "both"}).status().code(), Code::kInvalidArgument);
}

TEST(Devices, TargetTextParses) {
  StatusOr<Device> device = Device::Open();
  ASSERT_TRUE(device.ok()) << device.status().message();
  absl::StatusOr<Target> target = ParseTarget(device->target());
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target->name, device->name());
  EXPECT_GE(target->shared_bytes, 16384);
  EXPECT_GE(target->max_invocations, 128);
  EXPECT_GE(target->storage_buffers, 4);
}

}  // namespace
}  // namespace agc::rt
