// Quantised values as floats and back, for quantised ops of every domain. Zero points may be empty.
#pragma once
#include "ir/value.h"

namespace agc::onnx {

Value Dequantise(Value q, Value zero, Value scale);             // f32
Value Quantise(Value x, Value zero, Value scale, DType dtype);  // rounded half to even, saturated
Value Centred(Value q, Value zero);                             // i32: q - zero

}  // namespace agc::onnx
