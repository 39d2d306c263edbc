#include "cli/bench_serve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/log.h"
#include "cli/bench_flags.h"
#include "cli/bench_load.h"
#include "cli/bench_prompts.h"
#include "cli/bench_report.h"
#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Put load on a server of OpenAI's API (this one, vLLM, llama-server, ...) and measure it as its clients see
it: time to the first token (TTFT), time per output token (TPOT), time between two pieces of text (ITL), time
of the whole answer (E2E), requests and tokens per second, errors by kind. Answers are streamed.

Without --request-rate every request is due at once, and --max-concurrency says how many are sent at a time;
with it they come as a Poisson process. Without --dataset-path the prompts are random short words, about a
token each, and answers go on to --output-len where the server knows ignore_eos. One request is sent before
all others to find out what the server knows.

--json prints one object instead of the table, --save writes it to a file.

Examples:
  whippet bench serve --num-prompts 200 --max-concurrency 32
  whippet bench serve --base-url http://host:8000 --endpoint completions --request-rate 20 --json
  whippet bench serve --dataset-path prompts.jsonl --output-len 200 --save result.json)";

struct Asked {
  std::string base_url = "http://127.0.0.1:8000";
  std::string model;  // empty: the first that the server has
  std::string endpoint = "chat";
  std::string api_key, path, save;
  int32_t num_prompts = 100, num_warmups = 0, max_concurrency = 0, input_len = 128, output_len = 0;
  int64_t seed = 0;
  double request_rate = std::numeric_limits<double>::infinity();  // requests a second
  double spread = 0, temperature = 0, timeout_s = 600;
  bool ignore_eos = true, json = false;

  bool chat() const { return endpoint == "chat"; }
  const char* route() const { return chat() ? "/chat/completions" : "/completions"; }
};

constexpr int32_t kUsualOutput = 128;  // tokens, where neither the file nor a flag says

std::string body_of(const Asked& asked, const BenchPrompt& prompt, int32_t max_tokens) {
  ordered_json body = {{"model", asked.model}};
  if (!asked.chat()) {
    body["prompt"] = prompt.text;
  } else if (!prompt.messages.is_null()) {
    body["messages"] = prompt.messages;
  } else {
    body["messages"] = ordered_json::array({{{"role", "user"}, {"content", prompt.text}}});
  }
  body["max_tokens"] = max_tokens;
  body["temperature"] = asked.temperature;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (asked.ignore_eos) body["ignore_eos"] = true;
  return json_text(body);
}

Result<std::vector<BenchPrompt>> make_prompts(const Asked& asked, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(asked.num_prompts);
  if (asked.path.empty()) return random_bench_prompts(count, asked.input_len, asked.spread, random);
  WH_ASSIGN(std::vector<BenchPrompt> prompts, read_bench_prompts(asked.path, count));
  const auto has_chat = [](const BenchPrompt& prompt) { return prompt.text.empty(); };
  if (!asked.chat() && std::any_of(prompts.begin(), prompts.end(), has_chat))
    return make_error(Code::kInvalidArgument, "{} has \"messages\": use --endpoint chat", asked.path);
  return prompts;
}

std::vector<double> start_times(size_t count, double rate, std::mt19937_64& random) {
  std::vector<double> starts(count, 0);
  if (std::isinf(rate)) return starts;
  std::exponential_distribution<double> pause(rate);
  for (size_t i = 1; i < count; ++i) starts[i] = starts[i - 1] + pause(random);
  return starts;
}

Result<std::string> first_model(const LoadTarget& target) {
  WH_ASSIGN(const std::string text, fetch_text(target));
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (list.is_object() && list.contains("data") && list["data"].is_array() && !list["data"].empty()) {
    const auto& card = list["data"].front();
    if (card.is_object() && card.contains("id") && card["id"].is_string())
      return card["id"].get<std::string>();
  }
  return make_error(Code::kUnavailable, "{} lists no model: name one with --model", target.url);
}

