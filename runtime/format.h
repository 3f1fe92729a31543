// The one vocabulary that compiler and runtime share: the plan of an entry point and the contents of a bundle, as plain
// structs. The compiler's check-plan pass fills a FlatPlan from the plan stage; the bundle reader fills one from the
// manifest; runtime/plan_check.h proves either. Nothing here depends on Vulkan, Abseil or FlatBuffers.
//
// A value lives at (arena, offset). Base addresses of arenas are added when commands are recorded and nowhere else.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace agc::rt {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };
inline constexpr int kDTypeCount = 13;

// Name as printed ("f32") and bytes of one element in host-visible form (bool is one byte, 0 or 1).
const char* DTypeName(DType dtype);
uint32_t DTypeSize(DType dtype);

// Where a buffer's bytes come from and who may write them.
enum class BufferKind : uint8_t { kInput, kResident, kParam, kState, kConst, kOutput, kTemp, kScratch, kCounter };
const char* BufferKindName(BufferKind kind);

// Arena 0 holds all states of a session (the same offsets in every entry), 1 the temporaries of the running entry,
// 2 constants, 3 host-visible values: inputs, params (rings) and outputs. Arena 4 + i is the i-th resident, bound by
// the user, each a buffer of its own.
enum ArenaId : uint32_t { kStateArena = 0, kTempArena = 1, kConstArena = 2, kHostArena = 3, kFirstResidentArena = 4 };

struct FlatBuffer {
  std::string name = {};  // storage-table name, without '%'
  BufferKind kind = BufferKind::kTemp;
  uint32_t arena = kTempArena;
  uint64_t offset = 0;  // bytes from the arena's base
  uint64_t size = 0;    // bytes; never 0
  // Life as a closed range of step numbers of the plan; ignored for kinds that live longer than a run
  // (input, resident, param, state, const, output, counter).
  uint32_t first_step = 0, last_step = 0;
  int32_t alias = -1;  // buffer whose storage this one takes over (in-place), or -1
};

enum class Access : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

// One argument of a dispatch: a byte range of a buffer, in the order of the kernel's parameters.
struct FlatArg {
  uint32_t buffer = 0;  // index into FlatPlan::buffers
  uint64_t offset = 0;  // bytes from the start of that buffer
  uint64_t size = 0;
  Access access = Access::kRead;
};

enum class StepKind : uint8_t { kDispatch, kCopy, kFill, kBarrier };

struct FlatStep {
  StepKind kind = StepKind::kBarrier;
  uint32_t kernel = 0;                         // dispatch: index into Bundle::kernels
  std::array<uint32_t, 3> groups = {1, 1, 1};  // dispatch: workgroup counts, none 0
  std::vector<FlatArg> args = {};              // dispatch: all; copy: {source, destination}; fill: {destination}
  uint32_t fill_word = 0;                      // fill: repeated 32-bit word
  std::string label = {};                      // dispatch: kernel name and root op, for profiles and errors
  std::string origin = {};                     // source location of the root op ("mlp.cc:12"), may be empty
};

struct FlatPlan {
  std::vector<uint64_t> arena_sizes = {};  // by ArenaId; residents follow
  std::vector<FlatBuffer> buffers = {};
  std::vector<FlatStep> steps = {};
};

// A value as the host sees it: row-major, `dims` elements.
struct Signature {
  std::string name = {};
  DType dtype = DType::kF32;
  std::vector<int64_t> dims = {};
  uint32_t buffer = 0;     // index into the entry's FlatPlan::buffers
  bool each_step = false;  // outputs: one slice per step of Run(n), stored at [run index]
};

struct Entry {
  std::string name = {};
  std::vector<Signature> inputs = {}, residents = {}, params = {}, outputs = {};
  uint32_t ring = 1;             // slots of every param ring and each_step output
  int32_t run_index_state = -1;  // index into Bundle::states of the hidden u32 `run.index`, or -1
  uint64_t bound_bytes = 0;      // live-bytes lower bound of the temporaries arena
  FlatPlan plan = {};
};

enum class BufferAbi : uint8_t { kBindings, kAddresses };

// One compiled kernel. bindings: one storage buffer per parameter at set 0, binding = parameter number.
// addresses: push constants hold one 64-bit address per parameter, in order.
struct Kernel {
  std::string name = {};
  std::vector<uint32_t> spirv = {};
  std::vector<Access> params = {};
  uint32_t push_constant_bytes = 0;
  std::array<uint32_t, 3> local_size = {1, 1, 1};
  std::string glsl = {};  // readable source; empty when stripped
};

struct State {
  std::string name = {};
  DType dtype = DType::kF32;
  std::vector<int64_t> dims = {};
  uint64_t offset = 0;  // bytes in the state arena; row-major
  bool trainable = false;
  bool hidden = false;  // run.index: not part of a checkpoint
};

// What a variant needs of a device; compared with its limits, the first unmet one is the refusal.
struct Requirements {
  std::string target_text = {};  // the whole target description the variant was compiled for
  BufferAbi abi = BufferAbi::kBindings;
  uint32_t shared_bytes = 0, invocations = 1, storage_buffers = 0, push_constant_bytes = 0;
  uint32_t min_subgroup_size = 0;          // 0: no subgroup operations
  uint64_t storage_range = 0;              // largest argument range in bytes
  std::vector<std::string> features = {};  // "shader_float64", "shader_int64", "shader_float16", "storage_8bit", ...
};

struct Variant {
  Requirements requires_ = {};
  std::vector<Entry> entries = {};
};

struct Bundle {
  std::string module_name = {};
  std::vector<State> states = {};
  uint64_t state_bytes = 0;              // size of the state arena
  std::vector<Kernel> kernels = {};      // pool shared by the variants
  std::vector<Variant> variants = {};    // never empty
  std::vector<uint8_t> const_data = {};  // contents of arena 2
  bool has_state_values = false;
  std::vector<uint8_t> state_values = {};  // state_bytes bytes when present
  std::string ir_text = {};                // tensor-stage module; empty when stripped
};

// The first bytes of a bundle file (.agb), little-endian; the rest of the file is described in runtime/bundle.fbs.
inline constexpr uint32_t kBundleMagic = 0x62636761;  // "agcb"
inline constexpr uint32_t kBundleVersion = 1;
inline constexpr size_t kBundleAlignment = 64;  // of the manifest, the segments and their contents
struct BundleHeader {
  uint32_t magic = kBundleMagic, version = kBundleVersion;
  uint64_t file_bytes = 0;         // whole file
  uint64_t manifest_bytes = 0;     // at byte 64
  uint64_t manifest_checksum = 0;  // Checksum of those bytes
  uint64_t reserved[4] = {};       // 0
};
static_assert(sizeof(BundleHeader) == 64);

// FNV-1a over 64-bit little-endian words, the last one padded with zeros: tells damage, not tampering.
uint64_t Checksum(const uint8_t* data, size_t size);

}  // namespace agc::rt
