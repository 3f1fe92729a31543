#include "runtime/bundle_reader.h"

#include <cstring>

#include "bundle_generated.h"
#include "runtime/bundle_check.h"

namespace agc::rt {
namespace {

Status Bad(std::string message) { return Status(Code::kDataLoss, "bundle: " + std::move(message)); }
std::string Num(uint64_t n) { return std::to_string(n); }

// The file, with the manifest copied to aligned memory.
struct File {
  const uint8_t* segments = nullptr;
  uint64_t segment_bytes = 0;
  std::vector<uint64_t> manifest = {};
  uint64_t manifest_bytes = 0;
};

Status OpenFile(const uint8_t* data, size_t size, File* file) {
  BundleHeader h;
  if (size < sizeof(h)) return Bad("file of " + Num(size) + " bytes is too short for a bundle");
  std::memcpy(&h, data, sizeof(h));
  if (h.magic != kBundleMagic) return Bad("this is no bundle (its first bytes are not agcb)");
  if (h.version != kBundleVersion) {
    return Bad("version " + Num(h.version) + ", this runtime reads version " + Num(kBundleVersion) +
               "; compile it again");
  }
  if (h.file_bytes != size) return Bad("file of " + Num(size) + " bytes, its header says " + Num(h.file_bytes));
  for (uint64_t r : h.reserved) {
    if (r != 0) return Bad("its header is damaged");
  }
  if (h.manifest_bytes > size - sizeof(h)) return Bad("its manifest of " + Num(h.manifest_bytes) + " bytes is cut off");
  const uint64_t end = sizeof(h) + h.manifest_bytes;
  const uint64_t segments = (end + kBundleAlignment - 1) / kBundleAlignment * kBundleAlignment;
  if (segments > size) return Bad("it ends inside its padding");
  if (Checksum(data + sizeof(h), h.manifest_bytes) != h.manifest_checksum) return Bad("its manifest is damaged");
  file->segments = data + segments;
  file->segment_bytes = size - segments;
  file->manifest_bytes = h.manifest_bytes;
  file->manifest.resize((h.manifest_bytes + 7) / 8);
  std::memcpy(file->manifest.data(), data + sizeof(h), h.manifest_bytes);
  return Status();
}

Status FindSegment(const File& file, const fb::Segment& s, const std::string& what, const uint8_t** data) {
  if (s.offset() % kBundleAlignment != 0 || s.offset() > file.segment_bytes ||
      s.size() > file.segment_bytes - s.offset()) {
    return Bad(what + ": bytes [" + Num(s.offset()) + ", +" + Num(s.size()) + ") of " + Num(file.segment_bytes));
  }
  *data = file.segments + s.offset();
  return Status();
}

// What may still be copied out of a manifest. Tables and vectors may be named many times in it, so a small file could
// stand for terabytes; a written one names most of them once.
struct Budget {
  uint64_t left = 0;
  bool spent = false;
  bool Take(uint64_t bytes) {
    spent = spent || bytes > left;
    left -= spent ? 0 : bytes;
    return !spent;
  }
};
constexpr uint64_t kCopiesOfManifest = 16, kSmallManifest = 1 << 20;

// Copies a manifest that the verifier accepted; lists end early once the budget is spent.
struct Reader {
  Budget budget;

  std::string Str(const flatbuffers::String* s) { return Text(*s); }
  std::string Text(const flatbuffers::String& s) { return budget.Take(s.size()) ? s.str() : std::string(); }
  std::array<uint32_t, 3> Three(const fb::UInt3& v) { return {v.x(), v.y(), v.z()}; }

  template <typename Item, typename Table>
  std::vector<Item> List(const flatbuffers::Vector<flatbuffers::Offset<Table>>* v, Item (Reader::*read)(const Table&)) {
    std::vector<Item> items;
    for (const Table* item : *v) {
      if (!budget.Take(sizeof(Item))) break;
      items.push_back((this->*read)(*item));
    }
    return items;
  }

  // Elements by memcpy: the verifier of FlatBuffers 2.0 does not prove that vectors of 8-byte elements are aligned.
  template <typename To, typename Vector>
  std::vector<To> Copy(const Vector& v) {
    if (!budget.Take(v.size() * sizeof(To))) return {};
    std::vector<To> items(v.size());
    if (!items.empty()) std::memcpy(items.data(), v.Data(), items.size() * sizeof(To));
    return items;
  }

  // clang-format off
  FlatBuffer ReadBuffer(const fb::Buffer& b) {
    return {.name = Str(b.name()), .kind = static_cast<BufferKind>(b.kind()), .arena = b.arena(), .offset = b.offset(),
            .size = b.size(), .first_step = b.first_step(), .last_step = b.last_step(), .alias = b.alias()};
  }

  FlatStep ReadStep(const fb::Step& s) {
    FlatStep step = {.kind = static_cast<StepKind>(s.kind()), .kernel = s.kernel(), .groups = Three(*s.groups()),
                     .fill_word = s.fill_word(), .label = Str(s.label()), .origin = Str(s.origin())};
    for (const fb::Arg& a : Copy<fb::Arg>(*s.args())) {
      step.args.push_back({a.buffer(), a.offset(), a.size(), static_cast<Access>(a.access())});
    }
    return step;
  }

  FlatPlan ReadPlan(const fb::Plan& p) {
    return {.arena_sizes = Copy<uint64_t>(*p.arena_sizes()), .buffers = List(p.buffers(), &Reader::ReadBuffer),
            .steps = List(p.steps(), &Reader::ReadStep)};
  }

  Signature ReadSignature(const fb::Signature& s) {
    return {.name = Str(s.name()), .dtype = static_cast<DType>(s.dtype()), .dims = Copy<int64_t>(*s.dims()),
            .buffer = s.buffer(), .each_step = s.each_step()};
  }

