#include "tools/agc/command.h"
namespace agc::tool { int Dump(const std::vector<std::string>&) { return 2; } }
