// How fast the tokenizers of real checkpoints load, encode and decode. For people, not for ctest:
//   tokenizer_bench FOLDER TEXT_FILE     (FOLDER: a checkpoint; TEXT_FILE: e.g. a megabyte of English)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace {

using whippet::Tokenizer;

// The shortest of several runs, in seconds.
template <class Work>
double shortest(int runs, Work work) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void report_encode(const char* what, const Tokenizer& tokenizer, const std::string& text) {
  size_t num_tokens = 0;
  const double seconds = shortest(5, [&] { num_tokens = tokenizer.encode(text).size(); });
  std::printf("encode %-22s %8.1f MB/s  %9zu tokens  %8.2f ms\n", what,
              static_cast<double>(text.size()) / seconds / 1e6, num_tokens, seconds * 1e3);
}

std::string repeat(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER TEXT_FILE\n", argv[0]);
    return 2;
  }
  std::ifstream file(argv[2]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto tokenizer = Tokenizer::from_folder(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const double load = shortest(5, [&] { tokenizer = Tokenizer::from_folder(argv[1]); });
  std::printf("%s, %d tokens, loaded in %.0f ms\n", tokenizer->kind_name(), tokenizer->vocab_size(),
              load * 1e3);
  report_encode("the text", *tokenizer, text);
  report_encode("short chats of 100 B", *tokenizer, text.substr(0, 100));

  const auto ids = tokenizer->encode(text);
  const double decode = shortest(5, [&] { tokenizer->decode(ids); });
  std::printf("decode the text               %8.1f MB/s\n", static_cast<double>(text.size()) / decode / 1e6);
  const double stream = shortest(5, [&] {
    whippet::StreamDecoder decoder(*tokenizer, true);
    for (const int32_t id : ids) decoder.push(id);
  });
  std::printf("stream                        %8.1f ns a token\n",
              stream / static_cast<double>(ids.size()) * 1e9);

  constexpr size_t kMegabyte = 1'000'000;
  const std::pair<const char*, std::string> hostile[] = {
      {"one letter", repeat("a", kMegabyte)},
      {"spaces", repeat(" ", kMegabyte)},
      {"newlines", repeat("\n", kMegabyte)},
      {"marks in disorder", repeat("\u0301\u0323", kMegabyte)},
      {"hangul parts", repeat("\u1100\u1161", kMegabyte)},
      {"punctuation", repeat("!?", kMegabyte)},
      {"digits", repeat("1234567890", kMegabyte)},
      {"chinese", repeat("\u4f60\u597d\u4e16\u754c", kMegabyte)},
      {"openings of tokens", repeat("<|im_", kMegabyte)},
      {"bytes 0xFF", repeat("\xFF", kMegabyte)}};
  for (const auto& [what, content] : hostile) report_encode(what, *tokenizer, content);
  return 0;
}
