#include "examples/common/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace examples {

Progress::Progress(int64_t steps)
    : steps_(steps), terminal_(isatty(1) != 0), start_(std::chrono::steady_clock::now()) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::Show(int64_t step, double loss, double accuracy) {
  const int64_t tenth = step * 10 / steps_;
  if (!terminal_ && tenth == last_tenth_) return;
  last_tenth_ = tenth;
  const double rate = static_cast<double>(step) / seconds(), left = static_cast<double>(steps_ - step) / rate;
  const int width = 30, full = static_cast<int>(step * width / steps_);
  std::string bar(static_cast<size_t>(full), '=');
  bar.resize(width, ' ');
  std::printf("%s[%s] %lld/%lld  loss %.4f  accuracy %5.1f%%  %6.1f steps/s  %3.0f s left%s", terminal_ ? "\r" : "",
              bar.c_str(), static_cast<long long>(step), static_cast<long long>(steps_), loss, 100 * accuracy, rate,
              left, terminal_ ? "" : "\n");
  std::fflush(stdout);
}

void Progress::Done() {
  std::printf("%strained %lld steps in %.1f s\n", terminal_ ? "\n" : "", static_cast<long long>(steps_), seconds());
}

void ShowDigits(const uint8_t* images, const int32_t* said, int count) {
  constexpr int kSide = 28;
  const char shades[] = " .:-=+*#%@";
  for (int y = 0; y < kSide; y += 2) {
    for (int d = 0; d < count; ++d) {
      for (int x = 0; x < kSide; ++x) {
        const uint8_t* p = images + d * kSide * kSide + y * kSide + x;
        std::putchar(shades[(p[0] + p[kSide]) * 9 / 510]);
      }
      std::putchar(' ');
    }
    std::putchar('\n');
  }
  for (int d = 0; d < count; ++d) std::printf("%-29s", ("recognised: " + std::to_string(said[d])).c_str());
  std::putchar('\n');
}

}  // namespace examples
