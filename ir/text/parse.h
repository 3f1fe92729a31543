// The parsers of the parts of a module. Each returns with the cursor after its part, or failed.
#pragma once
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/program.h"
#include "ir/text/cursor.h"

namespace agc::text {

// A step's callee by name, resolved when the whole module is read.
struct Callee {
  size_t graph = 0, step = 0;
  std::string name = {};
  Loc loc = {};
};

// A storage row that refers to another by name, resolved when the table is read.
struct RowName {
  size_t buffer = 0;
  bool alias = false;  // else parent
  std::string name = {};
  Loc loc = {};
};

struct StorageRow {
  Buffer b = {};
  std::string parent = {}, alias = {};
  Loc parent_loc = {}, alias_loc = {};
  void Parse(Cursor& c);
  void ParseLayout(Cursor& c);
  void ParsePlace(Cursor& c);
};

// The numbers of things by name, so that long modules are read in linear time.
using Numbers = absl::flat_hash_map<std::string, uint32_t>;

struct ModuleParser {
  Cursor& c;
  Program program = {};
  Numbers states = {}, blobs = {}, graphs = {}, nests = {}, kernels = {};
  Numbers buffers = {};  // of the graph being read
  std::vector<Callee> callees = {};
  std::vector<RowName> rows = {};  // of the graph being read
};

void ParseGraph(ModuleParser& m);
// One line of a graph's storage table or step list; false if the next token starts none.
bool ParseStorageLine(ModuleParser& m, Graph& graph);
// Names that rows refer to before they are known; after the last line of a graph.
void ResolveStorage(ModuleParser& m, Graph& graph);
void ParseNest(ModuleParser& m);
void ParseKernel(ModuleParser& m);

Schedule ParseScheduleBody(Cursor& c);  // after the word `schedule`

std::vector<Attr> ParseAttrList(Cursor& c, const OpDef& def, absl::string_view close);
LiteralPtr ParseLiteral(Cursor& c, const TensorType& type);

}  // namespace agc::text
