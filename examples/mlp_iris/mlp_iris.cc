// A two-layer perceptron on Fisher's Iris data (1936): four measures of a flower, three species. Trains on 120 flowers
// with Adam, tests on the other 30.
//   mlp_iris [--data FILE] [--steps N] [--device NAME]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "examples/common/options.h"
#include "runtime/device.h"

namespace {

using agc::Tensor;

constexpr int64_t kFeatures = 4, kHidden = 16, kSpecies = 3, kTrain = 120, kTest = 30;

struct Flowers {
  std::vector<float> measures = {};   // [n,4]
  std::vector<int32_t> species = {};  // [n]
};
struct Iris {
  Flowers train = {}, test = {};
};

// Every fifth flower is for testing: the file has the species one after the other, 50 of each.
absl::StatusOr<Iris> ReadIris(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // 150,4,setosa,versicolor,virginica
  Iris iris;
  for (int64_t row = 0; std::getline(file, line); ++row) {
    Flowers& to = row % 5 == 4 ? iris.test : iris.train;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    float measure = 0;
    for (int64_t i = 0; i < kFeatures && words >> measure; ++i) to.measures.push_back(measure);
    int32_t species = -1;
    words >> species;
    to.species.push_back(species);
  }
  const auto fits = [](const Flowers& f, int64_t n) {
    return static_cast<int64_t>(f.measures.size()) == n * kFeatures && static_cast<int64_t>(f.species.size()) == n &&
           std::all_of(f.species.begin(), f.species.end(), [](int32_t s) { return s >= 0 && s < kSpecies; });
  };
  if (fits(iris.train, kTrain) && fits(iris.test, kTest)) return iris;
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected a header and ", kTrain + kTest, " lines of ",
                                                 kFeatures, " numbers and a species"));
}

// Mean 0 and deviation 1 for every measure of the training set; the test set is scaled alike.
void Standardise(Iris& iris) {
  for (int64_t f = 0; f < kFeatures; ++f) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kTrain; ++i) sum += iris.train.measures[i * kFeatures + f];
    const double mean = sum / kTrain;
    for (int64_t i = 0; i < kTrain; ++i) squares += std::pow(iris.train.measures[i * kFeatures + f] - mean, 2);
    const double deviation = std::sqrt(squares / kTrain);
    for (Flowers* set : {&iris.train, &iris.test}) {
      for (size_t i = f; i < set->measures.size(); i += kFeatures)
        set->measures[i] = static_cast<float>((set->measures[i] - mean) / deviation);
    }
  }
}

struct Mlp {
  agc::nn::Linear f1{.name = "f1", .in = kFeatures, .out = kHidden};
  agc::nn::Linear f2{.name = "f2", .in = kHidden, .out = kSpecies};
  Tensor operator()(Tensor x) const { return f2(Relu(f1(x))); }  // f32[n,4] -> f32[n,3]
};

void Trace(agc::Module& m) {
  const Mlp net;
  m.Graph("train_step", [&](agc::Trace& t) {
    Tensor x = t.Resident("measures", agc::kF32, {kTrain, kFeatures});
    Tensor truth = t.Resident("species", agc::kI32, {kTrain}), lr = t.Param("lr", agc::kF32);
    Tensor loss = CrossEntropy(net(x), truth);
    agc::optim::Adam({.lr = lr}).Minimize(loss);
    t.OutputEachStep("loss", loss);
  });
  m.Graph("infer", [&](agc::Trace& t) {
    t.Output("species", ArgMax(net(t.Input("measures", agc::kF32, {kTest, kFeatures})), 1));
  });
}

absl::Status Train(const std::string& data, int64_t steps, const std::string& device_name) {
  AGC_ASSIGN_OR_RETURN(Iris iris, ReadIris(data));
  Standardise(iris);
  AGC_ASSIGN_OR_RETURN(agc::rt::Device device, agc::rt::Device::Open({.name_or_index = device_name}));
  std::printf("device: %s\n", device.description().c_str());
  agc::Module m("mlp_iris");
  Trace(m);
  AGC_ASSIGN_OR_RETURN(agc::Bundle bundle, agc::Compile(m, device.target()));
  AGC_ASSIGN_OR_RETURN(agc::rt::Session s, device.Load(bundle.bytes(), agc::rt::Trust::kTrusted));
  AGC_RETURN_IF_ERROR(s.Init(/*seed=*/1));
  AGC_RETURN_IF_ERROR(s.Bind("measures", iris.train.measures));
  AGC_RETURN_IF_ERROR(s.Bind("species", iris.train.species));
  AGC_ASSIGN_OR_RETURN(agc::rt::Outputs out, s.Run("train_step", steps, {{"lr", 0.01f}}));
  AGC_ASSIGN_OR_RETURN(const std::vector<float> loss, out.Get<float>("loss"));
  for (size_t i = 0; i < loss.size(); i += std::max<size_t>(loss.size() / 5, 1))
    std::printf("step %4zu  loss %.4f\n", i, loss[i]);
  AGC_ASSIGN_OR_RETURN(out, s.Run("infer", 1, {{"measures", iris.test.measures}}));
  AGC_ASSIGN_OR_RETURN(const std::vector<int32_t> guess, out.Get<int32_t>("species"));
  int64_t right = 0;
  for (int64_t i = 0; i < kTest; ++i) right += guess[i] == iris.test.species[i] ? 1 : 0;
  std::printf("test accuracy: %.2f%% of %lld flowers\n", 100.0 * static_cast<double>(right) / kTest,
              static_cast<long long>(kTest));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> o = {
      {"--data", "examples/data/iris/iris.csv"}, {"--steps", "300"}, {"--device", ""}};
  if (!examples::ReadOptions(argc, argv, o)) return 2;
  const absl::Status status = Train(o["--data"], std::max(1, std::atoi(o["--steps"].c_str())), o["--device"]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 2;
}
