// whippet quantize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cli/calibration_text.h"
#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Quantize : public testing::Test {
 protected:
  Quantize() {
    write_tiny_model(model_);
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += "The quick brown fox jumps over " + std::to_string(i * i) + " dogs. ";
    folder_.write("text.txt", text);
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  CommandResult run(std::vector<std::string> more) {
    std::vector<std::string> args = {"quantize", model_.path().string()};
    args.insert(args.end(), more.begin(), more.end());
    return run_whippet(args, {});
  }

  TestFolder model_, folder_;
};

TEST_F(Quantize, WhatIsWrittenIsServedAndMeasured) {
  const CommandResult result = run({"--calibration", file("text.txt"), "--samples", "16", "--sequence-length",
                                    "64", "--group-size", "32", "--out", file("out"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json_lines().at(0);
  EXPECT_EQ(report["layers"].size(), 14u);
  EXPECT_LT(report["mean_error"], report["mean_rounding_error"]);
  EXPECT_GT(report["quality"]["tokens"], 100);
  EXPECT_GT(report["quality"]["top1_agreement"], 0.3);
  EXPECT_LT(report["quality"]["weight_bytes"], report["quality"]["reference_weight_bytes"]);

  const CommandResult eval = run_whippet({"eval", file("out"), "--against", model_.path().string(), "--text",
                                          file("text.txt"), "--limit", "512", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_GT(eval.json_lines().at(0)["kl_divergence"], 0);
  const CommandResult served = run_whippet({"generate", file("out"), "-p", "The", "--max-tokens", "4"});
  EXPECT_EQ(served.exit_code, 0) << served.err;
}

TEST_F(Quantize, RoundingEndsWithTheCommandThatMeasures) {
  const CommandResult result = run({"--method", "rtn", "--bits", "8", "--out", file("out")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("model.layers.1.mlp.down_proj"));
  EXPECT_THAT(result.out, HasSubstr("whippet eval " + file("out") + " --against"));
}

TEST_F(Quantize, LinesOfIdsCalibrateAModelWithoutATokenizer) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"input_ids": [)" + std::to_string(i) + ", 3, 9, 27, 1, 44, 2, 60]}\n";
  folder_.write("ids.jsonl", lines);
  const std::string model = WHIPPET_SOURCE_DIR "/tests/data/tiny/qwen3";
  const CommandResult result =
      run_whippet({"quantize", model, "--calibration", file("ids.jsonl"), "--bits", "8", "--samples", "4",
                   "--sequence-length", "32", "--out", file("out"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(result.json_lines().at(0)["quality"]["top1_agreement"], 0.9);
  const CommandResult text =
      run_whippet({"quantize", model, "--calibration", file("text.txt"), "--out", file("b")});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.err, HasSubstr("input_ids"));
}

TEST_F(Quantize, WrongFlagsAreNamedBeforeAnythingIsRead) {
  const std::vector<std::string> right = {"--calibration", file("text.txt"), "--out", file("out")};
  const auto refused = [&](std::vector<std::string> more, const char* why, bool with_right = true) {
    if (with_right) more.insert(more.end(), right.begin(), right.end());
    const CommandResult result = run(more);
    EXPECT_EQ(result.exit_code, 2) << why;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"--method", "awq"}, "--method: 'awq' is not one of gptq, rtn");
  refused({"--bits", "5"}, "--bits: 5 is not one of");
  refused({"--bits", "many"}, "--bits: ");
  refused({"--group-size", "100"}, "--group-size: 100 is not one of");
  refused({"--damp-percent", "2"}, "--damp-percent: expected a number from 0 to 1");
  refused({"--method", "rtn"}, "--calibration says nothing to --method rtn");
  refused({"--out", file("out")}, "--calibration FILE is missing", false);
  refused({"--calibration", file("text.txt")}, "--out DIR is missing", false);
  EXPECT_FALSE(std::filesystem::exists(file("out")));
  EXPECT_FALSE(std::filesystem::exists(file("out.partial")));
}

TEST_F(Quantize, WhatItCannotReadOrWriteIsNamed) {
  const auto refused = [&](const std::string& text, const char* why) {
    const CommandResult result = run({"--calibration", text, "--out", file("out")});
    EXPECT_EQ(result.exit_code, 1) << why;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused(file("none.txt"), "none.txt");
  refused(folder_.write("empty.txt", "").string(), "too few to calibrate with");
  refused(folder_.write("bad.jsonl", "{\"text\": 1}\n").string(), "line 1: expected {\"text\": TEXT}");
  folder_.write("out/something", "");
  refused(file("text.txt"), "is there already");
}

TEST(CalibrationText, SequencesAreSpreadAndTheOthersKeptApart) {
  std::vector<int32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  const auto text = cut_calibration(ids, {7}, {.samples = 5, .length = 11});
  ASSERT_TRUE(text.ok());
  ASSERT_EQ(text->sequences.size(), 5u);
  EXPECT_EQ(text->held_out.size(), 16u);
  std::vector<int32_t> begins;
  for (const auto& ids_of : text->sequences) {
    EXPECT_EQ(ids_of.size(), 11u);
    EXPECT_EQ(ids_of[0], 7);
    begins.push_back(ids_of[1]);
  }
  EXPECT_EQ(begins, (std::vector<int32_t>{190, 390, 590, 790, 990}));
  for (const auto& ids_of : text->held_out)
    EXPECT_EQ(std::count(begins.begin(), begins.end(), ids_of[1]), 0) << ids_of[1];
}

TEST(CalibrationText, AShortTextIsUsedButForATenth) {
  const auto text = cut_calibration(std::vector<int32_t>(210), {}, {.samples = 64, .length = 10});
  EXPECT_EQ(text->sequences.size(), 19u);
  EXPECT_EQ(text->held_out.size(), 2u);
  const auto one = cut_calibration({1, 2, 3}, {}, {.samples = 64, .length = 10});
  EXPECT_EQ(one->sequences, (std::vector<std::vector<int32_t>>{{1, 2, 3}}));
  EXPECT_TRUE(one->held_out.empty());
  EXPECT_FALSE(cut_calibration({1}, {}, {}).ok());
}

}  // namespace
}  // namespace whippet