// One short request: whether the server answers at all, and whether it knows ignore_eos.
Status probe(const LoadTarget& target, const BenchPrompt& prompt, Asked& asked) {
  const auto ask = [&] {
    return std::move(
        run_load(target, {.bodies = {body_of(asked, prompt, 1)}, .starts = {0}}).answers.front());
  };
  BenchAnswer answer = ask();
  if (asked.ignore_eos && answer.error.starts_with("HTTP 4")) {
    asked.ignore_eos = false;
    const BenchAnswer again = ask();
    if (!again.error.starts_with("HTTP 4"))
      log_warning("the server does not know ignore_eos: answers may end before --output-len");
    answer = again;
  }
  // A first token that writes nothing is an answer.
  if (answer.error.empty() || answer.error == "empty answer") return {};
  return make_error(Code::kUnavailable, "{}: {}{}{}", target.url, answer.error,
                    answer.detail.empty() ? "" : ": ", answer.detail);
}

ordered_json describe(const Asked& asked, const LoadTarget& target) {
  ordered_json rate = "inf";
  if (!std::isinf(asked.request_rate)) rate = asked.request_rate;
  return {
      {"url", target.url},
      {"model_id", asked.model},
      {"num_prompts", asked.num_prompts},
      {"request_rate", rate},
      {"max_concurrency", asked.max_concurrency > 0 ? ordered_json(asked.max_concurrency) : ordered_json()},
      {"dataset", asked.path.empty() ? "random" : asked.path},
      {"ignore_eos", asked.ignore_eos},
      {"temperature", asked.temperature},
      {"seed", asked.seed}};
}

Result<int> run(Asked asked) {
  while (asked.base_url.ends_with('/')) asked.base_url.pop_back();
  const std::string root = asked.base_url + (asked.base_url.ends_with("/v1") ? "" : "/v1");
  const LoadTarget target{
      .url = root + asked.route(), .api_key = asked.api_key, .timeout_s = asked.timeout_s};
  std::mt19937_64 random(static_cast<uint64_t>(asked.seed));
  WH_ASSIGN(const std::vector<BenchPrompt> prompts, make_prompts(asked, random));
  if (asked.model.empty()) {
    WH_ASSIGN(asked.model, first_model({.url = root + "/models", .api_key = asked.api_key}));
  }
  WH_TRY(probe(target, prompts.front(), asked));
  LoadPlan plan{.bodies = {}, .starts = {}, .max_concurrency = asked.max_concurrency};
  for (const BenchPrompt& prompt : prompts) {
    const int32_t asked_len = asked.output_len > 0 ? asked.output_len : prompt.output_len;
    plan.bodies.push_back(body_of(asked, prompt, asked_len > 0 ? asked_len : kUsualOutput));
  }
  LoadPlan warm_up = plan;
  warm_up.bodies.resize(std::min(plan.bodies.size(), static_cast<size_t>(asked.num_warmups)));
  warm_up.starts.resize(warm_up.bodies.size());
  run_load(target, warm_up);
  plan.starts = start_times(plan.bodies.size(), asked.request_rate, random);
  const LoadResult result = run_load(target, plan);
  ordered_json report = describe(asked, target);
  report.update(bench_report(result.answers, result.seconds));
  for (const BenchAnswer& answer : result.answers)
    if (!answer.detail.empty()) log_debug("{}: {}", answer.error, answer.detail);
  if (!asked.save.empty()) WH_TRY(save_report(asked.save, report));
  WH_TRY(write_output(asked.json
                          ? json_text(report) + "\n"
                          : fmt::format("{} at {}\n{}", asked.model, target.url, bench_table(report))));
  return report["completed"] > 0 ? kExitOk : kExitFailed;
}

using Reader = std::function<void(Asked&)>;

