// From a checkpoint folder, or from vocab.json + merges.txt, to a Vocabulary.
#include <system_error>

#include "base/mapped_file.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Applies the file if the folder has it.
template <class Apply>
Status apply_file(const fs::path& path, Apply apply) {
  if (!has_file(path)) return {};
  WH_ASSIGN(const MappedFile file, MappedFile::open(path));
  Status status = apply(text_of(file));
  if (!status.ok())
    return Error{status.error().code, path.parent_path().string() + ": " + status.error().message};
  return {};
}

Result<Vocabulary> read_json_file(const fs::path& folder) {
  WH_ASSIGN(const MappedFile file, MappedFile::open(folder / "tokenizer.json"));
  return read_tokenizer_json(text_of(file));
}

Result<Vocabulary> read_model_file(const fs::path& folder) {
  WH_ASSIGN(const MappedFile file, MappedFile::open(folder / "tokenizer.model"));
  return read_sentencepiece_model(text_of(file));
}

Result<Vocabulary> read_pair_of_files(const fs::path& folder) {
  WH_ASSIGN(const MappedFile vocab, MappedFile::open(folder / "vocab.json"));
  WH_ASSIGN(const MappedFile merges, MappedFile::open(folder / "merges.txt"));
  return read_vocab_and_merges(text_of(vocab), text_of(merges));
}

Result<VocabularySource> find_source(const fs::path& folder) {
  if (has_file(folder / "tokenizer.json")) return VocabularySource::kTokenizerJson;
  if (has_file(folder / "tokenizer.model")) return VocabularySource::kSentencePieceModel;
  if (has_file(folder / "vocab.json") && has_file(folder / "merges.txt"))
    return VocabularySource::kVocabAndMerges;
  return make_error(
      Code::kNotFound,
      "{}: no tokenizer; expected tokenizer.json, tokenizer.model, or vocab.json and merges.txt",
      folder.string());
}

Result<Vocabulary> read_source(const fs::path& folder, VocabularySource& source) {
  if (source == VocabularySource::kVocabAndMerges) return read_pair_of_files(folder);
  if (source == VocabularySource::kSentencePieceModel) return read_model_file(folder);
  Result<Vocabulary> vocabulary = read_json_file(folder);
  if (vocabulary.ok() || vocabulary.error().code != Code::kUnsupported) return vocabulary;
  if (!has_file(folder / "tokenizer.model")) return vocabulary;
  source = VocabularySource::kSentencePieceModel;
  return read_model_file(folder);
}

}  // namespace

Result<Vocabulary> read_vocabulary_folder(const fs::path& folder) {
  WH_ASSIGN(VocabularySource source, find_source(folder));
  Result<Vocabulary> read = read_source(folder, source);
  if (!read.ok()) return Error{read.error().code, folder.string() + ": " + read.error().message};
  Vocabulary vocabulary = std::move(read).value();
  // A tokenizer.json holds its added tokens itself.
  if (source != VocabularySource::kTokenizerJson) {
    WH_TRY(apply_file(folder / "added_tokens.json",
                      [&](std::string_view text) { return apply_added_tokens(vocabulary, text); }));
  }
  WH_TRY(apply_file(folder / "special_tokens_map.json",
                    [&](std::string_view text) { return apply_special_tokens_map(vocabulary, text); }));
  WH_TRY(apply_file(folder / "tokenizer_config.json",
                    [&](std::string_view text) { return apply_tokenizer_config(vocabulary, source, text); }));
  return vocabulary;
}

Result<Vocabulary> read_vocab_and_merges(std::string_view vocab_json, std::string_view merges_txt) {
  WH_ASSIGN(TokenizerDocument document, parse_vocab_document(vocab_json, "vocab.json"));
  if (document.vocab.empty()) return make_error(Code::kCorrupt, "vocab.json: there are no tokens");
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = PreTokenizer::kGpt2;
  WH_TRY(place_tokens(vocabulary, std::move(document.vocab)));
  if (merges_txt.starts_with("#version"))
    merges_txt.remove_prefix(std::min(merges_txt.find('\n'), merges_txt.size()));
  while (!merges_txt.empty()) {
    const size_t end = std::min(merges_txt.find('\n'), merges_txt.size());
    std::string_view line = merges_txt.substr(0, end);
    merges_txt.remove_prefix(std::min(end + 1, merges_txt.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto merge = split_merge(line, vocabulary.merges.size() + 1);
    if (!merge.ok()) return make_error(Code::kCorrupt, "merges.txt: {}", merge.error().message);
    vocabulary.merges.push_back(std::move(merge).value());
  }
  return vocabulary;
}

}  // namespace whippet
