#include "test/unit/vulkan_main.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace agc::test {

bool layers = true;

namespace {

rt::Device* opened = nullptr;
std::vector<std::string> arguments = {};  // without those of GoogleTest

int Messages() { return opened == nullptr ? 0 : opened->validation_messages(); }

// Names the test during which the layer spoke.
class NoMessages : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override { before_ = Messages(); }
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_EQ(Messages(), before_) << "the validation layer spoke: see stderr";
  }

 private:
  int before_ = 0;
};

}  // namespace

rt::Device& TheDevice() {
  if (opened != nullptr) return *opened;
  rt::StatusOr<rt::Device> device = rt::Device::Open({.validation = layers});
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    std::exit(1);
  }
  opened = new rt::Device(*std::move(device));
  std::printf("device: %s\n", opened->description().c_str());
  return *opened;
}

const Target& TheTarget() {
  static const Target* const kTarget = [] {
    absl::StatusOr<Target> target = ParseTarget(TheDevice().target());
    if (!target.ok()) {
      std::fprintf(stderr, "%s\n", std::string(target.status().message()).c_str());
      std::exit(1);
    }
    return new Target(*std::move(target));
  }();
  return *kTarget;
}

std::string Argument(absl::string_view name, absl::string_view fallback) {
  const std::string start = absl::StrCat("--", name, "=");
  for (const std::string& a : arguments) {
    if (absl::StartsWith(a, start)) return a.substr(start.size());
  }
  return std::string(fallback);
}

}  // namespace agc::test

// --without-layers: for machines that have a device but no validation layer.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  agc::test::layers = argc < 2 || std::strcmp(argv[1], "--without-layers") != 0;
  agc::test::arguments.assign(argv + 1, argv + argc);
  // The layer leaks a little; loaded for good, its frames have a name that test/lsan.supp can match.
  dlopen("libVkLayer_khronos_validation.so", RTLD_LAZY | RTLD_NODELETE);
  // Listeners hear of an end in reverse order: this one speaks before the printers have closed the test.
  testing::UnitTest::GetInstance()->listeners().Append(new agc::test::NoMessages);
  const int failed = RUN_ALL_TESTS();
  delete agc::test::opened;  // sessions are gone: what is left of the device's objects, the layer reports
  return failed;
}
