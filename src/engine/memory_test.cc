#include "engine/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/limits.h"

namespace whippet {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// 1 KiB a token in fp32: 16 KiB a block of 16.
ModelSpec small_spec() {
  ModelSpec spec;
  spec.num_layers = 2;
  spec.num_q_heads = spec.num_kv_heads = 2;
  spec.head_dim = 32;
  spec.max_position = 4096;
  spec.window_of_layer = {0, 0};
  return spec;
}

MemoryFacts facts_of(uint64_t available, bool gpu = false) {
  return {.gpu = gpu, .total = available * 2, .available = available, .kv_type = DType::kF32};
}

EnginePlan plan_of(const EngineConfig& config, const MemoryFacts& facts,
                   const ModelSpec& spec = small_spec()) {
  auto plan = plan_engine(config, spec, facts);
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? *plan : EnginePlan{};
}

std::string refusal(const EngineConfig& config, uint64_t available = 1000 * kMiB, bool gpu = false) {
  const auto plan = plan_engine(config, small_spec(), facts_of(available, gpu));
  return plan.ok() ? "" : plan.error().message;
}

TEST(Memory, TheDefaultIsTheLesserOfItsTwoShares) {
  const EnginePlan plenty = plan_of({}, facts_of(4000 * kMiB));
  EXPECT_EQ(plenty.config.max_num_seqs, 32);
  EXPECT_EQ(plenty.kv_bytes, 32u * 2048 * 1024);
  EXPECT_EQ(plenty.num_blocks, 4096);
  EXPECT_EQ(plenty.config.max_model_len, 4096);
  EXPECT_EQ(plenty.config.overlap, "off");
  EXPECT_NE(plenty.notes.back().find("a quarter of"), std::string::npos);
  EXPECT_EQ(plan_of({}, facts_of(100 * kMiB)).kv_bytes, 25 * kMiB);
  const EnginePlan gpu = plan_of({}, facts_of(100 * kMiB, true));
  EXPECT_EQ(gpu.config.max_num_seqs, 256);
  EXPECT_EQ(gpu.num_blocks, static_cast<int32_t>(90 * kMiB / (16 * 1024)));
  EXPECT_EQ(gpu.config.overlap, "on");
}

TEST(Memory, AnInt8CacheCountsItsScalesAndHoldsMoreTokens) {
  MemoryFacts facts = facts_of(1000 * kMiB);
  facts.kv_type = DType::kI8;
  EngineConfig config;
  config.kv_cache_memory.bytes = 100 * kMiB;
  const EnginePlan plan = plan_of(config, facts);
  constexpr uint64_t kToken = 2 * 2 * 2 * (32 + 4);  // K and V, layers, heads
  EXPECT_EQ(plan.num_blocks, static_cast<int32_t>(100 * kMiB / (16 * kToken)));
  EXPECT_EQ(plan.kv_bytes, static_cast<uint64_t>(plan.num_blocks) * 16 * kToken);
  EXPECT_EQ(plan.kv_type, DType::kI8);
  EXPECT_NE(plan.notes.back().find("288 bytes a token in int8"), std::string::npos) << plan.notes.back();
}

TEST(Memory, TheCacheIsKeptInWhatIsAskedForWhereTheDeviceCan) {
  const auto read = [](const char* name, bool gpu = false) {
    EngineConfig config;
    config.kv_cache_dtype = name;
    return read_kv_type(config, DType::kBF16, gpu);
  };
  EXPECT_EQ(*read("auto"), DType::kBF16);
  EXPECT_EQ(*read("float32"), DType::kF32);
  EXPECT_EQ(*read("fp16"), DType::kF16);
  EXPECT_EQ(*read("int8"), DType::kI8);
  EXPECT_EQ(*read("bf16", true), DType::kBF16);
  const auto on_gpu = read("int8", true);
  ASSERT_FALSE(on_gpu.ok());
  EXPECT_EQ(on_gpu.error().code, Code::kUnsupported);
  EXPECT_NE(on_gpu.error().message.find("int8 KV cache is not available on the CUDA backend yet"),
            std::string::npos);
  EXPECT_NE(on_gpu.error().message.find("use kv_cache_dtype auto"), std::string::npos);
  EXPECT_FALSE(read("float32", true).ok());
  const auto fp8 = read("fp8");
  ASSERT_FALSE(fp8.ok());
  EXPECT_NE(fp8.error().message.find("or int8"), std::string::npos);
}

TEST(Memory, ThereIsAlwaysRoomForOneSequence) {
  const EnginePlan plan = plan_of({}, facts_of(12 * kMiB));  // a quarter is 3 MiB, one sequence needs 4
  EXPECT_EQ(plan.config.max_model_len, 4096);
  EXPECT_EQ(plan.num_blocks, 256);
}

TEST(Memory, ADefaultLengthThatDoesNotFitIsLoweredWithANote) {
  const EnginePlan plan = plan_of({}, facts_of(4 * kMiB));
  EXPECT_EQ(plan.config.max_model_len, 2048);
  EXPECT_EQ(plan.num_blocks, 128);
  EXPECT_NE(plan.notes.front().find("lowered from the model's 4096 to 2048"), std::string::npos)
      << plan.notes.front();
  EXPECT_NE(plan.notes.front().find("kv_cache_memory"), std::string::npos);
  EngineConfig tight;
  tight.kv_cache_memory.bytes = kMiB;
  EXPECT_EQ(plan_of(tight, facts_of(1000 * kMiB)).config.max_model_len, 1024);
}

TEST(Memory, AnExplicitLengthThatDoesNotFitIsAnErrorWithTheArithmetic) {
  EngineConfig config;
  config.max_model_len = 4096;
  config.kv_cache_memory.bytes = kMiB;
  const std::string message = refusal(config);
  EXPECT_NE(message.find("max_model_len 4096 needs 4.0 MiB"), std::string::npos) << message;
  EXPECT_NE(message.find("256 blocks of 16384 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("use max_model_len 1024 or less"), std::string::npos) << message;
  config.max_model_len = 4097;
  EXPECT_NE(refusal(config).find("made for 4096"), std::string::npos);
  config.max_model_len = 0;
  config.kv_cache_memory.bytes = 100;
  EXPECT_NE(refusal(config).find("KV cache"), std::string::npos);
  config.kv_cache_memory.bytes = 2000 * kMiB;
  EXPECT_NE(refusal(config).find("only 1000.0 MiB"), std::string::npos) << refusal(config);
}

TEST(Memory, AShareOfTheDeviceCountsWhatIsInUse) {
  EngineConfig config;
  config.gpu_memory_utilization = 0.75;  // of 200 MiB, 100 in use
  EXPECT_EQ(plan_of(config, facts_of(100 * kMiB, true)).kv_bytes, 50 * kMiB);
  config.gpu_memory_utilization = 0.4;
  EXPECT_NE(refusal(config, 100 * kMiB, true).find("in use already"), std::string::npos);
}

TEST(Memory, KnobsOutOfRangeAreNamed) {
  const auto refuses = [](auto set, const char* text) {
    EngineConfig config;
    set(config);
    EXPECT_EQ(refusal(config).find(text), 0u) << refusal(config);
  };
  refuses([](auto& c) { c.block_size = 24; }, "block_size is 24");
  refuses([](auto& c) { c.max_model_len = 1; }, "max_model_len is 1");
  refuses([](auto& c) { c.max_num_seqs = -1; }, "max_num_seqs is -1");
  refuses([](auto& c) { c.max_num_batched_tokens = -5; }, "max_num_batched_tokens is -5");
  refuses([](auto& c) { c.gpu_memory_utilization = 1.5; }, "gpu_memory_utilization is 1.5");
  refuses([](auto& c) { c.batch_wait_ms = -1; }, "batch_wait_ms is -1");
  refuses([](auto& c) { c.batch_wait_size = -1; }, "batch_wait_size is -1");
  refuses([](auto& c) { c.sliding_window = -1; }, "sliding_window is -1");
  refuses([](auto& c) { c.overlap = "maybe"; }, "overlap is maybe");
  refuses([](auto& c) { c.max_num_seqs = 8, c.max_num_batched_tokens = 7; }, "max_num_batched_tokens is 7");
}

TEST(Memory, FewRowsLowerTheDefaultNumberOfSequences) {
  EngineConfig config;
  config.max_num_batched_tokens = 7;
  const EnginePlan plan = plan_of(config, facts_of(100 * kMiB));
  EXPECT_EQ(plan.config.max_num_seqs, 7);
  EXPECT_NE(plan.notes.front().find("max_num_seqs is lowered from 32"), std::string::npos);
}

TEST(Memory, WithoutChunkedPrefillAStepHoldsAWholePrompt) {
  EngineConfig config;
  config.enable_chunked_prefill = false;
  EXPECT_EQ(plan_of(config, facts_of(100 * kMiB)).config.max_num_batched_tokens, 4096 + 32);
  config.max_num_batched_tokens = 512;
  EXPECT_NE(refusal(config).find("without chunked prefill"), std::string::npos);
}

TEST(Memory, WindowsInEveryLayerNeedOnlyTheirBlocks) {
  ModelSpec spec = small_spec();
  EngineConfig config;
  config.sliding_window = 128;
  config.max_num_batched_tokens = 64;
  apply_sliding_window(config, spec);
  EXPECT_EQ(spec.window_of_layer, (std::vector<int32_t>{128, 128}));
  config.kv_cache_memory.bytes = kMiB / 2;  // 32 blocks, of 512 tokens
  const EnginePlan plan = plan_of(config, facts_of(1000 * kMiB), spec);
  EXPECT_EQ(plan.config.max_model_len, 4096);
  EXPECT_EQ(core_limits(plan, spec).window, 128);
  spec.window_of_layer = {64, 0};
  EXPECT_EQ(core_limits(plan, spec).window, 0);  // one layer sees everything
}

class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / (std::string("whippet_host_memory_") + test->name());
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:       8000 kB\nMemFree: 1 kB\nMemAvailable:   6000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  MemoryFacts facts() const { return host_memory(DType::kBF16, root_.string()); }
  std::filesystem::path root_;
};

TEST(KvType, FollowsTheComputeTypeAndThenTheCheckpoint) {
  ModelSpec spec;
  EXPECT_EQ(kv_type_of(ComputeType::kAuto, spec), DType::kBF16) << "quantised: no type of its own";
  for (const auto& [stored, type] : {std::pair("float32", DType::kF32), std::pair("float16", DType::kF16),
                                     std::pair("bfloat16", DType::kBF16)}) {
    spec.dtype = stored;
    EXPECT_EQ(kv_type_of(ComputeType::kAuto, spec), type);
    EXPECT_EQ(kv_type_of(ComputeType::kF32, spec), DType::kF32);
    EXPECT_EQ(kv_type_of(ComputeType::kBF16, spec), DType::kBF16);
    EXPECT_EQ(kv_type_of(ComputeType::kF16, spec), DType::kF16);
  }
}

TEST_F(HostMemory, WithoutCgroupsTheHostDecides) {
  EXPECT_EQ(facts().total, 8000u * 1024);
  EXPECT_EQ(facts().available, 6000u * 1024);
  EXPECT_EQ(facts().kv_type, DType::kBF16);
}

TEST_F(HostMemory, TheTightestGroupOfAPathDecides) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/memory.max", "4096000\n");
  write("sys/fs/cgroup/outer/memory.current", "3000000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 1000000\n");
  EXPECT_EQ(facts().total, 4096000u);
  EXPECT_EQ(facts().available, 4096000u - 2000000u);  // page cache can go
  write("sys/fs/cgroup/memory.max", "1000000\n");
  EXPECT_EQ(facts().available, 1000000u);
}

TEST_F(HostMemory, ReadsTheFirstVersionToo) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/x\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1500000\n");
  EXPECT_EQ(facts().available, 500000u);
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(facts().available, 6000u * 1024);
}

TEST_F(HostMemory, WithoutProcTheSystemIsAsked) {
  std::filesystem::remove_all(root_ / "proc");
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  EXPECT_EQ(facts().total, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_LE(facts().available, facts().total);
  EXPECT_GT(facts().available, 0u);
}

TEST_F(HostMemory, NonsenseIsNoCrash) {
  write("proc/meminfo", "garbage\nMemTotal:\n");
  write("proc/self/cgroup", "::\nx\n0:\n0::\n");
  write("sys/fs/cgroup/memory.max", "-5 apples\n");
  facts();
}

}  // namespace
}  // namespace whippet
