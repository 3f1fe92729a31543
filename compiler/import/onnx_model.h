// An ONNX file as plain structs (onnx.proto, ONNX IR versions 3 to 12). Tensors point into the mapped file; nothing is
// checked here but that the messages are well-formed.
//   AGC_ASSIGN_OR_RETURN(const Model model, ReadModel("model.onnx"));
//   model.graph.nodes[0].op;   // "Conv"
#pragma once
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/mapped_file.h"
#include "ir/eval/tensor.h"

namespace agc::onnx {

// TensorProto::DataType; the numbers of the file format.
enum DataType : int64_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBoolean = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
};
std::string DataTypeName(int64_t data_type);       // "float16", "int4", "data type 99"
absl::StatusOr<DType> DTypeOf(int64_t data_type);  // Unimplemented where the type system has none
int64_t DataTypeOf(DType dtype);

// TensorProto. The elements are in `raw`, in one of the lists, or in another file.
struct TensorProto {
  std::string name = {};
  std::vector<int64_t> dims = {};
  int64_t data_type = kUndefined;
  ByteSpan raw = {};
  std::vector<float> floats = {};
  std::vector<double> doubles = {};
  std::vector<int64_t> ints = {};  // int32_data, int64_data and uint64_data
  int64_t strings = 0;             // how many there are
  bool external = false;
  std::map<std::string, std::string> location = {};  // external_data: location, offset, length
};

// TypeProto: a tensor, or sequences and optionals around one.
struct TypeProto {
  enum Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kOther };
  struct Dim {
    int64_t value = -1;  // -1: not given
    std::string name = {};
  };
  Kind kind = kNone;
  int64_t data_type = kUndefined;  // of the tensors
  bool has_shape = false;
  std::vector<Dim> dims = {};
};

struct ValueInfo {
  std::string name = {};
  TypeProto type = {};
};

struct GraphProto;

// AttributeProto. Which members are set follows from `type`.
struct AttributeProto {
  enum Type : int64_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kTypeProto = 13,
  };
  std::string name = {}, ref = {};  // ref: an attribute of the function that the node stands in
  int64_t type = kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string s = {};
  std::vector<float> floats = {};
  std::vector<int64_t> ints = {};
  std::vector<std::string> strings = {};
  std::vector<TensorProto> tensors = {};  // t, or tensors
  std::vector<GraphProto> graphs;         // g, or graphs; without = {}, for which clang needs the whole type
  TypeProto type_proto = {};
  bool sparse = false;
};

struct NodeProto {
  std::vector<std::string> inputs = {}, outputs = {};
  std::string name = {}, op = {}, domain = {};
  std::vector<AttributeProto> attrs = {};
};

struct GraphProto {
  std::string name = {};
  std::vector<NodeProto> nodes = {};
  std::vector<TensorProto> initializers = {};
  std::vector<std::string> sparse_initializers = {};  // their names
  std::vector<ValueInfo> inputs = {}, outputs = {};
};

using Opsets = std::map<std::string, int64_t>;  // domain ("" is ai.onnx's) -> version

struct FunctionProto {
  std::string name = {}, domain = {};
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<std::string> attr_names = {};  // without a default
  std::vector<AttributeProto> defaults = {};
  std::vector<NodeProto> nodes = {};
  Opsets opsets = {};
};

struct Model {
  std::string path = {};       // for messages
  std::string directory = {};  // where external data lies; empty: nowhere
  MappedFile file = {};
  int64_t ir_version = 0;
  std::string producer = {};
  Opsets opsets = {};
  GraphProto graph = {};
  std::vector<FunctionProto> functions = {};
};

// NotFound for a file that cannot be read, DataLoss naming the byte for one that is no ONNX model.
absl::StatusOr<Model> ReadModel(const std::string& path);
// The same of bytes, which must outlive the model.
absl::StatusOr<Model> ParseModel(ByteSpan bytes, const std::string& path, const std::string& directory = "");

// What test data files (`input_0.pb`) hold, tried as the type says: a tensor, or the tensors of a sequence or optional.
absl::StatusOr<std::vector<TensorProto>> ReadTensors(const MappedFile& file, const std::string& path,
                                                     TypeProto::Kind kind);

}  // namespace agc::onnx
