#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "text/byte_alphabet.h"
#include "text/byte_level_bpe.h"
#include "text/pattern_matcher.h"
#include "text/sentencepiece_bpe.h"
#include "text/token_table.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

// The longest spelling of an added token; bounds the time that a match can take.
constexpr size_t kMaxAddedBytes = 1024;

Status check_id(const char* name, const std::optional<int32_t>& id, size_t num_ids) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < num_ids)) return {};
  return make_error(Code::kCorrupt, "tokenizer: the {} id is {}, but the vocabulary has {} tokens", name, *id,
                    num_ids);
}

// Checks sizes and ids before anything is allocated by them. Returns the number of ids.
Result<size_t> check_sizes(const Vocabulary& vocabulary) {
  const size_t num_tokens = vocabulary.tokens.size();
  const bool has_scores = vocabulary.kind == TokenizerKind::kSentencePieceBpe && vocabulary.merges.empty();
  if (has_scores && vocabulary.scores.size() != num_tokens) {
    return make_error(Code::kCorrupt, "tokenizer: {} tokens, but {} scores", num_tokens,
                      vocabulary.scores.size());
  }
  if (!vocabulary.types.empty() && vocabulary.types.size() != num_tokens) {
    return make_error(Code::kCorrupt, "tokenizer: {} tokens, but {} token types", num_tokens,
                      vocabulary.types.size());
  }
  IdRange range;
  range.count(num_tokens, num_tokens == 0 ? -1 : static_cast<int64_t>(num_tokens) - 1, "the last token");
  for (const AddedToken& token : vocabulary.added) {
    range.count(1, token.id, token.content);
    if (token.content.size() > kMaxAddedBytes) {
      return make_error(Code::kCorrupt, "tokenizer: added token {} ({}) has {} bytes; at most {} make sense",
                        token.id, quote_text(token.content), token.content.size(), kMaxAddedBytes);
    }
  }
  WH_ASSIGN(const size_t num_ids, range.size());
  WH_TRY(check_id("bos", vocabulary.bos_id, num_ids));
  WH_TRY(check_id("eos", vocabulary.eos_id, num_ids));
  WH_TRY(check_id("unknown", vocabulary.unknown_id, num_ids));
  WH_TRY(check_id("pad", vocabulary.pad_id, num_ids));
  return num_ids;
}

}  // namespace

struct Tokenizer::Impl {
  TokenizerKind kind;
  bool nfc, add_prefix_space, prefix_only_at_start, add_bos, add_eos;
  std::optional<int32_t> bos_id, eos_id;
  TokenTable tokens;
  std::vector<bool> is_special;                        // [tokens.size()]
  std::unordered_map<std::string, int32_t> added_ids;  // by content
  PatternMatcher added;                                // matched in the text as it is
  PatternMatcher normalized_added;                     // matched in the normalised text between those
  std::optional<ByteLevelBpe> byte_level;              // one of the two, by kind
  std::optional<SentencePieceBpe> sentencepiece;

  Status read_tokens(const Vocabulary& vocabulary, size_t num_ids);
  Status read_added(const Vocabulary& vocabulary);
  void encode(std::string_view text, std::span<const TextSpan> user_spans, std::vector<int32_t>& ids) const;
  void encode_between(std::string_view text, size_t begin, size_t end, std::span<const TextSpan> user_spans,
                      std::vector<int32_t>& ids) const;
  void encode_byte_level(std::string_view text, std::span<const TextSpan> user_spans,
                         std::vector<int32_t>& ids) const;
};

