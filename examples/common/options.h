// Options of the examples: --name VALUE, for the names that `options` has, with their defaults.
//   std::map<std::string, std::string> o = {{"--epochs", "1"}};
//   if (!examples::ReadOptions(argc, argv, o)) return 2;
#pragma once
#include <cstdio>
#include <map>
#include <string>

namespace examples {

// False, after a message, where an option is unknown or has no value.
inline bool ReadOptions(int argc, char** argv, std::map<std::string, std::string>& options) {
  for (int i = 1; i < argc; i += 2) {
    const auto it = options.find(argv[i]);
    if (it != options.end() && i + 1 < argc) {
      it->second = argv[i + 1];
      continue;
    }
    std::fprintf(stderr, it == options.end() ? "error: there is no option %s; there are" : "error: %s needs a value;",
                 argv[i]);
    for (const auto& [name, value] : options) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return false;
  }
  return true;
}

}  // namespace examples
