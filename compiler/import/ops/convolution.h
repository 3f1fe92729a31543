// What convolutions of every kind share: the options of Conv, ConvInteger, QLinearConv and their fused relatives.
#pragma once
#include "compiler/import/onnx_call.h"
#include "ir/build_window.h"

namespace agc::onnx {

AutoPad AutoPadOf(Call& c);  // auto_pad
ConvOptions ConvOptionsOf(Call& c, Value x,
                          Value w);        // all of Conv's attributes; x [n,c,spatial...], w [o,c,kernel...]
Value AddPerChannel(Value y, Value bias);  // bias [c] to y [n,c,...]

}  // namespace agc::onnx