// Fills tokens and is_special. Only the vocabulary's own words are indexed: an added token is found by the
// matchers alone, whatever the vocabulary could spell.
Status Tokenizer::Impl::read_tokens(const Vocabulary& vocabulary, size_t num_ids) {
  is_special.assign(num_ids, false);
  std::vector<const AddedToken*> added_of(num_ids, nullptr);
  for (const AddedToken& token : vocabulary.added) {
    const auto id = static_cast<size_t>(token.id);
    added_of[id] = &token;
    is_special[id] = token.special;
  }
  const bool byte_level_kind = kind == TokenizerKind::kByteLevelBpe;
  const std::vector<TokenType> types = piece_types(vocabulary);
  tokens = TokenTable(num_ids);
  for (size_t i = 0; i < num_ids; ++i) {
    const bool own = i < vocabulary.tokens.size() && !vocabulary.tokens[i].empty();
    const std::string_view spelling = own ? std::string_view(vocabulary.tokens[i]) : std::string_view();
    const TokenType type = own ? types[i] : TokenType::kUnused;
    if (type == TokenType::kControl || type == TokenType::kUnknown) is_special[i] = true;
    // Rows that only pad the embedding have names, but no text.
    const bool padding = byte_level_kind && type == TokenType::kUnused;
    const std::optional<std::string> bytes =
        byte_level_kind ? bytes_of_spelling(spelling) : spaces_for_escapes(spelling);
    const bool overridden = added_of[i] != nullptr && added_of[i]->content != spelling;
    if (added_of[i] != nullptr) {
      tokens.append(added_of[i]->content);
    } else if (!byte_level_kind && type == TokenType::kByte) {
      const char byte = static_cast<char>(std::max(byte_of_piece(spelling), 0));
      tokens.append(std::string_view(&byte, 1));
      continue;
    } else {
      tokens.append(padding ? std::string_view() : bytes ? std::string_view(*bytes) : spelling);
    }
    // Sentencepiece never sees a space in text: a piece with one can be decoded only.
    const bool unmatchable = !byte_level_kind && spelling.find(' ') != std::string_view::npos;
    if (!own || padding || overridden || !bytes || unmatchable) continue;
    if (const auto twin = tokens.index(static_cast<int32_t>(i))) {
      return make_error(Code::kCorrupt, "tokenizer: {} is there twice, as tokens {} and {}",
                        quote_text(spelling), *twin, i);
    }
  }
  return {};
}

Status Tokenizer::Impl::read_added(const Vocabulary& vocabulary) {
  std::vector<PatternMatcher::Pattern> patterns, normalized_patterns;
  for (const AddedToken& token : vocabulary.added) {
    if (token.content.empty()) continue;
    const auto [known, is_new] = added_ids.try_emplace(token.content, token.id);
    if (!is_new && known->second != token.id) {
      return make_error(Code::kCorrupt, "tokenizer: {} is there twice, as added tokens {} and {}",
                        quote_text(token.content), known->second, token.id);
    }
    const bool normalized = token.normalized && !token.special && kind == TokenizerKind::kByteLevelBpe;
    (normalized ? normalized_patterns : patterns)
        .push_back({.text = normalized && nfc ? to_nfc(token.content) : token.content,
                    .id = token.id,
                    .guarded = token.special || is_markup(token.content),
                    .lstrip = token.lstrip,
                    .rstrip = token.rstrip,
                    .single_word = token.single_word});
  }
  added = PatternMatcher(std::move(patterns));
  normalized_added = PatternMatcher(std::move(normalized_patterns));
  return {};
}

Result<Tokenizer> Tokenizer::create(Vocabulary vocabulary) {
  WH_ASSIGN(const size_t num_ids, check_sizes(vocabulary));
  auto impl = std::make_unique<Impl>();
  impl->kind = vocabulary.kind;
  impl->nfc = vocabulary.nfc;
  impl->add_prefix_space = vocabulary.add_prefix_space;
  impl->prefix_only_at_start = vocabulary.prefix_only_at_start;
  impl->add_bos = vocabulary.add_bos;
  impl->add_eos = vocabulary.add_eos;
  impl->bos_id = vocabulary.bos_id;
  impl->eos_id = vocabulary.eos_id;
  WH_TRY(impl->read_tokens(vocabulary, num_ids));
  WH_TRY(impl->read_added(vocabulary));
  if (vocabulary.kind == TokenizerKind::kByteLevelBpe) {
    WH_ASSIGN(impl->byte_level, ByteLevelBpe::create(vocabulary, impl->tokens, impl->is_special));
  } else {
    WH_ASSIGN(impl->sentencepiece, SentencePieceBpe::create(vocabulary, impl->tokens, impl->is_special));
  }
  return Tokenizer(std::move(impl));
}

