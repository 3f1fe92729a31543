#include "passes/reproducer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iterator>
#include <utility>

namespace agc {
namespace {

struct Pending {
  const char* path = nullptr;
  const char* text = nullptr;
  size_t size = 0;
  const char* message = nullptr;
  size_t message_size = 0;
};
Pending pending;
std::atomic<bool> armed = false;
constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGFPE};
struct sigaction earlier[std::size(kSignals)];

void WriteAll(int file, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(file, data, size);
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

// Only what is safe in a signal handler.
void OnSignal(int signal) {
  if (armed.exchange(false)) {
    const int file = open(pending.path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
      WriteAll(file, pending.text, pending.size);
      close(file);
      WriteAll(STDERR_FILENO, pending.message, pending.message_size);
    }
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

ReproducerScope::ReproducerScope(const std::string& path, std::string text) : path_(path) {
  if (path_.empty() || armed) return;
  text_ = std::move(text);
  message_ = "note: the input of the pass is in " + path_ + "; its first line is the command that runs it again\n";
  pending = {path_.c_str(), text_.data(), text_.size(), message_.data(), message_.size()};
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    sigaction(kSignals[i], &action, &earlier[i]);
  }
  armed = true;
}

ReproducerScope::~ReproducerScope() {
  if (message_.empty()) return;
  armed = false;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &earlier[i], nullptr);
}

}  // namespace agc
