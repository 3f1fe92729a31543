// The sample of README.md: a small network learns exclusive or.
#include <cstdio>

#include "compiler/agc.h"
#include "runtime/device.h"

absl::Status Learn() {
  const agc::nn::Linear hidden{.name = "hidden", .in = 2, .out = 8}, last{.name = "last", .in = 8, .out = 1};
  const auto net = [&](agc::Tensor x) { return last(Tanh(hidden(x))); };  // f32[4,2] -> f32[4,1]
  agc::Module m("xor");
  m.Graph("train_step", [&](agc::Trace& t) {
    agc::Tensor loss = Mse(net(t.Input("x", agc::kF32, {4, 2})), t.Input("y", agc::kF32, {4, 1}));
    agc::optim::Adam({.lr = t.Param("lr", agc::kF32)}).Minimize(loss);
    t.OutputEachStep("loss", loss);
  });
  m.Graph("infer", [&](agc::Trace& t) { t.Output("y", net(t.Input("x", agc::kF32, {4, 2}))); });

  AGC_ASSIGN_OR_RETURN(agc::rt::Device device, agc::rt::Device::Open());
  AGC_ASSIGN_OR_RETURN(agc::Bundle bundle, agc::Compile(m, device.target()));
  AGC_ASSIGN_OR_RETURN(agc::rt::Session s, device.Load(bundle.bytes(), agc::rt::Trust::kTrusted));
  AGC_RETURN_IF_ERROR(s.Init(/*seed=*/1));
  const std::vector<float> x = {0, 0, 0, 1, 1, 0, 1, 1}, y = {0, 1, 1, 0};
  AGC_ASSIGN_OR_RETURN(agc::rt::Outputs trained, s.Run("train_step", 500, {{"x", x}, {"y", y}, {"lr", 0.02f}}));
  AGC_ASSIGN_OR_RETURN(agc::rt::Outputs out, s.Run("infer", 1, {{"x", x}}));
  AGC_ASSIGN_OR_RETURN(const std::vector<float> loss, trained.Get<float>("loss"));
  AGC_ASSIGN_OR_RETURN(const std::vector<float> answers, out.Get<float>("y"));
  std::printf("%s\nloss %.5f\n", device.description().c_str(), loss.back());
  for (float p : answers) std::printf("%d ", p > 0.5f ? 1 : 0);
  std::printf("\n");
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Learn();
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 2;
}
