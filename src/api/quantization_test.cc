#include "api/quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace whippet {
namespace {

Checkpoint opened(const char* name) {
  Result<Checkpoint> checkpoint = open_checkpoint(std::string(WHIPPET_SOURCE_DIR "/tests/data/") + name);
  WH_CHECK(checkpoint.ok(), "{}", checkpoint.error().message);
  return std::move(*checkpoint);
}

TEST(Quantization, OnlyInt8AndInt4ChangeWhatIsLoaded) {
  const Checkpoint dense = opened("tiny/llama-untied");
  EXPECT_EQ(*read_quantization("", dense), OnLoad::kKeep);
  EXPECT_EQ(*read_quantization("none", dense), OnLoad::kKeep);
  EXPECT_EQ(*read_quantization("int8", dense), OnLoad::kInt8);
  EXPECT_EQ(*read_quantization("int4", dense), OnLoad::kInt4);
}

TEST(Quantization, TheNameOfAFormatMustBeTheCheckpoints) {
  const Checkpoint gptq = opened("quantized/gptq");
  EXPECT_EQ(*read_quantization("gptq", gptq), OnLoad::kKeep);
  EXPECT_EQ(*read_quantization("gptq_marlin", gptq), OnLoad::kKeep);
  EXPECT_EQ(*read_quantization("bitsandbytes", opened("quantized/bitsandbytes")), OnLoad::kKeep);
  const Result<OnLoad> awq = read_quantization("awq", gptq);
  ASSERT_FALSE(awq.ok());
  EXPECT_EQ(awq.error().code, Code::kInvalidArgument);
  EXPECT_THAT(awq.error().message,
              testing::HasSubstr("'awq' names how a checkpoint is stored, and this one is stored as gptq;"));
  EXPECT_THAT(read_quantization("fp8", opened("tiny/llama-untied")).error().message,
              testing::HasSubstr("as dense; leave it out"));
}

}  // namespace
}  // namespace whippet
