// A libFuzzer target for the importer: bytes as an ONNX file, and as a safetensors file. Built by CMake with clang and
// -DAGC_FUZZ=ON; the corpus is what test/fuzz/make_onnx_corpus.py writes.
//   build-fuzz/onnx_fuzz -max_total_time=600 build-fuzz/corpus
#include <cstddef>
#include <cstdint>

#include "compiler/import/onnx.h"
#include "compiler/import/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const agc::ByteSpan bytes(data, size);
  const absl::StatusOr<agc::onnx::Model> model = agc::onnx::ParseModel(bytes, "fuzz.onnx");
  if (model.ok()) {
    agc::onnx::ImportOptions options;
    for (const char* name : {"n", "batch", "N"}) options.dims[name] = 2;
    (void)agc::onnx::Import(*model, options).ok();
  }
  (void)agc::ParseSafetensors(bytes).ok();
  return 0;
}
