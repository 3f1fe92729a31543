#include "codegen/bundle_writer.h"

#include <cstring>
#include <map>
#include <utility>

#include "bundle_generated.h"

namespace agc {
namespace {

using flatbuffers::Offset;

// The builder and the segments collected so far.
struct Writer {
  flatbuffers::FlatBufferBuilder fbb{1024};
  std::vector<BundlePieces::Segment> segments = {};  // counted from the first one's place
  std::map<std::vector<uint32_t>, fb::Segment> modules = {};
};

uint64_t AlignUp(uint64_t n) { return (n + rt::kBundleAlignment - 1) / rt::kBundleAlignment * rt::kBundleAlignment; }

fb::Segment AddSegment(Writer& w, const void* data, size_t size) {
  const uint64_t end = w.segments.empty() ? 0 : w.segments.back().at + w.segments.back().bytes.size();
  const uint64_t offset = AlignUp(end);
  w.segments.push_back({offset, {static_cast<const uint8_t*>(data), size}});
  return fb::Segment(offset, size);
}

// A vector of tables: `make` writes one of them.
template <typename Item, typename Make>
auto Tables(Writer& w, const std::vector<Item>& items, Make make) {
  std::vector<decltype(make(w, items[0]))> offsets;
  offsets.reserve(items.size());
  for (const Item& item : items) offsets.push_back(make(w, item));
  return w.fbb.CreateVector(offsets);
}

fb::UInt3 Three(const std::array<uint32_t, 3>& v) { return fb::UInt3(v[0], v[1], v[2]); }

Offset<fb::Buffer> MakeBuffer(Writer& w, const rt::FlatBuffer& b) {
  return fb::CreateBuffer(w.fbb, w.fbb.CreateString(b.name), static_cast<uint8_t>(b.kind), b.arena, b.offset, b.size,
                          b.first_step, b.last_step, b.alias);
}

Offset<fb::Step> MakeStep(Writer& w, const rt::FlatStep& s) {
  std::vector<fb::Arg> args;
  for (const rt::FlatArg& a : s.args) {
    args.push_back(fb::Arg(a.offset, a.size, a.buffer, static_cast<uint8_t>(a.access)));
  }
  const auto arg_vector = w.fbb.CreateVectorOfStructs(args);
  const auto label = w.fbb.CreateSharedString(s.label);
  const auto origin = w.fbb.CreateSharedString(s.origin);
  const fb::UInt3 groups = Three(s.groups);
  return fb::CreateStep(w.fbb, static_cast<uint8_t>(s.kind), s.kernel, &groups, arg_vector, s.fill_word, label, origin);
}

Offset<fb::Plan> MakePlan(Writer& w, const rt::FlatPlan& p) {
  const auto arenas = w.fbb.CreateVector(p.arena_sizes);
  const auto buffers = Tables(w, p.buffers, MakeBuffer);
  const auto steps = Tables(w, p.steps, MakeStep);
  return fb::CreatePlan(w.fbb, arenas, buffers, steps);
}

Offset<fb::Signature> MakeSignature(Writer& w, const rt::Signature& s) {
  const auto name = w.fbb.CreateString(s.name);
  const auto dims = w.fbb.CreateVector(s.dims);
  return fb::CreateSignature(w.fbb, name, static_cast<uint8_t>(s.dtype), dims, s.buffer, s.each_step);
}

Offset<fb::Entry> MakeEntry(Writer& w, const rt::Entry& e) {
  const auto name = w.fbb.CreateString(e.name);
  const auto inputs = Tables(w, e.inputs, MakeSignature);
  const auto residents = Tables(w, e.residents, MakeSignature);
  const auto params = Tables(w, e.params, MakeSignature);
  const auto outputs = Tables(w, e.outputs, MakeSignature);
  const auto plan = MakePlan(w, e.plan);
  return fb::CreateEntry(w.fbb, name, inputs, residents, params, outputs, e.ring, e.run_index_state, e.bound_bytes,
                         plan);
}

Offset<fb::Kernel> MakeKernel(Writer& w, const rt::Kernel& k) {
  const auto name = w.fbb.CreateString(k.name);
  const auto glsl = w.fbb.CreateString(k.glsl);
  std::vector<uint8_t> params;
  for (rt::Access a : k.params) params.push_back(static_cast<uint8_t>(a));
  const auto param_vector = w.fbb.CreateVector(params);
  auto module = w.modules.find(k.spirv);
  if (module == w.modules.end()) {
    module = w.modules.emplace(k.spirv, AddSegment(w, k.spirv.data(), k.spirv.size() * 4)).first;
  }
  const uint64_t checksum = rt::Checksum(reinterpret_cast<const uint8_t*>(k.spirv.data()), k.spirv.size() * 4);
  const fb::UInt3 local = Three(k.local_size);
  return fb::CreateKernel(w.fbb, name, &module->second, checksum, param_vector, k.push_constant_bytes, &local, glsl);
}

Offset<fb::State> MakeState(Writer& w, const rt::State& s) {
  const auto name = w.fbb.CreateString(s.name);
  const auto dims = w.fbb.CreateVector(s.dims);
  return fb::CreateState(w.fbb, name, static_cast<uint8_t>(s.dtype), dims, s.offset, s.trainable, s.hidden);
}

Offset<fb::Variant> MakeVariant(Writer& w, const rt::Variant& v) {
  const rt::Requirements& r = v.requires_;
  const auto target = w.fbb.CreateString(r.target_text);
  const auto features = w.fbb.CreateVectorOfStrings(r.features);
  const auto requirements =
      fb::CreateRequirements(w.fbb, target, static_cast<uint8_t>(r.abi), r.shared_bytes, r.invocations,
                             r.storage_buffers, r.push_constant_bytes, r.min_subgroup_size, r.storage_range, features);
  const auto entries = Tables(w, v.entries, MakeEntry);
  return fb::CreateVariant(w.fbb, requirements, entries);
}

}  // namespace

BundlePieces PiecesOf(const rt::Bundle& bundle) {
  Writer w;
  const auto name = w.fbb.CreateString(bundle.module_name);
  const auto states = Tables(w, bundle.states, MakeState);
  const auto kernels = Tables(w, bundle.kernels, MakeKernel);
  const auto variants = Tables(w, bundle.variants, MakeVariant);
  const auto ir_text = w.fbb.CreateString(bundle.ir_text);
  const fb::Segment constants = AddSegment(w, bundle.const_data.data(), bundle.const_data.size());
  const fb::Segment values = AddSegment(w, bundle.state_values.data(), bundle.state_values.size());
  const uint64_t const_checksum = rt::Checksum(bundle.const_data.data(), bundle.const_data.size()),
                 state_checksum = rt::Checksum(bundle.state_values.data(), bundle.state_values.size());
  w.fbb.Finish(fb::CreateManifest(w.fbb, name, states, bundle.state_bytes, kernels, variants, &constants,
                                  const_checksum, bundle.has_state_values, &values, state_checksum, ir_text));
  rt::BundleHeader header;
  header.manifest_bytes = w.fbb.GetSize();
  header.manifest_checksum = rt::Checksum(w.fbb.GetBufferPointer(), w.fbb.GetSize());
  const uint64_t segments_at = AlignUp(sizeof(header) + header.manifest_bytes);
  header.file_bytes = segments_at + w.segments.back().at + w.segments.back().bytes.size();
  BundlePieces pieces{
      .head = std::vector<uint8_t>(segments_at), .segments = std::move(w.segments), .bytes = header.file_bytes};
  std::memcpy(pieces.head.data(), &header, sizeof(header));
  std::memcpy(pieces.head.data() + sizeof(header), w.fbb.GetBufferPointer(), w.fbb.GetSize());
  for (BundlePieces::Segment& s : pieces.segments) s.at += segments_at;
  return pieces;
}

std::vector<uint8_t> WriteBundle(const rt::Bundle& bundle) {
  const BundlePieces pieces = PiecesOf(bundle);
  std::vector<uint8_t> bytes(pieces.bytes);
  std::memcpy(bytes.data(), pieces.head.data(), pieces.head.size());
  for (const BundlePieces::Segment& s : pieces.segments) {
    if (!s.bytes.empty()) std::memcpy(bytes.data() + s.at, s.bytes.data(), s.bytes.size());
  }
  return bytes;
}

}  // namespace agc
