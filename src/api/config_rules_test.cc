#include "api/config_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace whippet {
namespace {

TEST(KnobName, AcceptsDashesAndUnderscores) {
  EXPECT_EQ(knob_name("--max-num-seqs"), "max_num_seqs");
  EXPECT_EQ(knob_name("max_num-seqs"), "max_num_seqs");
  EXPECT_EQ(flag_name("max_num_seqs"), "--max-num-seqs");
  EXPECT_EQ(variable_name("max_num_seqs"), "WHIPPET_MAX_NUM_SEQS");
}

TEST(SetKnob, EveryDefaultIsReadBackFromItsText) {
  for (const std::string& name : knob_names()) {
    EngineConfig config;
    const Status status = set_knob(config, name, knob_text(config, name));
    EXPECT_TRUE(status.ok()) << name;
    EXPECT_EQ(knob_text(config, name), knob_text(EngineConfig{}, name)) << name;
  }
}

TEST(SetKnob, ReadsEachType) {
  EngineConfig config;
  EXPECT_TRUE(set_knob(config, "model", "org/name").ok());
  EXPECT_TRUE(set_knob(config, "max_num_seqs", "7").ok());
  EXPECT_TRUE(set_knob(config, "kv_cache_memory", "24MiB").ok());
  EXPECT_TRUE(set_knob(config, "gpu_memory_utilization", "0.5").ok());
  EXPECT_TRUE(set_knob(config, "enable_prefix_caching", "off").ok());
  EXPECT_TRUE(set_knob(config, "seed", "18446744073709551615").ok());
  EXPECT_EQ(config.model, "org/name");
  EXPECT_EQ(config.max_num_seqs, 7);
  EXPECT_EQ(config.kv_cache_memory.bytes, 24u << 20);
  EXPECT_EQ(config.gpu_memory_utilization, 0.5);
  EXPECT_FALSE(config.enable_prefix_caching);
  EXPECT_EQ(config.seed, UINT64_MAX);
}

TEST(SetKnob, AWrongValueSaysWhatIsAllowedAndChangesNothing) {
  EngineConfig config;
  const auto message = [&](const char* knob, const char* text) {
    return set_knob(config, knob, text).error().message;
  };
  EXPECT_EQ(message("max_num_seqs", "-1"), "-1 is outside the allowed range 0 to 8192");
  EXPECT_EQ(message("max_num_seqs", "many"), "'many' is not a whole number from 0 to 8192");
  EXPECT_EQ(message("block_size", "24"), "'24' is not one of 8, 16, 32, 64, 128");
  EXPECT_EQ(message("dtype", "int3"), "'int3' is not one of auto, float32, bfloat16, float16");
  EXPECT_EQ(message("kv_cache_dtype", "fp8"),
            "'fp8' is not one of auto, float32, fp32, bfloat16, bf16, float16, fp16, int8");
  EXPECT_EQ(message("hub", "s3"), "'s3' is not one of hf, ms, pypi");
  EXPECT_EQ(message("gpu_memory_utilization", "1.5"), "1.5 is outside the allowed range 0 to 1");
  EXPECT_EQ(message("gpu_memory_utilization", "nan"), "'nan' is not a finite number");
  EXPECT_EQ(config.max_num_seqs, EngineConfig{}.max_num_seqs);
  EXPECT_EQ(config.block_size, EngineConfig{}.block_size);
}

TEST(CheckConfig, NamesTheFirstKnobOutOfRange) {
  EXPECT_TRUE(check_config({}).ok());
  EngineConfig config;
  config.batch_wait_ms = -1;
  EXPECT_EQ(check_config(config).error().message,
            "batch_wait_ms: -1 is outside the allowed range 0 to 60000");
}

TEST(ForeignKnob, SaysWhatToDoInsteadUnlessTheValueAsksForWhatHappensAnyway) {
  EXPECT_NE(foreign_knob_advice("trust_remote_code", "true"), "");
  EXPECT_NE(foreign_knob_advice("tensor_parallel_size", "2"), "");
  EXPECT_EQ(foreign_knob_advice("tensor_parallel_size", "1"), "");
  EXPECT_EQ(foreign_knob_advice("max_num_seqs", "1"), "");
  const Error error = unknown_knob("flag", "--swap-space", "4", {});
  EXPECT_EQ(error.message.find("--swap-space has no meaning here: "), 0u);
}

TEST(ForeignKnob, IsNeverAKnobOfOurOwn) {
  for (const std::string& name : knob_names()) EXPECT_FALSE(is_foreign_knob(name)) << name;
}

}  // namespace
}  // namespace whippet
