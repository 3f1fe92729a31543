// Random draws: a stream of its own for every node under a key of the model, which a state counts up run by run.
#pragma once
#include "compiler/import/onnx_call.h"

namespace agc::onnx {

Value UniformDraw(Call& c, Dims dims);  // f32 in [0, 1)
Value RandomKey(Call& c);               // u32[2]
int64_t NewStream(Call& c);

}  // namespace agc::onnx
