// Times an entry of a bundle on a device: replayed steps, then every dispatch by time stamps, slowest first.
//   profile_entry BUNDLE ENTRY [STEPS] [--device=NAME]
// Inputs, params and residents are zeros: a figure is worth quoting only for a bundle whose results were checked.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/device.h"

namespace {

using namespace agc::rt;

size_t Bytes(const Signature& s) {
  size_t n = DTypeSize(s.dtype);
  for (int64_t d : s.dims) n *= static_cast<size_t>(d);
  return n;
}

double CpuMilliseconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec) * 1e3 + static_cast<double>(u.ru_utime.tv_usec) * 1e-3;
}

Status Prepare(Session& session, const std::string& name, Args& args) {
  for (const Entry& e : session.entries()) {
    if (e.name != name) continue;
    for (const Signature& s : e.residents) {
      const std::vector<uint8_t> zeros(Bytes(s));
      if (Status status = session.Bind(s.name, zeros.data(), zeros.size()); !status.ok()) return status;
    }
    for (const Signature& s : e.inputs) args.push_back(Arg::Raw(s.name, std::vector<uint8_t>(Bytes(s))));
    for (const Signature& s : e.params) args.push_back(Arg::Raw(s.name, std::vector<uint8_t>(Bytes(s))));
    return {};
  }
  return Status(Code::kNotFound, "no entry " + name);
}

Status TimeReplay(Session& session, const std::string& entry, int steps, const Args& args) {
  if (StatusOr<Outputs> warm = session.Run(entry, std::min(steps, 10), args); !warm.ok()) return warm.status();
  std::vector<double> blocks;
  const double cpu = CpuMilliseconds();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (StatusOr<Outputs> out = session.Run(entry, steps, args); !out.ok()) return out.status();
    blocks.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                     steps);
  }
  std::sort(blocks.begin(), blocks.end());
  std::printf("%.1f us a step (median of 5 blocks of %d; %.1f to %.1f), %.2f ms of CPU a step\n", blocks[2], steps,
              blocks[0], blocks[4], (CpuMilliseconds() - cpu) / (5 * steps));
  return {};
}

Status TimeSteps(Session& session, const std::string& entry, int steps, const Args& args) {
  if (Status s = session.EnableStepTimes(true); !s.ok()) return s;
  if (StatusOr<Outputs> out = session.Run(entry, steps, args); !out.ok()) return out.status();
  std::vector<StepTime> times = session.profile().steps;
  double total = 0;
  for (const StepTime& t : times) total += t.nanoseconds / static_cast<double>(t.runs);
  std::sort(times.begin(), times.end(),
            [](const StepTime& a, const StepTime& b) { return a.nanoseconds > b.nanoseconds; });
  std::printf("%zu steps of the plan, %.1f us by time stamps\n", times.size(), total * 1e-3);
  for (const StepTime& t : times) {
    const double ns = t.nanoseconds / static_cast<double>(t.runs);
    std::printf("%10.1f us %5.1f%%  %s  %s\n", ns * 1e-3, 100 * ns / total, t.label.c_str(), t.origin.c_str());
  }
  return {};
}

Status Main(int argc, char** argv) {
  std::string device_name, bundle, entry;
  int steps = 20;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--device=", 9) == 0)
      device_name = argv[i] + 9;
    else if (bundle.empty())
      bundle = argv[i];
    else if (entry.empty())
      entry = argv[i];
    else
      steps = std::max(1, std::atoi(argv[i]));
  }
  std::ifstream in(bundle, std::ios::binary);
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  StatusOr<Device> device = Device::Open({.name_or_index = device_name});
  if (!device.ok()) return device.status();
  std::printf("device: %s\n", device->description().c_str());
  StatusOr<Session> session = device->Load(bytes, Trust::kTrusted);
  if (!session.ok()) return session.status();
  Args args;
  if (Status s = Prepare(*session, entry, args); !s.ok()) return s;
  if (Status s = TimeReplay(*session, entry, steps, args); !s.ok()) return s;
  return TimeSteps(*session, entry, steps, args);
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
