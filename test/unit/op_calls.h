// Calls of ops by name, for tests of rows of the op table.
//   Scene scene;
//   Value y = Emit(c.op, scene.Inputs(c.operands), c.attrs, {});
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/program.h"

namespace agc {

inline constexpr DType F16 = DType::kF16, F32 = DType::kF32, I32 = DType::kI32, I8 = DType::kI8, U8 = DType::kU8,
                       U32 = DType::kU32, Bool = DType::kBool;

// A graph under construction with inputs of given types.
struct Scene {
  Program program = {};
  Graph graph = {};
  Builder builder = {.program = &program, .graph = &graph};

  Value Input(TensorType type) {
    const std::string name = absl::StrCat("x", graph.params.size());
    return {&builder, AppendInput(graph, ParamKind::kInput, name, std::move(type), {}), 0, false};
  }
  std::vector<Value> Inputs(const std::vector<TensorType>& types) {
    std::vector<Value> values;
    for (const TensorType& type : types) values.push_back(Input(type));
    return values;
  }
};

using Attrs = std::vector<Attr>;
struct Case {
  const char* op;
  std::vector<TensorType> operands;
  Attrs attrs;
  std::string expected;  // the result's type, or the message without "error: "
};

inline Attrs Window(Ints window, Ints stride, Ints pad) {
  return {{"window", window}, {"stride", stride}, {"pad", pad}};
}
inline Attrs With(Attr first, Attrs rest) {
  rest.insert(rest.begin(), std::move(first));
  return rest;
}

}  // namespace agc
