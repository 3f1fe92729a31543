// What the examples show in a terminal: a progress bar with loss, accuracy, speed and time left, and digits as
// pictures.
#pragma once
#include <chrono>
#include <cstdint>

namespace examples {

// Redraws one line; on a stream that is no terminal it prints a line every tenth of the way.
//   Progress bar(600);   bar.Show(50, 0.31, 0.91);   bar.Done();
class Progress {
 public:
  explicit Progress(int64_t steps);
  void Show(int64_t step, double loss, double accuracy);
  void Done();  // ends the line; prints the seconds that passed
  double seconds() const;

 private:
  int64_t steps_, last_tenth_ = -1;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
};

// `count` 28x28 digits side by side, two pixels to a character, with a line of `said` below.
void ShowDigits(const uint8_t* images, const int32_t* said, int count);

}  // namespace examples
