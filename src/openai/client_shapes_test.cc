// Bodies as clients send them: recorded from the openai and langchain-openai packages, written after what
// Open WebUI, LibreChat and curl users send. The files are the fuzzer's seeds too: a digit for the route,
// then the body.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ClientShapes : public CodecTest {
 protected:
  std::unique_ptr<Exchange> read(const std::string& name) {
    const auto path = std::filesystem::path(WHIPPET_SOURCE_DIR) / "tests/fuzz_seeds/openai_request" / name;
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_FALSE(text.empty()) << path;
    const bool chat = text.front() == '0' || text.front() == '4';
    context_.strict_fields = text.front() == '4';
    auto exchange = parsed(chat ? parse_chat(context_, text.substr(1), "id")
                                : parse_completion(context_, text.substr(1), "id"));
    EXPECT_NE(exchange, nullptr) << name << ": " << shown_error();
    return exchange;
  }
};

TEST_F(ClientShapes, EveryRecordedBodyIsTaken) {
  for (const char* name : {"openai_chat", "openai_stream", "openai_completion", "openai_tools",
                           "langchain_chat", "langchain_stream", "langchain_tools", "langchain_completion",
                           "open_webui_title", "librechat", "curl", "vllm_extras", "chat_extras", "strict",
                           "openai_tool_choice", "langchain_bind_tools", "thinking_extras"}) {
    const auto exchange = read(name);
    ASSERT_NE(exchange, nullptr);
    EXPECT_THAT(exchange->ignored_fields(), IsEmpty()) << name;
  }
}

TEST_F(ClientShapes, TheOfficialClientsStream) {
  const auto exchange = read("openai_stream");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(exchange->stream());
  const SamplingParams& params = exchange->requests().front().params;
  EXPECT_EQ(params.max_tokens, 32);
  EXPECT_EQ(params.n, 2);
  EXPECT_EQ(params.seed, 7u);
  EXPECT_EQ(params.logprobs, 2);
  EXPECT_EQ(params.temperature, 0);
  EXPECT_EQ(params.top_k, 5);
  EXPECT_THAT(params.stop, ElementsAre("\n\n"));
}

TEST_F(ClientShapes, ToolsAndTheirResultsReachTheTemplate) {
  const auto exchange = read("openai_tools");
  ASSERT_NE(exchange, nullptr);
  EXPECT_THAT(prompt_of(exchange.get()),
              testing::AllOf(testing::HasSubstr("get_weather"),
                             testing::HasSubstr("<call>{\"city\": \"Paris\"}</call>"),
                             testing::HasSubstr("<|im_start|>tool\nsunny")));
}

TEST_F(ClientShapes, ForeignSamplingFieldsAreReported) {
  const auto exchange = read("open_webui_chat");
  ASSERT_NE(exchange, nullptr);
  EXPECT_THAT(exchange->ignored_fields(), ElementsAre("repeat_penalty"));
  EXPECT_THAT(prompt_of(exchange.get()), testing::HasSubstr("<|im_start|>user\nHi<|im_end|>"));
}

}  // namespace
}  // namespace whippet::openai
