// The tokenizers of real checkpoints against ids that other implementations computed. Skipped without
// ../shared.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "text/sentencepiece_bpe.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path& data_folder() {
  static const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data";
  return folder;
}

std::vector<json> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(json::parse(line));
  }
  return lines;
}

// A folder of its own with some of a checkpoint's files, removed at the end.
class PartialFolder {
 public:
  explicit PartialFolder(const std::string& name) : path_(fs::path(testing::TempDir()) / name) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~PartialFolder() { fs::remove_all(path_); }
  void take(const fs::path& file, const std::string& name) {
    fs::create_symlink(fs::absolute(file), path_ / name);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Tokenizer load(const fs::path& folder) {
  auto tokenizer = Tokenizer::from_folder(folder);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

class RealTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = data_folder() / GetParam();
    if (!fs::exists(folder_)) GTEST_SKIP() << folder_ << " is absent";
  }
  fs::path folder_;
};

TEST_P(RealTokenizer, GivesTheGoldenIds) {
  const Tokenizer tokenizer = load(folder_);
  const auto lines = read_lines(folder_ / "golden_encode.jsonl");
  ASSERT_GE(lines.size(), 100u);
  for (const json& line : lines) {
    const auto text = line["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), line["ids"].get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(RealTokenizer, DecodesTheGoldenIds) {
  const Tokenizer tokenizer = load(folder_);
  for (const json& line : read_lines(folder_ / "golden_encode.jsonl")) {
    auto text = line["text"].get<std::string>();
    if (folder_.filename().string().starts_with("qwen")) text = to_nfc(text);
    EXPECT_EQ(tokenizer.decode(line["ids"].get<std::vector<int32_t>>()), text);
  }
}

// Marks the contents of a chat's messages, as the template's renderer does.
MarkedText mark_messages(const std::string& text, const json& messages) {
  MarkedText marked{text, {}};
  size_t at = 0;
  for (const json& message : messages) {
    const auto content = message["content"].get<std::string>();
    const size_t begin = text.find(content, at);
    if (content.empty() || begin == std::string::npos) continue;
    at = begin + content.size();
    marked.user_spans.push_back({begin, at});
  }
  return marked;
}

TEST_P(RealTokenizer, KeepsControlTokensThatUsersSpellAsText) {
  const Tokenizer tokenizer = load(folder_);
  int num_spelled = 0;
  for (const json& line : read_lines(folder_ / "golden_chat.jsonl")) {
    const auto text = line["text"].get<std::string>();
    const auto ids = line["ids"].get<std::vector<int32_t>>();
    const bool spelled = line.value("user_spells_control_token", false);
    EXPECT_EQ(tokenizer.encode(mark_messages(text, line["messages"])), ids) << text;
    EXPECT_EQ(tokenizer.encode(text) == ids, !spelled) << text;
    num_spelled += spelled;
  }
  EXPECT_GE(num_spelled, 1);
}

// Valid UTF-8 of every kind: all planes, marks, spaces, spellings of tokens.
std::string random_text(std::mt19937& random, const Tokenizer& tokenizer) {
  const auto below = [&](uint32_t n) { return static_cast<char32_t>(random() % n); };
  constexpr char32_t kSpaces[] = {' ',  ' ',  '\n',   '\r',   '\t',   0x0B,
                                  0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x3000};
  std::string text;
  const auto add = [&](char32_t code) {
    append_utf8(text, code >= 0xD800 && code < 0xE000 ? U'\uFFFD' : code);
  };
  for (uint32_t parts = 1 + below(40); parts > 0; --parts) {
    const uint32_t kind = below(8);
    constexpr uint32_t kPlanes[] = {0x80, 0x800, 0x10000, 0x110000};
    if (kind < 4) add(below(kPlanes[kind]));
    if (kind == 4) {
      const char32_t space = kSpaces[below(std::size(kSpaces))];
      for (uint32_t count = 1 + below(4); count > 0; --count) add(space);
    }
    if (kind == 5) {
      add(U'a' + below(26));
      for (uint32_t count = below(4); count > 0; --count) add(0x300 + below(0x70));
    }
    if (kind == 6) {
      text += static_cast<char>('0' + below(10));
      text += '\'';
      text += "stmdrlv"[below(7)];
    }
    if (kind == 7) {
      const auto id = static_cast<int32_t>(below(static_cast<uint32_t>(tokenizer.vocab_size())));
      append_repaired_utf8(text, tokenizer.token_bytes(id));
    }
  }
  return text;
}

// The text but for what this vocabulary cannot say: SmolLM2 lacks some bytes, sentencepiece takes U+2581 for
// a space.
std::string sayable(const Tokenizer& tokenizer, const std::string& text) {
  std::string kept, repaired;
  const bool byte_level = std::string_view(tokenizer.kind_name()) == "byte-level BPE";
  if (!byte_level) return spaces_for_escapes(text);
  for (const char byte : text) {
    if (tokenizer.find(std::string_view(&byte, 1))) kept += byte;
  }
  append_repaired_utf8(repaired, kept);
  return repaired;
}

TEST_P(RealTokenizer, EncodesAndDecodesToTheSameText) {
  const Tokenizer tokenizer = load(folder_);
  const bool nfc = folder_.filename().string().starts_with("qwen");
  std::mt19937 random(20240607);
  for (int i = 0; i < 5000 && !HasFailure(); ++i) {
    const std::string text = random_text(random, tokenizer);
    const std::string decoded = tokenizer.decode(tokenizer.encode(text));
    // Normalisation stops at added tokens, so that the whole may need some more of it.
    EXPECT_EQ(nfc ? to_nfc(decoded) : decoded, nfc ? to_nfc(text) : sayable(tokenizer, text));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = false})),
              nfc ? to_nfc(text) : sayable(tokenizer, text));
  }
}

