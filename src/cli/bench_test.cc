// The parts of `whippet bench serve` that need no server: events, answers, figures, prompts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "cli/bench_answer.h"
#include "cli/bench_figures.h"
#include "cli/bench_prompts.h"
#include "cli/bench_report.h"
#include "cli/bench_shape.h"
#include "cli/bench_sse.h"
#include "cli/bench_steps.h"
#include "cli/testing.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> events_of(SseReader& reader, const std::vector<std::string>& pieces) {
  std::vector<std::string> events;
  for (const std::string& piece : pieces)
    EXPECT_TRUE(reader.feed(piece, [&](std::string_view data) { events.emplace_back(data); }).ok());
  return events;
}

TEST(BenchSse, ReadsTheSameEventsHoweverTheStreamIsCut) {
  const std::string stream =
      "\xEF\xBB\xBF"
      "data: one\n\n: still here\n\ndata:two\r\n\r\nevent: x\nid: 7\ndata: a\ndata: b\r\rdata\n\n"
      "retry: 3\n\ndata:  \xE5\x8C\x97\xE4\xBA\xAC\n\ndata: [DONE]\n\ndata: never ended\n";
  const auto expected = ElementsAre("one", "two", "a\nb", "", " \xE5\x8C\x97\xE4\xBA\xAC", "[DONE]");
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    SseReader reader;
    EXPECT_THAT(events_of(reader, {stream.substr(0, cut), stream.substr(cut)}), expected) << "cut at " << cut;
  }
  std::vector<std::string> bytes;
  for (const char byte : stream) bytes.emplace_back(1, byte);
  SseReader reader;
  EXPECT_THAT(events_of(reader, bytes), expected);
}

TEST(BenchSse, RefusesAnEventWithoutEnd) {
  SseReader reader;
  const std::string piece(size_t{1} << 20, 'x');
  Status status;
  for (int i = 0; i < 32 && status.ok(); ++i) status = reader.feed(piece, [](std::string_view) {});
  EXPECT_FALSE(status.ok());
}

const std::string kText = R"(data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]})"
                          "\n\n";
const std::string kDone = "data: [DONE]\n\n";

TEST(BenchAnswer, TimesThePiecesAndTakesTheServersCounts) {
  BenchAnswerReader reader;
  reader.take(200,
              R"(data: {"choices":[{"delta":{"role":"assistant","content":""}}]})"
              "\n\n",
              0.5);
  reader.take(200, kText, 1);
  reader.take(200, kText.substr(0, 9), 1.25);
  reader.take(200, kText.substr(9), 1.5);
  reader.take(200, kText + kText, 3);
  reader.take(200,
              R"(data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}})"
              "\n\n",
              3.5);
  reader.take(200, kDone, 3.5);
  const BenchAnswer answer = reader.finish(200, 4);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.first_token, 1);
  EXPECT_EQ(answer.last_token, 3);
  EXPECT_EQ(answer.end, 4);
  EXPECT_THAT(answer.gaps, ElementsAre(0.5, 1.5, 0));
  EXPECT_EQ(answer.prompt_tokens, 7);
  EXPECT_EQ(answer.output_tokens, 9);
}

TEST(BenchAnswer, CountsPiecesWhereTheServerCountsNothing) {
  BenchAnswerReader reader;
  reader.take(200,
              R"(data: {"choices":[{"text":"a"}]})"
              "\n\n" +
                  kText + kDone,
              1);
  EXPECT_EQ(reader.finish(200, 2).output_tokens, 2);
}

TEST(BenchAnswer, NamesWhatWentWrong) {
  const auto error_of = [](int status, const std::string& bytes, std::string error = "") {
    BenchAnswerReader reader;
    reader.take(status, bytes, 1);
    const BenchAnswer answer = reader.finish(status, 2, std::move(error));
    return answer.error + (answer.detail.empty() ? "" : ": " + answer.detail);
  };
  EXPECT_EQ(error_of(429, R"({"error":{"message":"too many"}})"), "HTTP 429: too many");
  EXPECT_EQ(error_of(502, "<html>"), "HTTP 502: <html>");
  EXPECT_EQ(error_of(200, R"(data: {"error":{"message":"late"}})"
                          "\n\n" +
                              kText + kDone),
            "error in the stream: late");
  EXPECT_THAT(error_of(200, kText), HasSubstr("answer cut off"));
  EXPECT_THAT(error_of(200, "data: {]\n\n" + kDone), HasSubstr("malformed answer"));
  EXPECT_EQ(error_of(200, kDone), "empty answer");
  EXPECT_EQ(error_of(0, "", "timeout"), "timeout");
  for (const char* odd :
       {"null", "7", "[]", R"({"choices":7})", R"({"choices":[7]})", R"({"usage":{"prompt_tokens":1e99}})"})
    EXPECT_EQ(error_of(200, std::string("data: ") + odd + "\n\n" + kText + kDone), "") << odd;
}