Result<Tokenizer> Tokenizer::from_folder(const std::filesystem::path& folder) {
  WH_ASSIGN(Vocabulary vocabulary, read_vocabulary_folder(folder));
  return create(std::move(vocabulary));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::Impl::encode_byte_level(std::string_view text, std::span<const TextSpan> user_spans,
                                        std::vector<int32_t>& ids) const {
  std::string rewritten;
  const TextSpan everything{0, SIZE_MAX};
  if (nfc && !is_surely_nfc(text)) {
    rewritten = to_nfc(text);
    // Offsets are lost: where users wrote any of it, all of it counts as theirs.
    if (!user_spans.empty()) user_spans = std::span(&everything, 1);
    text = rewritten;
  }
  size_t begin = 0;
  for (const PatternMatcher::Match& match : normalized_added.find_all(text, user_spans)) {
    byte_level->encode(text.substr(begin, match.begin - begin), ids);
    ids.push_back(match.id);
    begin = match.end;
  }
  byte_level->encode(text.substr(begin), ids);
}

// Encodes text[begin, end), which lies between added tokens. user_spans: of the whole text.
void Tokenizer::Impl::encode_between(std::string_view text, size_t begin, size_t end,
                                     std::span<const TextSpan> user_spans, std::vector<int32_t>& ids) const {
  if (begin == end) return;
  std::vector<TextSpan> inside;
  const auto first = std::lower_bound(user_spans.begin(), user_spans.end(), begin,
                                      [](const TextSpan& span, size_t offset) { return span.end <= offset; });
  for (auto span = first; span != user_spans.end() && span->begin < end; ++span) {
    inside.push_back({std::max(span->begin, begin) - begin, std::min(span->end, end) - begin});
  }
  const std::string_view part = text.substr(begin, end - begin);
  if (byte_level) {
    encode_byte_level(part, inside, ids);
  } else {
    sentencepiece->encode(part, inside, add_prefix_space && (begin == 0 || !prefix_only_at_start), ids);
  }
}

void Tokenizer::Impl::encode(std::string_view text, std::span<const TextSpan> user_spans,
                             std::vector<int32_t>& ids) const {
  size_t begin = 0;
  for (const PatternMatcher::Match& match : added.find_all(text, user_spans)) {
    encode_between(text, begin, match.begin, user_spans, ids);
    ids.push_back(match.id);
    begin = match.end;
  }
  encode_between(text, begin, text.size(), user_spans, ids);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 2);
  if (options.add_special_tokens && adds_bos()) ids.push_back(*impl_->bos_id);
  const TextSpan everything{0, text.size()};
  impl_->encode(text, std::span(&everything, options.parse_special || text.empty() ? 0 : 1), ids);
  if (options.add_special_tokens && impl_->add_eos && impl_->eos_id) ids.push_back(*impl_->eos_id);
  return ids;
}

std::vector<int32_t> Tokenizer::encode(const MarkedText& text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.text.size() / 4);
  impl_->encode(text.text, text.user_spans, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!skip_special_tokens || !is_special(id)) bytes += token_bytes(id);
  }
  std::string_view text = bytes;
  if (drops_first_space() && text.starts_with(' ')) text.remove_prefix(1);
  std::string repaired;
  repaired.reserve(text.size());
  append_repaired_utf8(repaired, text);
  return repaired;
}

std::string_view Tokenizer::token_bytes(int32_t id) const { return impl_->tokens.bytes(id); }

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < impl_->is_special.size() &&
         impl_->is_special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  const auto added = impl_->added_ids.find(std::string(token));
  if (added != impl_->added_ids.end()) return added->second;
  const int32_t id = impl_->tokens.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

int32_t Tokenizer::vocab_size() const {
  auto size = static_cast<int32_t>(impl_->tokens.size());
  while (size > 0 && impl_->tokens.bytes(size - 1).empty()) --size;
  return size;
}

std::optional<int32_t> Tokenizer::bos_id() const { return impl_->bos_id; }
std::optional<int32_t> Tokenizer::eos_id() const { return impl_->eos_id; }
bool Tokenizer::adds_bos() const { return impl_->add_bos && impl_->bos_id.has_value(); }

bool Tokenizer::drops_first_space() const {
  return impl_->kind == TokenizerKind::kSentencePieceBpe && impl_->add_prefix_space;
}

const char* Tokenizer::kind_name() const {
  return impl_->kind == TokenizerKind::kByteLevelBpe ? "byte-level BPE" : "sentencepiece BPE";
}

}  // namespace whippet
