#include "cli/bench_prompts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/lines.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr int32_t kMostTokens = 1 << 24;
constexpr const char* kWords[] = {
    "the",   "a",    "house", "water", "long", "day",  "people", "word", "light", "time",  "great", "hand",
    "tree",  "book", "road",  "sun",   "city", "door", "river",  "song", "year",  "small", "world", "place",
    "night", "work", "food",  "line",  "car",  "sea",  "story",  "air",  "fire",  "plan",  "level", "power"};

// What a line's object asks, in `prompt`; an empty one where it has none of the fields.
Result<BenchPrompt> read_object(const ordered_json& object) {
  BenchPrompt prompt;
  for (const char* key : {"prompt", "question"})
    if (prompt.text.empty() && object.contains(key) && object[key].is_string()) prompt.text = object[key];
  if (object.contains("turns") && object["turns"].is_array() && !object["turns"].empty() &&
      object["turns"].front().is_string())
    prompt.text = object["turns"].front();
  if (object.contains("messages") && object["messages"].is_array()) prompt.messages = object["messages"];
  if (prompt.text.empty() && prompt.messages.is_null())
    return make_error(Code::kInvalidArgument,
                      "expected \"prompt\", \"messages\", \"question\" or \"turns\" in the object");
  for (const char* key : {"max_tokens", "output_len"}) {
    if (!object.contains(key)) continue;
    const ordered_json& value = object[key];
    if (!value.is_number_integer() || value < 1 || value > kMostTokens)
      return make_error(Code::kInvalidArgument, "{}: expected a number of tokens, found {}", key,
                        value.dump());
    prompt.output_len = value.get<int32_t>();
  }
  return prompt;
}

Result<BenchPrompt> read_line(const std::string& line) {
  if (!line.starts_with('{')) return BenchPrompt{.text = line, .messages = {}};
  WH_ASSIGN(const ordered_json object, parse_object(line));
  return read_object(object);
}

}  // namespace

Result<std::vector<BenchPrompt>> read_bench_prompts(const std::string& path, size_t count) {
  WH_ASSIGN(LineReader lines, LineReader::open(path));
  std::vector<BenchPrompt> prompts;
  std::string line;
  while (prompts.size() < count && lines.next(line)) {
    Result<BenchPrompt> prompt = read_line(line);
    if (!prompt.ok())
      return make_error(prompt.error().code, "{}, line {}: {}", path, lines.number(), prompt.error().message);
    prompt->line = lines.number();
    prompts.push_back(*std::move(prompt));
  }
  WH_TRY(lines.status());
  if (prompts.empty()) return make_error(Code::kInvalidArgument, "{}: there is no prompt in it", path);
  const size_t found = prompts.size();
  prompts.reserve(count);
  while (prompts.size() < count) prompts.push_back(prompts[prompts.size() % found]);
  return prompts;
}

std::uniform_int_distribution<int64_t> lengths_around(int32_t length, double spread) {
  const auto bound = [&](double factor) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(length) * factor));
  };
  return std::uniform_int_distribution<int64_t>(bound(1 - spread), bound(1 + spread));
}

std::vector<BenchPrompt> random_bench_prompts(size_t count, int32_t length, double spread,
                                              std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> words = lengths_around(length, spread);
  std::uniform_int_distribution<size_t> word(0, std::size(kWords) - 1);
  std::vector<BenchPrompt> prompts(count);
  for (BenchPrompt& prompt : prompts) {
    for (int64_t left = words(random); left > 0; --left) {
      if (!prompt.text.empty()) prompt.text += ' ';
      prompt.text += kWords[word(random)];
    }
  }
  return prompts;
}

}  // namespace whippet
