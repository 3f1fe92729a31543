// The MNIST files (LeCun, Cortes and Burges): gzipped IDX of 28x28 bytes and labels.
//   AGC_ASSIGN_OR_RETURN(Mnist data, ReadMnist("examples/data/mnist"));
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace examples {

struct MnistSet {
  std::vector<uint8_t> images = {};  // [n,28,28]
  std::vector<uint8_t> labels = {};  // [n]
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};
struct Mnist {
  MnistSet train = {}, test = {};  // 60,000 and 10,000
};

// Errors name the file and what is wrong with it.
absl::StatusOr<Mnist> ReadMnist(const std::string& directory);

}  // namespace examples
