// Writes the bytes of a bundle file (.agb): header, manifest, 64-byte-aligned segments, as runtime/bundle.fbs
// describes. The same Bundle gives the same bytes on every machine and compiler. Nothing is checked here;
// rt::ReadBundle does.
//   std::vector<uint8_t> bytes = WriteBundle(bundle);
#pragma once
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/format.h"

namespace agc {

std::vector<uint8_t> WriteBundle(const rt::Bundle& bundle);

// The same bytes in pieces, which point into the bundle: so a file can be written without a second copy of its states.
struct BundlePieces {
  struct Segment {
    uint64_t at = 0;  // in the file; the bytes between segments are 0
    absl::Span<const uint8_t> bytes = {};
  };
  std::vector<uint8_t> head = {};  // what comes before the first segment
  std::vector<Segment> segments = {};
  uint64_t bytes = 0;  // of the file
};
BundlePieces PiecesOf(const rt::Bundle& bundle);

}  // namespace agc