TEST(BenchReport, PercentilesLieOnTheLineBetweenTwoValues) {
  std::vector<double> none, one = {3}, values = {4, 1, 3, 2};
  EXPECT_EQ(percentile(none, 0.5), 0);
  EXPECT_EQ(percentile(one, 0.99), 3);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 4);
}

TEST(BenchReport, AddsUpCompleteAnswersAndCountsErrorsByKind) {
  BenchAnswer quick{.first_token = 0.1,
                    .last_token = 0.5,
                    .end = 0.6,
                    .gaps = {0.1, 0.3},
                    .prompt_tokens = 10,
                    .output_tokens = 5,
                    .error = "",
                    .detail = ""};
  BenchAnswer slow{.first_token = 0.3,
                   .last_token = 0.3,
                   .end = 1.0,
                   .gaps = {},
                   .prompt_tokens = 20,
                   .output_tokens = 1,
                   .error = "",
                   .detail = ""};
  BenchAnswer refused;
  refused.error = "HTTP 429";
  const nlohmann::ordered_json report = bench_report({quick, refused, slow, refused}, 2);
  EXPECT_EQ(report["completed"], 2);
  EXPECT_EQ(report["failed"], 2);
  EXPECT_EQ(report["errors"], (nlohmann::ordered_json{{"HTTP 429", 2}}));
  EXPECT_EQ(report["request_throughput"], 1);
  EXPECT_EQ(report["output_throughput"], 3);
  EXPECT_EQ(report["total_token_throughput"], 18);
  EXPECT_DOUBLE_EQ(report["mean_ttft_ms"], 200);
  EXPECT_DOUBLE_EQ(report["mean_tpot_ms"], 100);  // of the one answer that has several tokens
  EXPECT_DOUBLE_EQ(report["p50_itl_ms"], 200);
  EXPECT_DOUBLE_EQ(report["p90_e2el_ms"], 960);
  const std::string table = bench_table(report);
  for (const char* part : {"2 answers in 2.00 s, 2 failed", "HTTP 429", "time to first token", "960.00"})
    EXPECT_THAT(table, HasSubstr(part));
}

TEST(BenchReport, OfNoAnswersIsAllZero) {
  const nlohmann::ordered_json report = bench_report({}, 0);
  EXPECT_EQ(report["p99_e2el_ms"], 0);
  EXPECT_EQ(report["output_throughput"], 0);
}

TEST(BenchPrompts, ComeFromLinesOfTextAndOfJsonAgainFromTheFirst) {
  const TestFolder folder;
  const std::string path = folder.path() / "prompts";
  std::ofstream(path)
      << "plain text\n\n{\"prompt\":\"asked\",\"max_tokens\":9}\n"
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}\n{\"turns\":[\"one\",\"two\"]}\n";
  const auto prompts = read_bench_prompts(path, 6);
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_EQ(prompts->size(), 6u);
  EXPECT_EQ((*prompts)[0].text, "plain text");
  EXPECT_EQ((*prompts)[1].text, "asked");
  EXPECT_EQ((*prompts)[1].output_len, 9);
  EXPECT_EQ((*prompts)[2].messages.front()["content"], "Hi");
  EXPECT_EQ((*prompts)[3].text, "one");
  EXPECT_EQ((*prompts)[5].text, "asked");
  EXPECT_EQ(read_bench_prompts(path, 2)->size(), 2u);

  std::ofstream(path) << "fine\n{\"other\":1}\n";
  EXPECT_THAT(read_bench_prompts(path, 2).error().message, HasSubstr("line 2"));
  std::ofstream(path) << "\n";
  EXPECT_THAT(read_bench_prompts(path, 2).error().message, HasSubstr("no prompt"));
}

