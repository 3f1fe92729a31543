// What a compile may be asked for. Decisions that follow from these are made by passes and recorded in the IR.
#pragma once
#include <string>
#include <vector>

#include "passes/pass.h"

namespace agc {

struct CompileOptions {
  BufferAbi abi = BufferAbi::kBindings;         // bindings load everywhere; addresses need a trusted load
  Numerics numerics = Numerics::kRepeatable;    // what float results depend on
  DType precision = DType::kF32;                // f16 or bf16: operands of products and convolutions
  int optimize = 1;                             // SPIR-V: 0 none, 1 a short list of passes, 2 all performance passes
  bool strip = false;                           // leave GLSL and IR text out of the bundle
  bool fuse = true;                             // false: one kernel per op
  bool reuse_memory = true;                     // false: every temporary has bytes of its own
  bool in_place = true;                         // false: no result takes over storage
  int64_t ring = 64;                            // steps that one submission can hold
  std::string dump_dir = {};                    // module text after every pass; must exist
  bool time = false;                            // print milliseconds per pass on stderr
  std::vector<std::string>* remarks = nullptr;  // where the passes' remarks on their decisions go
};

}  // namespace agc
