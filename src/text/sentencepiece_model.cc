// Sentencepiece's tokenizer.model: a protobuf ModelProto (sentencepiece_model.proto), read by hand since only
// a dozen fields matter. The library would refuse InternLM2's file, which has a piece that is one NUL.
#include <algorithm>
#include <cstring>

#include "text/sentencepiece_bpe.h"
#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

constexpr const char* kFile = "tokenizer.model";

// One field of a message, as it stands in the file.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      // varints and fixed sizes
  std::string_view bytes;  // strings and messages
};

// Walks over the fields of one message.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end, or where the message breaks: then broken().
  bool next(Field& field) {
    if (rest_.empty() || broken_) return false;
    const uint64_t key = read_varint();
    field = {.number = key >> 3, .value = 0, .bytes = {}};
    switch (key & 7) {
      case 0:
        field.value = read_varint();
        break;
      case 1:
        field.value = read_fixed(8);
        break;
      case 2:
        field.bytes = read_bytes(read_varint());
        break;
      case 5:
        field.value = read_fixed(4);
        break;
      default:
        broken_ = true;
    }
    return !broken_;
  }
  bool broken() const { return broken_; }

 private:
  uint64_t read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  uint64_t read_fixed(size_t size) {
    uint64_t value = 0;
    const std::string_view bytes = read_bytes(size);
    if (!broken_) std::memcpy(&value, bytes.data(), size);
    return value;
  }
  std::string_view read_bytes(uint64_t size) {
    if (broken_ || size > rest_.size()) {
      broken_ = true;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool broken_ = false;
};

Error broken(std::string_view where) {
  return make_error(Code::kCorrupt, "{}: {} is truncated or no protobuf message", kFile, where);
}

Result<TokenType> token_type(uint64_t number, size_t id) {
  constexpr TokenType kTypes[] = {TokenType::kNormal,      TokenType::kUnknown, TokenType::kControl,
                                  TokenType::kUserDefined, TokenType::kUnused,  TokenType::kByte};
  if (number >= 1 && number <= std::size(kTypes)) return kTypes[number - 1];
  return make_error(Code::kCorrupt, "{}: piece {} has the unknown type {}", kFile, id, number);
}

Status read_piece(std::string_view message, Vocabulary& vocabulary) {
  const size_t id = vocabulary.tokens.size();
  std::string_view spelling;
  uint32_t score_bits = 0;
  uint64_t type = 1;
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 1) spelling = field.bytes;
    if (field.number == 2) score_bits = static_cast<uint32_t>(field.value);
    if (field.number == 3) type = field.value;
  }
  if (reader.broken()) return broken(fmt::format("piece {}", id));
  if (spelling.empty()) return make_error(Code::kCorrupt, "{}: piece {} is empty", kFile, id);
  if (id > static_cast<size_t>(IdRange::kMaxId)) {
    return make_error(Code::kCorrupt, "{}: more than {} pieces", kFile, id);
  }
  float score;
  std::memcpy(&score, &score_bits, sizeof(score));
  WH_ASSIGN(const TokenType known_type, token_type(type, id));
  vocabulary.tokens.emplace_back(spelling);
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(known_type);
  return {};
}

Status read_trainer_spec(std::string_view message, Vocabulary& vocabulary) {
  uint64_t model_type = 1;
  // Ids are int32, -1 for none; a varint holds the sign in 64 bits.
  const auto id_of = [](uint64_t value) {
    const auto id = static_cast<int32_t>(static_cast<uint32_t>(value));
    return id < 0 ? std::nullopt : std::optional(id);
  };
  vocabulary.unknown_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 3) model_type = field.value;
    if (field.number == 24 && field.value != 0) {
      return make_error(Code::kUnsupported, "{}: treat_whitespace_as_suffix is not supported", kFile);
    }
    if (field.number == 35) vocabulary.byte_fallback = field.value != 0;
    if (field.number == 40) vocabulary.unknown_id = id_of(field.value);
    if (field.number == 41) vocabulary.bos_id = id_of(field.value);
    if (field.number == 42) vocabulary.eos_id = id_of(field.value);
    if (field.number == 43) vocabulary.pad_id = id_of(field.value);
  }
  if (reader.broken()) return broken("the trainer's part");
  if (model_type != 2) {
    constexpr const char* kNames[] = {"unigram", "BPE", "word", "char"};
    const char* name = model_type >= 1 && model_type <= 4 ? kNames[model_type - 1] : "unknown";
    return make_error(Code::kUnsupported, "{}: a sentencepiece model of type {} is not supported; BPE is",
                      kFile, name);
  }
  return {};
}

Status read_normalizer_spec(std::string_view message, Vocabulary& vocabulary) {
  std::string_view name;
  bool has_map = false, removes_spaces = true, escapes = true;
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 1) name = field.bytes;
    if (field.number == 2) has_map = !field.bytes.empty();
    if (field.number == 3) vocabulary.add_prefix_space = field.value != 0;
    if (field.number == 4) removes_spaces = field.value != 0;
    if (field.number == 5) escapes = field.value != 0;
  }
  if (reader.broken()) return broken("the normalizer's part");
  if (has_map || removes_spaces || !escapes) {
    return make_error(
        Code::kUnsupported,
        "{}: the normalizer {} is not supported; one that changes nothing but spaces to U+2581 is", kFile,
        quote_text(name));
  }
  return {};
}

// Text can spell control pieces only as added tokens, as Hugging Face has it.
void add_control_pieces(Vocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    if (type != TokenType::kControl && type != TokenType::kUnknown) continue;
    vocabulary.added.push_back({.id = static_cast<int32_t>(id),
                                .content = spaces_for_escapes(vocabulary.tokens[id]),
                                .special = true});
  }
}

}  // namespace

Result<Vocabulary> read_sentencepiece_model(std::string_view model) {
  Vocabulary vocabulary;
  vocabulary.kind = TokenizerKind::kSentencePieceBpe;
  vocabulary.add_prefix_space = true;
  vocabulary.add_bos = true;
  vocabulary.fuse_unknown = true;
  bool has_trainer_spec = false;
  MessageReader reader(model);
  for (Field field; reader.next(field);) {
    if (field.number == 1) WH_TRY(read_piece(field.bytes, vocabulary));
    if (field.number == 2) {
      has_trainer_spec = true;
      WH_TRY(read_trainer_spec(field.bytes, vocabulary));
    }
    if (field.number == 3) WH_TRY(read_normalizer_spec(field.bytes, vocabulary));
  }
  if (reader.broken()) return broken("the file");
  if (vocabulary.tokens.empty()) return make_error(Code::kCorrupt, "{}: there are no pieces", kFile);
  if (!has_trainer_spec) {
    return make_error(Code::kUnsupported, "{}: it does not say that it is a BPE model", kFile);
  }
  add_control_pieces(vocabulary);
  return vocabulary;
}

}  // namespace whippet