TEST_P(RealTokenizer, StreamsWhatItDecodes) {
  const Tokenizer tokenizer = load(folder_);
  std::mt19937 random(7);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    std::vector<int32_t> ids(1 + random() % 30);
    for (int32_t& id : ids)
      id = static_cast<int32_t>(random() % static_cast<uint32_t>(tokenizer.vocab_size() + 100)) - 10;
    const bool skip = random() % 2 == 0;
    StreamDecoder decoder(tokenizer, skip);
    std::string text;
    for (const int32_t id : ids) text += decoder.push(id);
    text += decoder.finish();
    EXPECT_EQ(text, tokenizer.decode(ids, skip));
  }
}

// The vocabulary as converters write it to GGUF files.
GgufVocabulary as_gguf(const Vocabulary& vocabulary, const std::string& pre) {
  GgufVocabulary gguf;
  gguf.model = vocabulary.kind == TokenizerKind::kByteLevelBpe ? "gpt2" : "llama";
  gguf.pre = pre;
  gguf.tokens = vocabulary.tokens;
  gguf.scores = vocabulary.scores;
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const auto type = vocabulary.types.empty() ? TokenType::kNormal : vocabulary.types[id];
    const bool placeholder = gguf.tokens[id].starts_with("[UNUSED_TOKEN_");
    gguf.types.push_back(placeholder ? 5 : static_cast<int32_t>(type) + 1);
    if (gguf.tokens[id] == std::string_view("\0", 1)) gguf.tokens[id] = "\U0001F409";
  }
  for (const AddedToken& token : vocabulary.added) {
    const auto id = static_cast<size_t>(token.id);
    gguf.tokens.resize(std::max(gguf.tokens.size(), id + 1), "[PAD]");
    gguf.types.resize(gguf.tokens.size(), 5);
    gguf.tokens[id] = token.content;
    gguf.types[id] = token.special ? 3 : 4;
  }
  for (const auto& [left, right] : vocabulary.merges) gguf.merges.push_back(left + " " + right);
  gguf.add_space_prefix = vocabulary.add_prefix_space;
  return gguf;
}

TEST_P(RealTokenizer, AGgufVocabularyGivesTheGoldenIds) {
  auto vocabulary = read_vocabulary_folder(folder_);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  const bool smollm = vocabulary->pre_tokenizer == PreTokenizer::kSmolLm;
  auto from_gguf = vocabulary_from_gguf(as_gguf(*vocabulary, smollm ? "smollm" : "qwen2"));
  ASSERT_TRUE(from_gguf.ok()) << from_gguf.error().message;
  auto tokenizer = Tokenizer::create(std::move(from_gguf).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const json& line : read_lines(folder_ / "golden_encode.jsonl")) {
    const auto text = line["text"].get<std::string>();
    // Converters blank the placeholders that sentencepiece itself would still find.
    if (text.find("[UNUSED_TOKEN_") != std::string::npos) continue;
    EXPECT_EQ(tokenizer->encode(text), line["ids"].get<std::vector<int32_t>>()) << text;
  }
}

class QwenFiles : public RealTokenizer {};

TEST_P(QwenFiles, VocabAndMergesGiveTheIdsOfTokenizerJson) {
  for (const char* merges : {"merges.txt", "merges.crlf.txt"}) {
    PartialFolder folder("whippet_vocab_and_merges");
    folder.take(folder_ / "vocab.json", "vocab.json");
    folder.take(folder_ / merges, "merges.txt");
    folder.take(folder_ / "tokenizer_config.json", "tokenizer_config.json");
    folder.take(folder_ / "added_tokens.json", "added_tokens.json");
    folder.take(folder_ / "special_tokens_map.json", "special_tokens_map.json");
    const Tokenizer tokenizer = load(folder.path());
    for (const json& line : read_lines(folder_ / "golden_encode.jsonl")) {
      EXPECT_EQ(tokenizer.encode(line["text"].get<std::string>()), line["ids"].get<std::vector<int32_t>>());
    }
    EXPECT_EQ(tokenizer.find("<|im_end|>"), 151645);
    EXPECT_TRUE(tokenizer.is_special(151645));
    EXPECT_FALSE(tokenizer.is_special(151657)) << "<tool_call>";
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RealTokenizer,
                         testing::Values("qwen2.5-0.5b-instruct", "qwen3", "internlm2", "smollm2"));
INSTANTIATE_TEST_SUITE_P(Checkpoints, QwenFiles, testing::Values("qwen2.5-0.5b-instruct"));

}  // namespace
}  // namespace whippet
