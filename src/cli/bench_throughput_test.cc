// whippet bench throughput, and what bench latency has from the same engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/bench_rates.h"
#include "cli/bench_shape.h"
#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr int kContext = 256;  // tokens of the model

class EngineBench : public testing::Test {
 protected:
  EngineBench() { write_tiny_model(folder_, kContext); }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  CommandResult run(const std::string& what, const std::vector<std::string>& more) {
    std::vector<std::string> args = {"bench", what, folder_.path().string()};
    args.insert(args.end(), more.begin(), more.end());
    return run_whippet(args);
  }
  // Its only line, parsed.
  json report(const std::string& what, std::vector<std::string> more) {
    more.emplace_back("--json");
    const CommandResult result = run(what, more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto lines = result.json_lines();
    return lines.size() == 1 ? lines.front() : json();
  }

  TestFolder folder_;
};

using BenchThroughput = EngineBench;
using BenchLatencyOfAModel = EngineBench;

TEST_F(BenchThroughput, CountsWhatWasAskedAndRatesAreCountsOverTheTime) {
  const json r = report("throughput", {"--num-prompts", "6", "--input-len", "20", "--output-len", "5",
                                       "--max-num-seqs", "2", "--save", file("saved.json")});
  ASSERT_TRUE(r.is_object());
  EXPECT_EQ(r["num_requests"], 6);
  EXPECT_EQ(r["total_input_tokens"], 120);
  EXPECT_EQ(r["total_output_tokens"], 30);
  EXPECT_EQ(r["total_num_tokens"], 150);
  const double seconds = r["elapsed_time"];
  ASSERT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(r["requests_per_second"], 6 / seconds);
  EXPECT_DOUBLE_EQ(r["tokens_per_second"], 150 / seconds);
  EXPECT_DOUBLE_EQ(r["output_tokens_per_second"], 30 / seconds);
  EXPECT_GT(r["mean_batch_size"], 0);
  EXPECT_LT(r["mean_batch_size"], 2.5);  // of two at a time, by clocks that are read one after the other
  EXPECT_GE(r["steps"], 14);             // two tokens each at most; a count may be one behind
  EXPECT_EQ(r["cached_tokens"], 0);
  for (const char* key : {"weight_bytes", "read_gb_per_s", "read_bandwidth_share", "gops", "p50_ttft_ms",
                          "p99_itl_ms", "machine_read_gb_per_s"})
    EXPECT_GT(r[key], 0) << key;
  EXPECT_EQ(json::parse(std::ifstream(file("saved.json"))), r);
}

TEST_F(BenchThroughput, ASeedAsksTheSameEveryTime) {
  const auto inputs = [&](const char* seed) {
    return report("throughput", {"--num-prompts", "20", "--prompt-len", "60", "--random-range-ratio", "0.5",
                                 "--output-len", "2", "--seed", seed})["total_input_tokens"];
  };
  const json first = inputs("3");
  EXPECT_EQ(inputs("3"), first);
  EXPECT_NE(inputs("4"), first);
}

TEST_F(BenchThroughput, AFileSaysPromptsAndLengthsAndBeginsAgain) {
  folder_.write("prompts.jsonl",
                "{\"prompt\": \"abc\", \"max_tokens\": 3}\n"
                "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello there\"}], \"output_len\": 4}\n");
  const json r =
      report("throughput", {"--dataset-path", file("prompts.jsonl"), "--num-prompts", "5", "--ignore-eos"});
  EXPECT_EQ(r["total_output_tokens"], 3 * 3 + 2 * 4);
  EXPECT_GT(r["total_input_tokens"], 3 * 3 + 2 * 11);  // the template adds to the chats

  folder_.write("text", "abcde\n");
  const json text = report("throughput", {"--dataset-path", file("text"), "--num-prompts", "2",
                                          "--output-len", "7", "--ignore-eos"});
  EXPECT_EQ(text["total_input_tokens"], 10);
  EXPECT_EQ(text["total_output_tokens"], 14);
}

TEST_F(BenchThroughput, SaysHowManyTokensThePrefixCacheHad) {
  folder_.write("text", std::string(100, 'x') + "\n");
  std::vector<std::string> args = {"--dataset-path", file("text"), "--num-prompts",  "3",
                                   "--output-len",   "2",          "--max-num-seqs", "1"};
  const json cached = report("throughput", args);
  EXPECT_GE(cached["cached_tokens"], 2 * 80);
  args.emplace_back("--no-enable-prefix-caching");
  EXPECT_EQ(report("throughput", args)["cached_tokens"], 0);
}

TEST_F(BenchThroughput, RefusesWhatItCannotMeasure) {
  folder_.write("text", "short\n" + std::string(300, 'x') + "\n");
  folder_.write("chat.jsonl", "{\"messages\": []}\n");
  folder_.write("empty", "\n");
  struct Case {
    std::vector<std::string> args;
    int exit_code;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--num-prompts", "0"}, 2, "--num-prompts"},
      {{"--random-range-ratio", "nan"}, 2, "--random-range-ratio"},
      {{"--num-prompts", "1000000", "--input-len", "1000"}, 2, "--num-prompts 1000000"},
      {{"--dataset-path", file("none")}, 1, file("none")},
      {{"--dataset-path", ""}, 2, "--dataset-path names no file"},
      {{"--dataset-path", file("empty")}, 1, "no prompt"},
      {{"--dataset-path", file("text"), "--input-len", "7"}, 2, "--input-len is for random prompts"},
      {{"--dataset-path", file("text")}, 1, "line 2: a prompt of 300 tokens"},
      {{"--dataset-path", file("chat.jsonl")}, 1, "line 1: messages"},
      {{"--input-len", "250", "--output-len", "10"}, 1, "make 260, but sequences have up to 256"},
      {{"--input-len", "100", "--max-model-len", "50"}, 1, "raise --max-model-len"},
      {{"--num-promts", "5"}, 2, "--num-prompts"}};
  for (const Case& wrong : cases) {
    const CommandResult result = run("throughput", wrong.args);
    EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.message;
    EXPECT_THAT(result.err, HasSubstr(wrong.message));
    EXPECT_EQ(result.out, "") << wrong.message;
  }
  const CommandResult shape = run_whippet({"bench", "throughput", "shape:qwen2.5-0.5b"});
  EXPECT_EQ(shape.exit_code, 1);
  EXPECT_THAT(shape.err, HasSubstr("whippet bench latency shape:qwen2.5-0.5b"));
}

Arrival piece(size_t request, size_t tokens, double seconds) {
  Arrival arrival;
  arrival.request = request;
  arrival.tokens = tokens;
  arrival.seconds = seconds;
  return arrival;
}

TEST(BenchRates, AddUpThePiecesOfAllAnswers) {
  BenchSubject subject;
  subject.model = "m";
  subject.spec = find_shape("qwen2.5-0.5b").value();
  subject.weight_bytes = 2e9;
  subject.peak_gops = 100;
  ThroughputRun run;
  run.answers.resize(2);
  run.steps = 20;
  run.add(piece(0, 1, 1), subject.spec);
  run.add(piece(1, 1, 2), subject.spec);
  Arrival last = piece(0, 2, 3);
  last.last = true;
  last.usage.prompt_tokens = 10;
  last.timing.queued = 0.5;
  last.timing.finished = 3;
  run.add(last, subject.spec);
  last = piece(1, 0, 4);
  last.last = true;
  last.usage.prompt_tokens = 16;
  last.usage.cached_tokens = 8;
  last.timing.queued = 1.5;
  last.timing.finished = 4;
  run.add(last, subject.spec);
  cpu::MachineSpeed machine;
  machine.read_gb_per_s = 40;
  const auto report = throughput_report(subject, run, machine);
  EXPECT_EQ(report["elapsed_time"], 4);
  EXPECT_EQ(report["total_input_tokens"], 26);
  EXPECT_EQ(report["total_output_tokens"], 4);
  EXPECT_EQ(report["tokens_per_second"], 7.5);
  EXPECT_EQ(report["cached_tokens"], 8);
  EXPECT_EQ(report["mean_batch_size"], 1.25);  // (2.5 + 2.5) / 4
  EXPECT_EQ(report["step_ms"], 200);
  EXPECT_EQ(report["read_bandwidth_share"], 0.25);
  EXPECT_EQ(report["mean_ttft_ms"], 1500);
  EXPECT_EQ(report["mean_itl_ms"], 2000);
  const double operations =
      request_operations(subject.spec, 0, 10, 3) + request_operations(subject.spec, 8, 16, 1);
  EXPECT_DOUBLE_EQ(report["gops"], operations / 4e9);
  EXPECT_DOUBLE_EQ(report["peak_share"], operations / 4e11);
  const std::string table = throughput_table(report);
  EXPECT_THAT(table, HasSubstr("25 % of the 40.0 GB/s"));
  EXPECT_THAT(table, HasSubstr("26 of prompts, 8 of them in the prefix cache"));
  EXPECT_THAT(throughput_table(throughput_report(subject, run, {})), Not(HasSubstr("%")));
}

TEST(BenchRates, ARequestComputesItsPromptOnceAndEveryTokenButTheLast) {
  const ModelSpec spec = find_shape("qwen2.5-0.5b").value();
  EXPECT_DOUBLE_EQ(request_operations(spec, 0, 100, 1), prompt_operations(spec, 100));
  const double head = 2.0 * spec.hidden_size * spec.vocab_size;
  EXPECT_DOUBLE_EQ(request_operations(spec, 0, 100, 3), prompt_operations(spec, 102) + 2 * head);
  EXPECT_DOUBLE_EQ(request_operations(spec, 60, 100, 1),
                   prompt_operations(spec, 100) - prompt_operations(spec, 60) + head);
}

TEST_F(BenchLatencyOfAModel, MeasuresEveryCombinationAndItsShares) {
  const CommandResult result = run("latency", {"--input-len", "4,8", "--batch-size", "1,3", "--output-len",
                                               "4", "--num-iters", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1]["batch"], 3);
  EXPECT_EQ(lines[2]["prompt_len"], 8);
  for (const json& line : lines) {
    EXPECT_GT(line["decode_tokens_per_s"], 0);
    EXPECT_GT(line["decode_peak_share"], 0);
  }
}

TEST_F(BenchLatencyOfAModel, RefusesALengthBeyondTheContextBeforeItMeasuresAny) {
  const CommandResult result = run("latency", {"--prompt-len", "8,300", "--output-len", "4"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--prompt-len 300 --output-len 4"));
  EXPECT_THAT(result.err, HasSubstr("the model's context has 256"));
  EXPECT_EQ(result.out, "");
  const CommandResult shape =
      run_whippet({"bench", "latency", "shape:smollm2-135m", "--prompt-len", "40000"});
  EXPECT_EQ(shape.exit_code, 1);
  EXPECT_THAT(shape.err, HasSubstr("the context of a shape has 32768 tokens"));
}

TEST_F(BenchLatencyOfAModel, SaysWhereABatchDoesNotRunAtOnce) {
  const std::vector<std::string> args = {"--prompt-len", "100", "--output-len", "20", "--repeat", "1"};
  const auto warnings = [&](std::vector<std::string> more) {
    more.insert(more.end(), args.begin(), args.end());
    const CommandResult result = run("latency", more);
    EXPECT_EQ(result.exit_code, 0);
    return result.err;
  };
  EXPECT_THAT(warnings({"--batch", "8", "--kv-cache-memory", "64KiB"}),
              HasSubstr("1024 tokens of KV cache are needed"));
  EXPECT_THAT(warnings({"--batch", "3", "--max-num-seqs", "2"}), HasSubstr("only 2 run at a time"));
  EXPECT_EQ(warnings({"--batch", "3"}), "");
}

}  // namespace
}  // namespace whippet
