// Graphs and schedules that meet at their edges: every family at sizes 1, odd, exactly one tile and one more, with each
// parameter away from its default.
#pragma once
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace agc::test {

struct ScheduleCase {
  std::string graph = {};  // text of a module's one graph @g
  std::vector<std::string> schedules = {};
};

inline std::string GraphText(const std::string& head, const std::string& body) {
  return absl::StrCat("module @m {\n  graph @g(", head, ") -> (", body, "\n  }\n}\n");
}

// y = x * x + 1 over n elements, and row sums of it.
inline std::string PointwiseGraph(int64_t n) {
  const std::string t = absl::StrCat("f32[", n, "]");
  return GraphText(
      absl::StrCat("input %x: ", t),
      absl::StrCat("%y: ", t, ") {\n    %0: ", t, " = mul %x, %x\n    %1: ", t, " = tanh %0\n    output %y = %1"));
}

// Softmax and logsumexp of rows: two reductions, a store per row and one per element.
inline std::string RowsGraph(int64_t rows, int64_t length) {
  const std::string t = absl::StrCat("f32[", rows, ",", length, "]"), r = absl::StrCat("f32[", rows, "]");
  return GraphText(absl::StrCat("input %x: ", t),
                   absl::StrCat("%y: ", t, ", %z: ", r, ") {\n    %0: ", t, " = softmax %x {axis = 1}\n    %1: ", r,
                                " = logsumexp %x {axis = 1}\n    output %y = %0\n    output %z = %1"));
}

// Position and value of the largest element: a combiner of two components, whose order counts.
inline std::string ArgGraph(int64_t rows, int64_t length) {
  const std::string t = absl::StrCat("f32[", rows, ",", length, "]"), r = absl::StrCat("[", rows, "]");
  return GraphText(absl::StrCat("input %x: ", t),
                   absl::StrCat("%y: i32", r, ", %z: f32", r, ") {\n    %0: ", t, " = round %x\n    %1: i32", r,
                                " = argmax %0 {axis = 1}\n    %2: f32", r,
                                " = reduce_max %0 {axes = [1]}\n    output %y = %1\n    output %z = %2"));
}

// Sum and largest element of rows, with something computed of both: what workgroups may share.
inline std::string SumsGraph(int64_t rows, int64_t length) {
  const std::string t = absl::StrCat("f32[", rows, ",", length, "]"), r = absl::StrCat("f32[", rows, "]");
  return GraphText(absl::StrCat("input %x: ", t),
                   absl::StrCat("%y: ", r, ", %z: ", r, ") {\n    %0: ", r, " = reduce_sum %x {axes = [1]}\n    %1: ",
                                r, " = reduce_max %x {axes = [1]}\n    %2: ", r,
                                " = mul %0, %1\n    output %y = %2\n    output %z = %0"));
}

// Sums of what is stored along the rows, too.
inline std::string StoredSumsGraph(int64_t rows, int64_t length) {
  const std::string t = absl::StrCat("f32[", rows, ",", length, "]"), r = absl::StrCat("f32[", rows, "]");
  return GraphText(absl::StrCat("input %x: ", t),
                   absl::StrCat("%y: ", t, ", %z: ", r, ") {\n    %0: ", t, " = tanh %x\n    %1: ", r,
                                " = reduce_sum %0 {axes = [1]}\n    output %y = %0\n    output %z = %1"));
}

// Softmax along the first axis, and its sums: results side by side.
inline std::string ColumnsGraph(int64_t length, int64_t results) {
  const std::string t = absl::StrCat("f32[", length, ",", results, "]"), r = absl::StrCat("f32[", results, "]");
  return GraphText(absl::StrCat("input %x: ", t),
                   absl::StrCat("%y: ", t, ", %z: ", r, ") {\n    %0: ", t, " = softmax %x {axis = 0}\n    %1: ", r,
                                " = logsumexp %x {axis = 0}\n    output %y = %0\n    output %z = %1"));
}
inline std::string ColumnSumsGraph(int64_t length, int64_t results) {
  const std::string r = absl::StrCat("f32[", results, "]");
  return GraphText(
      absl::StrCat("input %x: f32[", length, ",", results, "]"),
      absl::StrCat("%y: ", r, ", %p: i32[", results, "]) {\n    %0: ", r, " = reduce_sum %x {axes = [0]}\n    %1: i32[",
                   results, "] = argmax %x {axis = 0}\n    output %y = %0\n    output %p = %1"));
}

// The first two axes of three change places with the last one; a bias runs along with the stores.
inline std::string TransposeGraph(int64_t a, int64_t b, int64_t c) {
  const std::string t = absl::StrCat("f32[", c, ",", b, ",", a, "]"), x = absl::StrCat("f32[", a, ",", b, ",", c, "]");
  return GraphText(absl::StrCat("input %x: ", x, ", input %w: ", x, ", input %c: f32[", a, "]"),
                   absl::StrCat("%y: ", t, ") {\n    %0: ", x, " = mul %x, %w\n    %1: ", t,
                                " = transpose %0 {perm = [2, 1, 0]}\n    %2: ", t, " = broadcast %c {shape = [", c,
                                ", ", b, ", ", a, "]}\n    %3: ", t, " = add %1, %2\n    output %y = %3"));
}

// relu(a b + c) with a bias per column.
inline std::string MatmulGraph(int64_t m, int64_t k, int64_t n) {
  const std::string t = absl::StrCat("f32[", m, ",", n, "]");
  return GraphText(
      absl::StrCat("input %a: f32[", m, ",", k, "], input %b: f32[", k, ",", n, "], input %c: f32[", n, "]"),
      absl::StrCat("%y: ", t, ") {\n    %0: ", t, " = matmul %a, %b\n    %1: ", t, " = broadcast %c {shape = [", m,
                   ", ", n, "]}\n    %2: ", t, " = add %0, %1\n    %3: ", t, " = relu %2\n    output %y = %3"));
}

inline std::string BatchGraph(int64_t b, int64_t m, int64_t k, int64_t n) {
  return GraphText(absl::StrCat("input %a: f32[", b, ",", m, ",", k, "], input %b: f32[", b, ",", k, ",", n, "]"),
                   absl::StrCat("%y: f32[", b, ",", m, ",", n, "]) {\n    %0: f32[", b, ",", m, ",", n,
                                "] = batch_matmul %a, %b\n    output %y = %0"));
}

// op: conv2d and its gradients, padded and strided; the attributes carry the third shape.
inline std::string ConvGraph(const std::string& op, const std::string& a, const std::string& b, const std::string& y,
                             const std::string& attrs) {
  return GraphText(
      absl::StrCat("input %a: f32", a, ", input %b: f32", b),
      absl::StrCat("%y: f32", y, ") {\n    %0: f32", y, " = ", op, " %a, %b {", attrs, "}\n    output %y = %0"));
}

inline std::vector<ScheduleCase> PointwiseCases() {
  std::vector<ScheduleCase> all;
  for (int64_t n : {1, 7, 64, 65}) {
    all.push_back({PointwiseGraph(n), {"pointwise {local = 64}", "pointwise {local = 1}", "pointwise {local = 7}"}});
  }
  for (int64_t n : {8, 1000}) all.push_back({PointwiseGraph(n), {"pointwise {vec = 4}", "pointwise {vec = 2}"}});
  // Reductions and contractions run serially inside an invocation.
  all.push_back({MatmulGraph(5, 6, 7), {"pointwise {local = 8}"}});
  all.push_back({ArgGraph(9, 5), {"pointwise {local = 4}"}});
  return all;
}

inline std::vector<ScheduleCase> RowsCases() {
  std::vector<ScheduleCase> all;
  const std::vector<std::string> schedules = {"rows {local = 32, threads = 1}", "rows {local = 5, threads = 1}",
                                              "rows {local = 8, threads = 8}", "rows {local = 64, threads = 64}"};
  for (int64_t rows : {1, 5, 33}) {
    for (int64_t length : {1, 7, 64, 65}) all.push_back({RowsGraph(rows, length), schedules});
  }
  for (int64_t length : {1, 8, 9, 129}) all.push_back({ArgGraph(3, length), schedules});
  const std::vector<std::string> wide = {"rows {local = 8, threads = 8, vec = 4, resident = 1}",
                                         "rows {local = 16, threads = 16, vec = 2, unroll = 3}",
                                         "rows {local = 32, threads = 32, resident = 1}"};
  for (int64_t length : {1, 64, 68, 97}) all.push_back({RowsGraph(5, length), wide});
  return all;
}

// Rows that several workgroups share: fewer elements than workgroups, whole rounds, and one more.
inline std::vector<ScheduleCase> SplitRowsCases() {
  std::vector<ScheduleCase> all;
  const std::vector<std::string> schedules = {"rows {local = 8, threads = 8, split = 3}",
                                              "rows {local = 32, threads = 32, split = 100, unroll = 2}",
                                              "rows {local = 8, threads = 8, vec = 4, split = 5, unroll = 2}",
                                              "rows {local = 8, threads = 8, split = 2, resident = 1}"};
  for (int64_t length : {1, 7, 64, 321}) all.push_back({SumsGraph(3, length), schedules});
  for (int64_t length : {9, 200}) all.push_back({ArgGraph(3, length), schedules});
  for (int64_t length : {7, 64, 321}) all.push_back({StoredSumsGraph(3, length), schedules});
  return all;
}

inline std::vector<ScheduleCase> ColumnsCases() {
  std::vector<ScheduleCase> all;
  const std::vector<std::string> whole = {"columns {tx = 8, ty = 4, per = 1}", "columns {tx = 4, ty = 1, per = 4}",
                                          "columns {tx = 2, ty = 8, per = 3, unroll = 2}"};
  for (int64_t results : {1, 8, 33}) {
    for (int64_t length : {1, 7, 65}) all.push_back({ColumnsGraph(length, results), whole});
  }
  const std::vector<std::string> split = {"columns {tx = 8, ty = 4, split = 3}",
                                          "columns {tx = 4, ty = 2, per = 4, split = 100, unroll = 2}"};
  for (int64_t length : {1, 9, 64, 130}) all.push_back({ColumnSumsGraph(length, 36), split});
  all.push_back({ColumnSumsGraph(50, 7), split});
  return all;
}

inline std::vector<ScheduleCase> TransposeCases() {
  std::vector<ScheduleCase> all;
  const std::vector<std::string> schedules = {"transpose {tile = 8, rows = 8}", "transpose {tile = 16, rows = 4}"};
  for (int64_t n : {8, 9, 33}) all.push_back({TransposeGraph(n, 3, 17), schedules});
  all.push_back({TransposeGraph(16, 2, 16), schedules});
  return all;
}

// Contractions that meet the edges of every family for them.
inline std::vector<ScheduleCase> ContractionCases(const std::vector<std::string>& all) {
  return {{MatmulGraph(1, 1, 1), all},     // all edges
          {MatmulGraph(4, 5, 8), all},     // exactly one tile of the first schedule
          {MatmulGraph(5, 5, 9), all},     // one more
          {MatmulGraph(13, 7, 33), all},   // odd
          {MatmulGraph(24, 12, 40), all},  // whole vectors of every operand
          {MatmulGraph(1, 17, 20), all},   // M = 1
          {MatmulGraph(20, 17, 1), all},   // N = 1: a matrix times a vector
          {MatmulGraph(6, 1, 10), all},    // K = 1
          {BatchGraph(3, 5, 6, 7), all},   // batched
          {BatchGraph(2, 1, 9, 1), all},
          {ConvGraph("conv2d", "[2,3,6,7]", "[4,3,3,2]", "[2,4,4,3]", "pad = [1, 0, 2, 1], stride = [2, 3]"), all},
          {ConvGraph("conv2d", "[1,1,5,5]", "[2,1,5,5]", "[1,2,5,5]", "pad = [2, 2, 2, 2]"), all},
          {ConvGraph("conv2d_input_grad", "[2,4,4,4]", "[4,3,3,3]", "[2,3,6,6]", "input = [2, 3, 6, 6]"), all},
          {ConvGraph("conv2d_weight_grad", "[3,2,6,6]", "[3,4,4,4]", "[4,2,3,3]", "weight = [4, 2, 3, 3]"), all}};
}

inline std::vector<ScheduleCase> TilesCases() {
  return ContractionCases({"tiles {bm = 4, bn = 8, bk = 5, tm = 1, tn = 1}",
                           "tiles {bm = 4, bn = 4, bk = 2, tm = 2, tn = 4}",
                           "tiles {bm = 4, bn = 4, bk = 4, tm = 2, tn = 2, ks = 4}",
                           "tiles {bm = 2, bn = 8, bk = 4, tm = 1, tn = 2, split = 3}",
                           "tiles {bm = 6, bn = 10, bk = 2, tm = 3, tn = 5, ks = 2, split = 100}",
                           "tiles {bm = 8, bn = 8, bk = 4, tm = 4, tn = 8, ahead = 1}",
                           "tiles {bm = 4, bn = 4, bk = 3, tm = 1, tn = 2, ahead = 1, raster = 0}",
                           "tiles {bm = 16, bn = 32, bk = 4, tm = 4, tn = 4, ahead = 1, raster = 2}",
                           "tiles {bm = 2, bn = 4, bk = 2, tm = 2, tn = 1, ks = 2, split = 2, ahead = 1, raster = 1}",
                           "tiles {bm = 4, bn = 8, bk = 2, tm = 2, tn = 4, split = 4, last = 1, ahead = 1}",
                           "tiles {bm = 2, bn = 2, bk = 2, tm = 1, tn = 1, ks = 2, split = 3, last = 1, raster = 0}"});
}

// Softmax of a batch of products.
inline std::string ScoresGraph(int64_t b, int64_t m, int64_t k, int64_t n) {
  const std::string t = absl::StrCat("f32[", b, ",", m, ",", n, "]");
  return GraphText(absl::StrCat("input %a: f32[", b, ",", m, ",", k, "], input %b: f32[", b, ",", k, ",", n, "]"),
                   absl::StrCat("%y: ", t, ") {\n    %0: ", t, " = batch_matmul %a, %b\n    %1: ", t,
                                " = softmax %0 {axis = 2}\n    output %y = %1"));
}

// Rounded logits with the position of the first largest one.
inline std::string LogitsGraph(int64_t m, int64_t k, int64_t n) {
  const std::string t = absl::StrCat("f32[", m, ",", n, "]"), r = absl::StrCat("i32[", m, "]");
  return GraphText(
      absl::StrCat("input %a: f32[", m, ",", k, "], input %b: f32[", k, ",", n, "]"),
      absl::StrCat("%y: ", t, ", %p: ", r, ") {\n    %0: ", t, " = matmul %a, %b\n    %1: ", t,
                   " = mul %0, %0\n    %2: ", r, " = argmax %1 {axis = 1}\n    output %y = %1\n    output %p = %2"));
}

// A padded convolution of n images, and the largest of every 2 x 3 window with its position.
inline std::string PooledGraph(int64_t n, int64_t channels) {
  const std::string c = absl::StrCat("f32[", n, ",", channels, ",6,9]"),
                    y = absl::StrCat("[", n, ",", channels, ",3,3]");
  return GraphText(
      absl::StrCat("input %a: f32[", n, ",2,6,9], input %w: f32[", channels, ",2,3,3], input %b: f32[", channels,
                   ",1,1]"),
      absl::StrCat("%y: f32", y, ", %p: u8", y, ") {\n    %0: ", c,
                   " = conv2d %a, %w {pad = [1, 1, 1, 1]}\n    %1: ", c, " = broadcast %b {shape = [", n, ", ",
                   channels, ", 6, 9]}\n    %2: ", c, " = add %0, %1\n    %3: (f32", y, ", u8", y,
                   ") = max_pool_with_index %2 {window = [2, 3]}\n    %4: f32", y, " = get %3 {index = 0}\n    %5: u8",
                   y, " = get %3 {index = 1}\n    output %y = %4\n    output %p = %5"));
}

inline std::vector<ScheduleCase> ProductRowsCases() {
  const std::vector<std::string> all = {"product_rows {bm = 4, bw = 1, bk = 5, tm = 1, local = 8, lanes = 1}",
                                        "product_rows {bm = 2, bw = 3, bk = 4, tm = 2, local = 16, lanes = 2}",
                                        "product_rows {bm = 6, bw = 2, bk = 16, tm = 3, local = 16, lanes = 8}"};
  return {{ScoresGraph(1, 4, 5, 8), all},   // one tile of the first schedule
          {ScoresGraph(3, 5, 6, 33), all},  // odd
          {LogitsGraph(1, 7, 2), all},     {LogitsGraph(13, 33, 10), all}, {PooledGraph(1, 1), all},  // M = 1
          {PooledGraph(2, 5), all}};
}

inline std::vector<ScheduleCase> ContractCases() {
  return ContractionCases(
      {"contract {tm = 4, tn = 1, local = 8, split = 1}", "contract {tm = 1, tn = 1, local = 1, split = 1}",
       "contract {tm = 3, tn = 2, local = 8, split = 1}", "contract {tm = 4, tn = 4, local = 4, split = 1}",
       "contract {tm = 2, tn = 2, local = 8, split = 3}", "contract {tm = 4, tn = 1, local = 8, split = 100}",
       "contract {tm = 2, tn = 2, local = 8, taps = 1}", "contract {tm = 2, tn = 1, local = 8, taps = 1, split = 2}"});
}

}  // namespace agc::test