  Entry ReadEntry(const fb::Entry& e) {
    return {.name = Str(e.name()), .inputs = List(e.inputs(), &Reader::ReadSignature),
            .residents = List(e.residents(), &Reader::ReadSignature),
            .params = List(e.params(), &Reader::ReadSignature),
            .outputs = List(e.outputs(), &Reader::ReadSignature), .ring = e.ring(),
            .run_index_state = e.run_index_state(),
            .bound_bytes = e.bound_bytes(), .plan = ReadPlan(*e.plan())};
  }

  State ReadState(const fb::State& s) {
    return {.name = Str(s.name()), .dtype = static_cast<DType>(s.dtype()), .dims = Copy<int64_t>(*s.dims()),
            .offset = s.offset(), .trainable = s.trainable(), .hidden = s.hidden()};
  }

  Variant ReadVariant(const fb::Variant& v) {
    const fb::Requirements& r = *v.requirements();
    Variant variant = {
        .requires_ = {.target_text = Str(r.target_text()), .abi = static_cast<BufferAbi>(r.abi()),
                      .shared_bytes = r.shared_bytes(), .invocations = r.invocations(),
                      .storage_buffers = r.storage_buffers(), .push_constant_bytes = r.push_constant_bytes(),
                      .min_subgroup_size = r.min_subgroup_size(), .storage_range = r.storage_range()},
        .entries = List(v.entries(), &Reader::ReadEntry)};
    variant.requires_.features = List(r.features(), &Reader::Text);
    return variant;
  }
  // clang-format on

  Status ReadKernel(const File& file, const fb::Kernel& k, Kernel* kernel) {
    *kernel = {.name = Str(k.name()),
               .push_constant_bytes = k.push_constant_bytes(),
               .local_size = Three(*k.local_size()),
               .glsl = Str(k.glsl())};
    const uint8_t* words = nullptr;
    const std::string what = "kernel " + kernel->name;
    if (Status status = FindSegment(file, *k.spirv(), what, &words); !status.ok()) return status;
    if (k.spirv()->size() % 4 != 0) return Bad(what + ": module of " + Num(k.spirv()->size()) + " bytes");
    if (!budget.Take(k.spirv()->size() + k.params()->size())) return Status();
    if (Checksum(words, k.spirv()->size()) != k.spirv_checksum()) return Bad(what + ": its module is damaged");
    kernel->spirv.resize(k.spirv()->size() / 4);
    if (!kernel->spirv.empty()) std::memcpy(kernel->spirv.data(), words, k.spirv()->size());
    for (uint8_t access : *k.params()) kernel->params.push_back(static_cast<Access>(access));
    return Status();
  }

  Status ReadManifest(const File& file, const fb::Manifest& m, MappedBundle* mapped) {
    Bundle& bundle = mapped->bundle;
    bundle.module_name = Str(m.module_name());
    bundle.states = List(m.states(), &Reader::ReadState);
    bundle.state_bytes = m.state_bytes();
    bundle.variants = List(m.variants(), &Reader::ReadVariant);
    bundle.has_state_values = m.has_state_values();
    bundle.ir_text = Str(m.ir_text());
    for (const fb::Kernel* k : *m.kernels()) {
      if (!budget.Take(sizeof(Kernel))) break;
      if (Status s = ReadKernel(file, *k, &bundle.kernels.emplace_back()); !s.ok()) return s;
    }
    if (budget.spent) return Bad("its manifest of " + Num(file.manifest_bytes) + " bytes stands for far more");
    if (Status s = FindSegment(file, *m.const_data(), "constants", &mapped->const_data); !s.ok()) return s;
    mapped->const_bytes = m.const_data()->size();
    const uint8_t* values = nullptr;
    if (Status s = FindSegment(file, *m.state_values(), "state values", &values); !s.ok()) return s;
    if (bundle.has_state_values) mapped->state_values = values;
    mapped->state_value_bytes = m.state_values()->size();
    if (Checksum(mapped->const_data, mapped->const_bytes) != m.const_checksum())
      return Bad("its constants are damaged");
    if (Checksum(values, mapped->state_value_bytes) != m.state_checksum()) return Bad("its state values are damaged");
    return CheckBundle(bundle, mapped->const_bytes, mapped->state_value_bytes);
  }
};

}  // namespace

StatusOr<MappedBundle> MapBundle(const uint8_t* data, size_t size) {
  File file;
  if (Status status = OpenFile(data, size, &file); !status.ok()) return status;
  const uint8_t* manifest = reinterpret_cast<const uint8_t*>(file.manifest.data());
  flatbuffers::Verifier verifier(manifest, file.manifest_bytes, /*max_depth=*/16, /*max_tables=*/1000000);
  if (!fb::VerifyManifestBuffer(verifier)) return Bad("its manifest is malformed");
  MappedBundle mapped;
  Reader reader{{.left = kCopiesOfManifest * file.manifest_bytes + file.segment_bytes + kSmallManifest}};
  if (Status status = reader.ReadManifest(file, *fb::GetManifest(manifest), &mapped); !status.ok()) return status;
  return mapped;
}

StatusOr<Bundle> ReadBundle(const uint8_t* data, size_t size) {
  StatusOr<MappedBundle> mapped = MapBundle(data, size);
  if (!mapped.ok()) return mapped.status();
  Bundle bundle = std::move(mapped->bundle);
  bundle.const_data.assign(mapped->const_data, mapped->const_data + mapped->const_bytes);
  if (bundle.has_state_values) {
    bundle.state_values.assign(mapped->state_values, mapped->state_values + mapped->state_value_bytes);
  }
  return bundle;
}

}  // namespace agc::rt
