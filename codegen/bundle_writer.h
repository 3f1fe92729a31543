// Writes the bytes of a bundle file (.agb): header, manifest, 64-byte-aligned segments, as runtime/bundle.fbs
// describes. The same Bundle gives the same bytes on every machine and compiler. Nothing is checked here;
// rt::ReadBundle does.
//   std::vector<uint8_t> bytes = WriteBundle(bundle);
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/format.h"

namespace agc {

std::vector<uint8_t> WriteBundle(const rt::Bundle& bundle);

}  // namespace agc
