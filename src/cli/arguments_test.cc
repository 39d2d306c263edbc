#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Arguments : public testing::Test {
 protected:
  Arguments() {
    add_value(root_, "--log-level", "LEVEL", "");
    CLI::App* chat = root_.add_subcommand("chat", "");
    add_value(*chat, "--max-num-seqs", "N", "");
    add_value(*chat, "--stop", "TEXT", "");
    add_value(*chat, "-p,--prompt", "TEXT", "");
    add_switch(*chat, "--enable-prefix-caching,!--no-enable-prefix-caching", "");
    root_.add_subcommand("bench", "")->add_subcommand("throughput", "");
  }
  std::vector<std::string> normal(const std::vector<std::string>& args) {
    auto result = normalise_arguments(root_, args, named_);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? *result : std::vector<std::string>{};
  }
  std::string refused(const std::vector<std::string>& args) {
    const auto result = normalise_arguments(root_, args, named_);
    return result.ok() ? "" : result.error().message;
  }

  CLI::App root_{"", "whippet"};
  const CLI::App* named_ = nullptr;
};

TEST_F(Arguments, UnderscoresAreDashesInNamesOnly) {
  EXPECT_THAT(normal({"chat", "--max_num_seqs", "4"}), ElementsAre("chat", "--max-num-seqs=4"));
  EXPECT_THAT(normal({"chat", "--stop=a_b"}), ElementsAre("chat", "--stop=a_b"));
  EXPECT_THAT(normal({"chat", "--no_enable_prefix_caching"}),
              ElementsAre("chat", "--no-enable-prefix-caching"));
  EXPECT_EQ(named_->get_name(), "chat");
}

TEST_F(Arguments, ValuesMayBeginWithADash) {
  EXPECT_THAT(normal({"chat", "--max-num-seqs", "-1"}), ElementsAre("chat", "--max-num-seqs=-1"));
  EXPECT_THAT(normal({"chat", "--stop", "--- end"}), ElementsAre("chat", "--stop=--- end"));
  EXPECT_THAT(normal({"chat", "-p", "- a list"}), ElementsAre("chat", "--prompt=- a list"));
}

TEST_F(Arguments, ValuesMayBeEmpty) {
  EXPECT_THAT(normal({"chat", "--stop", "", "-p", ""}), ElementsAre("chat", "--stop", "", "--prompt", ""));
}

TEST_F(Arguments, AFlagIsNoValue) {
  EXPECT_THAT(normal({"chat", "--stop", "--max-num-seqs", "4"}),
              ElementsAre("chat", "--stop", "--max-num-seqs=4"));
}

TEST_F(Arguments, FlagsOfTheProgramStandAnywhere) {
  EXPECT_THAT(normal({"--log-level", "debug", "chat"}), ElementsAre("--log-level=debug", "chat"));
  EXPECT_THAT(normal({"chat", "--log_level", "debug"}), ElementsAre("chat", "--log-level=debug"));
}

TEST_F(Arguments, BehindTwoDashesNothingIsTouched) {
  EXPECT_THAT(normal({"chat", "--", "--max_num_seqs", "help"}),
              ElementsAre("chat", "--", "--max_num_seqs", "help"));
}

TEST_F(Arguments, HelpIsACommandToo) {
  EXPECT_THAT(normal({"help", "chat"}), ElementsAre("chat", "--help"));
  EXPECT_THAT(normal({"chat", "help"}), ElementsAre("chat", "help")) << "a model may have that name";
}

TEST_F(Arguments, UnknownCommandsNameTheNearest) {
  EXPECT_EQ(refused({"chta"}), "unknown command chta (did you mean 'chat'?)");
  EXPECT_EQ(refused({"bench", "througput"}), "unknown command bench througput (did you mean 'throughput'?)");
}

TEST_F(Arguments, UnknownFlagsNameTheNearest) {
  EXPECT_EQ(refused({"chat", "--max-num-seq", "4"}),
            "unknown flag --max-num-seq (did you mean '--max-num-seqs'?)");
  EXPECT_EQ(refused({"chat", "--zzzzzzzzz"}), "unknown flag --zzzzzzzzz");
}

TEST_F(Arguments, FlagsOfOtherEnginesSayWhatToDoUnlessHarmless) {
  EXPECT_THAT(refused({"chat", "--trust-remote-code"}), HasSubstr("--trust-remote-code has no meaning here"));
  EXPECT_THAT(refused({"chat", "--tensor_parallel_size", "2"}), HasSubstr("one device"));
  EXPECT_THAT(refused({"chat", "--swap-space=4"}), HasSubstr("leave it out"));
  EXPECT_THAT(normal({"chat", "--tensor-parallel-size", "1", "model"}), ElementsAre("chat", "model"));
  EXPECT_THAT(normal({"chat", "--swap-space=0", "model"}), ElementsAre("chat", "model"));
}

}  // namespace
}  // namespace whippet
