// Keeps the input of the pass that runs, so that a broken invariant, which aborts, leaves it in a file.
//   const ReproducerScope scope("agc-reproducer.agir", text);   // on SIGABRT or SIGSEGV, writes `text` there
#pragma once
#include <string>

namespace agc {

// One at a time per process; an empty path does nothing. The earlier signal handlers come back when it ends.
class ReproducerScope {
 public:
  ReproducerScope(const std::string& path, std::string text);
  ~ReproducerScope();
  ReproducerScope(const ReproducerScope&) = delete;
  ReproducerScope& operator=(const ReproducerScope&) = delete;

 private:
  std::string path_, text_, message_;
};

}  // namespace agc
