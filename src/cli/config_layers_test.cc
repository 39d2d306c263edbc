#include "cli/config_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string error_of(const std::string& name, const std::string& text) {
    ConfigLayers layers;
    const Status status = layers.read_file(write(name, text));
    return status.ok() ? "" : status.error().message;
  }
  ~ConfigFile() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("config_" + std::to_string(::getpid()));
};

TEST_F(ConfigFile, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  ConfigLayers layers;
  ASSERT_TRUE(layers.read_file(write("it.yaml", "max-num-seqs: 1\nthreads: 1\nseed: 1\n")).ok());
  ASSERT_TRUE(layers.read_environment({{"WHIPPET_MAX_NUM_SEQS", "2"}, {"WHIPPET_THREADS", "2"}}).ok());
  ASSERT_TRUE(layers.set("max-num-seqs", "3", "--max-num-seqs").ok());
  EXPECT_EQ(layers.config().max_num_seqs, 3);
  EXPECT_EQ(layers.config().threads, 2);
  EXPECT_EQ(layers.config().seed, 1u);
  EXPECT_EQ(layers.config().block_size, EngineConfig{}.block_size);
  const std::string shown = layers.describe();
  EXPECT_THAT(shown, testing::ContainsRegex("max_num_seqs: 3 +# --max-num-seqs\n"));
  EXPECT_THAT(shown, testing::ContainsRegex("threads: 2 +# WHIPPET_THREADS\n"));
  EXPECT_THAT(shown, testing::ContainsRegex("seed: 1 +# it.yaml \\(seed\\)\n"));
  EXPECT_THAT(shown, testing::ContainsRegex("block_size: 16 +# default\n"));
}

TEST_F(ConfigFile, WhatIsPrintedIsAConfigFileItself) {
  ConfigLayers layers;
  ASSERT_TRUE(layers.set("chat_template", "{{ a }}: \"b\" # c\n", "--chat-template").ok());
  ASSERT_TRUE(layers.set("kv_cache_memory", "1536KiB", "--kv-cache-memory").ok());
  ASSERT_TRUE(layers.set("enable_chunked_prefill", "false", "--no-enable-chunked-prefill").ok());
  ConfigLayers again;
  ASSERT_TRUE(again.read_file(write("printed.yaml", layers.describe())).ok());
  EXPECT_EQ(again.config().chat_template, "{{ a }}: \"b\" # c\n");
  EXPECT_EQ(again.config().kv_cache_memory.bytes, 1536u << 10);
  EXPECT_FALSE(again.config().enable_chunked_prefill);
}

TEST_F(ConfigFile, JsonIsReadToo) {
  ConfigLayers layers;
  ASSERT_TRUE(layers
                  .read_file(write("it.json", R"({"model": "a/b", "max_num_seqs": 4, "batch_wait_ms": 2.5,
                                                 "enable_prefix_caching": false})"))
                  .ok());
  EXPECT_EQ(layers.config().model, "a/b");
  EXPECT_EQ(layers.config().max_num_seqs, 4);
  EXPECT_EQ(layers.config().batch_wait_ms, 2.5);
  EXPECT_FALSE(layers.config().enable_prefix_caching);
}

TEST_F(ConfigFile, AnEmptyFileChangesNothing) {
  EXPECT_EQ(error_of("it.yaml", ""), "");
  EXPECT_EQ(error_of("it.yaml", "# only a comment\n"), "");
}

TEST_F(ConfigFile, WhatIsWrongIsNamed) {
  EXPECT_THAT(error_of("it.yaml", "max_num_seq: 4\n"), HasSubstr("did you mean 'max_num_seqs'?"));
  EXPECT_THAT(error_of("it.yaml", "max_num_seqs: x\n"), HasSubstr("it.yaml (max_num_seqs): 'x' is not"));
  EXPECT_THAT(error_of("it.yaml", "max_num_seqs: [1]\n"), HasSubstr("max_num_seqs: expected one value"));
  EXPECT_THAT(error_of("it.yaml", "seed: 1\nseed: 2\n"), HasSubstr("seed is given twice"));
  EXPECT_THAT(error_of("it.yaml", "a: [1\n"), HasSubstr("no valid YAML"));
  EXPECT_THAT(error_of("it.yaml", "- a\n"), HasSubstr("name: value"));
  EXPECT_THAT(error_of("it.yaml", "enforce_eager: true\n"), HasSubstr("enforce_eager has no meaning here"));
  EXPECT_THAT(error_of("it.json", "{"), HasSubstr("one JSON object"));
  EXPECT_THAT(error_of("it.json", R"({"seed": null})"), HasSubstr("seed: expected one value"));
  EXPECT_THAT(error_of("it.yaml", std::string(100000, '[')), HasSubstr("it.yaml"));
  ConfigLayers layers;
  EXPECT_THAT(layers.read_file(folder_ / "absent.yaml").error().message,
              HasSubstr("absent.yaml is not there"));
  EXPECT_THAT(layers.read_file(folder_).error().message, HasSubstr("no file"));
}

TEST(ConfigLayers, AHarmlessForeignValueIsAccepted) {
  ConfigLayers layers;
  EXPECT_TRUE(layers.set("tensor_parallel_size", "1", "--tensor-parallel-size").ok());
  EXPECT_THAT(layers.set("tensor_parallel_size", "2", "--tensor-parallel-size").error().message,
              HasSubstr("one device"));
}

TEST(ConfigLayers, AWrongVariableNamesItself) {
  ConfigLayers layers;
  EXPECT_EQ(layers.read_environment({{"WHIPPET_BLOCK_SIZE", "3"}}).error().message,
            "WHIPPET_BLOCK_SIZE: 3 is outside the allowed range 8 to 128");
}

TEST(UnknownVariables, WarnsOfMistakesButNotOfServiceDiscovery) {
  const std::map<std::string, std::string> variables = {{"WHIPPET_MAX_NUM_SEQ", "1"},
                                                        {"WHIPPET_SEED", "1"},
                                                        {"WHIPPET_LOG_LEVEL", "info"},
                                                        {"WHIPPET_SERVICE_HOST", "10.0.0.1"},
                                                        {"WHIPPET_SERVICE_PORT_HTTP", "80"},
                                                        {"WHIPPET_PORT_80_TCP_ADDR", "10.0.0.1"},
                                                        {"PATH", "/bin"}};
  EXPECT_THAT(unknown_variables(variables, {"WHIPPET_LOG_LEVEL"}),
              ElementsAre("the environment variable WHIPPET_MAX_NUM_SEQ means nothing here (did you mean "
                          "'WHIPPET_MAX_NUM_SEQS'?)"));
}

}  // namespace
}  // namespace whippet
