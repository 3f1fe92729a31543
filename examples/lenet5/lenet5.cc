// LeNet-5 (LeCun et al. 1998) on MNIST: a model in C++, trained through Vulkan, written to a bundle, and read back.
//   lenet5 [--data DIR] [--out BUNDLE] [--digits NPY] [--epochs N] [--device NAME]
//       trains, tests, writes the bundle with its states, and a batch of test digits for `agc run`
//   lenet5 --show NPY --said NPY      shows digits and what was recognised
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "examples/common/mnist.h"
#include "examples/common/npy.h"
#include "examples/common/options.h"
#include "examples/common/terminal.h"
#include "runtime/device.h"

namespace {

using agc::Tensor;

constexpr int64_t kRows = 60000, kBatch = 100, kSteps = kRows / kBatch;

struct LeNet5 {
  agc::nn::Conv2d c1{.name = "c1", .in = 1, .out = 6, .kernel = 5, .pad = 2};
  agc::nn::Conv2d c2{.name = "c2", .in = 6, .out = 16, .kernel = 5};
  agc::nn::Linear f1{.name = "f1", .in = 400, .out = 120};
  agc::nn::Linear f2{.name = "f2", .in = 120, .out = 84};
  agc::nn::Linear f3{.name = "f3", .in = 84, .out = 10};
  Tensor operator()(Tensor bytes) const {  // u8[n,28,28] -> f32[n,10]
    Tensor x = Reshape((Cast(bytes, agc::kF32) - 33.3f) / 78.6f, {bytes.dim(0), 1, 28, 28});  // mean 0, deviation 1
    x = MaxPool2d(Relu(c1(x)), {.window = {2, 2}});
    x = MaxPool2d(Relu(c2(x)), {.window = {2, 2}});
    return f3(Relu(f2(Relu(f1(Reshape(x, {x.dim(0), -1}))))));
  }
};

void Trace(agc::Module& m) {
  const LeNet5 net;
  m.Graph("train_step", [&](agc::Trace& t) {
    Tensor images = t.Resident("train_images", agc::kU8, {kRows, 28, 28});
    Tensor labels = t.Resident("train_labels", agc::kU8, {kRows});
    Tensor order = t.Resident("order", agc::kI32, {kRows}), lr = t.Param("lr", agc::kF32), step = t.Counter("step");
    Tensor rows = Take(order, Rem(step, kSteps) * kBatch + t.Iota(agc::kI32, kBatch));
    Tensor truth = Cast(Take(labels, rows), agc::kI32), logits = net(Take(images, rows));
    Tensor loss = CrossEntropy(logits, truth);
    agc::optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
    t.OutputEachStep("loss", loss);
    t.OutputEachStep("accuracy", ReduceMean(Cast(Equal(ArgMax(logits, 1), truth), agc::kF32)));
  });
  m.Graph("infer", [&](agc::Trace& t) {
    Tensor logits = net(t.Input("images", agc::kU8, {kBatch, 28, 28}));
    t.Output("logits", logits);
    t.Output("digits", ArgMax(logits, 1));
  });
}

absl::StatusOr<double> TestAccuracy(agc::rt::Session& s, const examples::MnistSet& test) {
  int64_t right = 0;
  for (int64_t i = 0; i < test.size(); i += kBatch) {
    const auto images = agc::rt::Arg::View("images", test.images.data() + i * 784, kBatch * 784);
    AGC_ASSIGN_OR_RETURN(agc::rt::Outputs out, s.Run("infer", 1, {images}));
    AGC_ASSIGN_OR_RETURN(const std::vector<int32_t> digits, out.Get<int32_t>("digits"));
    for (int64_t j = 0; j < kBatch; ++j) right += digits[j] == test.labels[i + j] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

absl::Status Train(const std::string& data_dir, const std::string& out_file, const std::string& digits_file,
                   int64_t epochs, const std::string& device_name) {
  AGC_ASSIGN_OR_RETURN(const examples::Mnist data, examples::ReadMnist(data_dir));
  AGC_ASSIGN_OR_RETURN(agc::rt::Device device, agc::rt::Device::Open({.name_or_index = device_name}));
  std::printf("device: %s\n", device.description().c_str());
  agc::Module m("lenet5");
  Trace(m);
  AGC_ASSIGN_OR_RETURN(agc::Bundle bundle, agc::Compile(m, device.target()));
  AGC_ASSIGN_OR_RETURN(agc::rt::Session s, device.Load(bundle.bytes(), agc::rt::Trust::kTrusted));
  AGC_RETURN_IF_ERROR(s.Init(/*seed=*/1));
  AGC_RETURN_IF_ERROR(s.Bind("train_images", data.train.images));
  AGC_RETURN_IF_ERROR(s.Bind("train_labels", data.train.labels));
  std::vector<int32_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  examples::Progress bar(epochs * kSteps);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    AGC_RETURN_IF_ERROR(s.Bind("order", order));
    for (int64_t step = 0; step < kSteps; step += 20) {
      std::vector<float> lr(20);  // one value a step, falling to 0
      for (int64_t i = 0; i < 20; ++i)
        lr[i] = 0.06f * (1 - static_cast<float>(epoch * kSteps + step + i) / (epochs * kSteps));
      AGC_ASSIGN_OR_RETURN(agc::rt::Outputs out, s.Run("train_step", 20, {{"lr", lr}}));
      AGC_ASSIGN_OR_RETURN(const std::vector<float> loss, out.Get<float>("loss"));
      AGC_ASSIGN_OR_RETURN(const std::vector<float> accuracy, out.Get<float>("accuracy"));
      bar.Show(epoch * kSteps + step + 20, std::accumulate(loss.begin(), loss.end(), 0.0) / 20,
               std::accumulate(accuracy.begin(), accuracy.end(), 0.0) / 20);
    }
  }
  bar.Done();
  AGC_ASSIGN_OR_RETURN(const double accuracy, TestAccuracy(s, data.test));
  std::printf("test accuracy: %.2f%% of %lld images\n", 100 * accuracy, static_cast<long long>(data.test.size()));
  AGC_ASSIGN_OR_RETURN(const std::vector<agc::rt::Value> states, s.Save());
  AGC_ASSIGN_OR_RETURN(bundle, agc::WithStates(bundle, states));
  AGC_RETURN_IF_ERROR(bundle.WriteFile(out_file));
  std::printf("wrote %s (%zu bytes)\n", out_file.c_str(), bundle.bytes().size());
  return examples::WriteNpy(digits_file, data.test.images.data(), {kBatch, 28, 28});
}

absl::Status Show(const std::string& digits, const std::string& said) {
  AGC_ASSIGN_OR_RETURN(const std::vector<uint8_t> images, examples::ReadNpyU8(digits));
  AGC_ASSIGN_OR_RETURN(const std::vector<int32_t> answers, examples::ReadNpyI32(said));
  if (images.size() != answers.size() * 784) return absl::InvalidArgumentError("digits and answers differ in number");
  examples::ShowDigits(images.data(), answers.data(), std::min<int>(4, static_cast<int>(answers.size())));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> o = {{"--data", "examples/data/mnist"},
                                          {"--out", "lenet5.agb"},
                                          {"--digits", "digits.npy"},
                                          {"--epochs", "1"},
                                          {"--device", ""},
                                          {"--show", ""},
                                          {"--said", ""}};
  if (!examples::ReadOptions(argc, argv, o)) return 2;
  const int64_t epochs = std::max(1, std::atoi(o["--epochs"].c_str()));
  const absl::Status status = !o["--show"].empty()
                                  ? Show(o["--show"], o["--said"])
                                  : Train(o["--data"], o["--out"], o["--digits"], epochs, o["--device"]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 2;
}