TEST(BenchPrompts, AtRandomAreTheSeedsAndOfTheLengthsAskedFor) {
  const auto words = [](const BenchPrompt& prompt) {
    return 1 + std::count(prompt.text.begin(), prompt.text.end(), ' ');
  };
  std::mt19937_64 random(1), same(1), other(2);
  const auto prompts = random_bench_prompts(50, 20, 0.5, random);
  EXPECT_EQ(prompts.back().text, random_bench_prompts(50, 20, 0.5, same).back().text);
  EXPECT_NE(prompts.back().text, random_bench_prompts(50, 20, 0.5, other).back().text);
  for (const BenchPrompt& prompt : prompts) EXPECT_TRUE(words(prompt) >= 10 && words(prompt) <= 30);
  EXPECT_EQ(words(random_bench_prompts(1, 20, 0, random).front()), 20);
}

TEST(BenchServe, RefusesWhatCannotBeMeasured) {
  EXPECT_EQ(run_whippet({"bench", "serve", "--request-rate", "nan"}).exit_code, 2);
  EXPECT_EQ(run_whippet({"bench", "serve", "--num-prompts", "0"}).exit_code, 2);
  const CommandResult nobody =
      run_whippet({"bench", "serve", "--base-url", "http://127.0.0.1:9", "--model", "m"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("no connection"));
}

TEST(BenchLatency, ReadsListsOfCounts) {
  EXPECT_THAT(parse_counts("--batch", "1,16,4", 64).value(), ElementsAre(1, 16, 4));
  for (const char* wrong : {"", "0", "65", "1,", ",1", "1;2", "4x", "-1"})
    EXPECT_THAT(parse_counts("--batch", wrong, 64).error().message, HasSubstr("--batch")) << wrong;
  EXPECT_EQ(combine({1, 2}, {3}, {4, 5, 6}).size(), 6u);
}

TEST(BenchLatency, KnowsItsShapesAndTheirForms) {
  EXPECT_EQ(find_shape("qwen2.5-0.5b").value().q_size(), 896);
  EXPECT_THAT(find_shape("gpt-5").error().message, HasSubstr("internlm2-1.8b"));
  EXPECT_EQ(parse_shape_form("auto", "int4", 64, false).value().group, 64);
  EXPECT_EQ(parse_shape_form("auto", "int8", 32, false).value().codes, CanonicalLinear::Codes::kI8);
  EXPECT_EQ(parse_shape_form("float16", "none", 128, false).value().codes, CanonicalLinear::Codes::kF16);
  EXPECT_FALSE(parse_shape_form("auto", "awq", 128, false).ok());
}

TEST(BenchLatency, StepsThroughAShapeInAnyForm) {
  ModelSpec spec = find_shape("smollm2-135m").value();
  spec.vocab_size = 300;
  spec.num_layers = 2;
  const auto backend = make_backend("cpu", {}).value();
  for (const char* form : {"", "int8", "int4"}) {
    const ShapeForm kept = parse_shape_form("auto", form, 64, true).value();
    const Model model = make_shape(spec, kept, kept, *backend).value();
    StepBench bench(model, *backend, {.prompt_len = 20, .output_len = 5, .batch = 3}, DType::kBF16);
    const PromptTimes prompts = bench.prompts();
    EXPECT_GT(prompts.first, 0) << form;
    EXPECT_GE(prompts.all, prompts.first) << form;
    EXPECT_EQ(bench.answers().size(), 4u) << form;
  }
}

TEST(BenchLatency, ReportsMediansAndShares) {
  BenchSubject subject;
  subject.spec = find_shape("qwen2.5-0.5b").value();
  subject.weight_bytes = 2e9;
  subject.peak_gops = 100;
  cpu::MachineSpeed machine;
  machine.read_gb_per_s = 40;
  const auto report = latency_report(subject, {.prompt_len = 100, .output_len = 9, .batch = 4},
                                     {{1, 2, 40}, {3, 4, 20}, {0.5, 8, 60}}, machine);
  EXPECT_EQ(report["prefill_tokens_per_s"], 100);
  EXPECT_EQ(report["decode_tokens_per_s"], 40);
  EXPECT_EQ(report["ttft_ms"], 1000);
  EXPECT_EQ(report["step_ms"], 100);
  EXPECT_DOUBLE_EQ(report["read_bandwidth_share"].get<double>(), 0.5);
  // 2 * 494 M operations for each of 40 tokens a second.
  EXPECT_NEAR(report["decode_gops"].get<double>(), 39.5, 0.1);
  EXPECT_NEAR(report["decode_peak_share"].get<double>(), 0.395, 0.001);
  EXPECT_THAT(latency_table(report), HasSubstr("50 % of the 40.0 GB/s"));
}

}  // namespace
}  // namespace whippet