// Requests a second; "inf": all at once.
CLI::Validator rate() {
  const CLI::Validator finite = within(1e-6, 1e9);
  return {[finite](const std::string& text) { return text == "inf" ? std::string() : finite(text); }, ""};
}

// A flag whose value, where it is given, goes into the member; shown: its default in the help.
template <class T>
Reader add_member(CLI::App& app, const char* names, const char* label, T Asked::*member,
                  const std::string& help, const CLI::Validator& valid = CLI::Validator()) {
  const CLI::Option* option = add_value(app, names, label, help)->check(valid);
  return [option, member](Asked& asked) {
    if (option->count() > 0) asked.*member = option->as<T>();
  };
}

std::vector<Reader> add_flags(CLI::App& app) {
  const CLI::Validator number = CLI::Range(1, 1 << 24).description("");
  const CLI::Validator none_or_more = CLI::Range(0, 1 << 24).description("");
  return {
      add_member(app, "--base-url", "URL", &Asked::base_url, "the server; default: http://127.0.0.1:8000"),
      add_member(app, "--model", "NAME", &Asked::model, "default: the first that the server lists"),
      add_member(app, "--endpoint", "NAME", &Asked::endpoint, "chat or completions; default: chat",
                 CLI::IsMember({"chat", "completions"}).description("")),
      add_member(app, "--api-key", "KEY", &Asked::api_key, "default: WHIPPET_API_KEY of the environment"),
      add_member(app, "--dataset-path,--prompts", "FILE", &Asked::path,
                 "prompts: a text or a JSON object a line (prompt, messages, question, turns)"),
      add_member(app, "--num-prompts", "N", &Asked::num_prompts, "requests; default: 100", number),
      add_member(app, "--num-warmups", "N", &Asked::num_warmups, "requests before, not counted; default: 0",
                 none_or_more),
      add_member(app, "--request-rate", "X", &Asked::request_rate, "requests a second, or inf; default: inf",
                 rate()),
      add_member(app, "--max-concurrency,--concurrency", "N", &Asked::max_concurrency,
                 "most requests at a time; default: no limit", number),
      add_member(app, "--random-input-len", "N", &Asked::input_len, "words of a random prompt; default: 128",
                 number),
      add_member(app, "--random-range-ratio", "X", &Asked::spread,
                 "their numbers are within this share of it, 0 to 1; default: 0", within(0, 1)),
      add_member(app, "--output-len,--random-output-len", "N", &Asked::output_len,
                 "tokens of an answer; default: what the file says, else 128", number),
      add_member(app, "--temperature", "X", &Asked::temperature, "default: 0", within(0, 100)),
      add_member(app, "--seed", "N", &Asked::seed, "of random prompts and times; default: 0"),
      add_member(app, "--timeout", "SECONDS", &Asked::timeout_s, "for one answer; default: 600",
                 within(0.001, 1e6)),
      add_member(app, "--save,--result-filename", "FILE", &Asked::save, "write the JSON object there")};
}

}  // namespace

Run setup_bench_serve(CLI::App& app, const Context& context) {
  app.description(std::string(kHelp) + "\n");
  const std::vector<Reader> readers = add_flags(app);
  const CLI::Option* ignore_eos = add_switch(app, "--ignore-eos,!--no-ignore-eos",
                                             "answers go on to their length; default: with random prompts");
  const CLI::Option* json = add_switch(app, "--json", "one JSON object");
  return [readers, ignore_eos, json, &context] {
    Asked asked;
    const auto key = context.variables.find("WHIPPET_API_KEY");
    if (key != context.variables.end()) asked.api_key = key->second.substr(0, key->second.find(','));
    for (const Reader& read : readers) read(asked);
    asked.ignore_eos = ignore_eos->count() > 0 ? ignore_eos->as<bool>() : asked.path.empty();
    asked.json = json->count() > 0;
    const Result<int> done = run(std::move(asked));
    return done.ok() ? *done : report_failure(context, done.error());
  };
}

}  // namespace whippet
