#include "text/tokenizer_json.h"

#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

using nlohmann::json;

constexpr const char* kFile = "tokenizer.json";
constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

constexpr std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Error corrupt(std::string_view what) { return make_error(Code::kCorrupt, "{}: {}", kFile, what); }
Error unsupported(std::string_view what, std::string_view supported) {
  return make_error(Code::kUnsupported, "{}: {} is not supported; {} is", kFile, what, supported);
}

std::string type_of(const json& part) {
  const json* type = find_member(part, "type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : std::string("without a type");
}

// A component (normalizer, pre_tokenizer, post_processor) as a flat list: none, itself, or a Sequence's
// parts.
Result<std::vector<const json*>> parts_of(const json& root, const char* name, const char* list_name) {
  std::vector<const json*> parts;
  const json* component = find_member(root, name);
  if (component == nullptr) return parts;
  if (type_of(*component) != "Sequence") {
    parts.push_back(component);
    return parts;
  }
  const json* list = find_member(*component, list_name);
  if (list == nullptr || !list->is_array()) return corrupt(fmt::format("{} lacks {}", name, list_name));
  for (const json& part : *list) parts.push_back(&part);
  return parts;
}

Status read_normalizer(const json& root, Vocabulary& vocabulary) {
  WH_ASSIGN(const auto parts, parts_of(root, "normalizer", "normalizers"));
  for (const json* part : parts) {
    const std::string type = type_of(*part);
    if (type == "NFC") {
      vocabulary.nfc = true;
      continue;
    }
    if (type == "Prepend") {
      WH_ASSIGN(const std::string prefix, string_member(*part, "prepend"));
      if (prefix == kEscapedSpace) {
        vocabulary.add_prefix_space = true;
        continue;
      }
    }
    if (type == "Replace") {
      const json* pattern = find_member(*part, "pattern");
      const json* text = pattern == nullptr ? nullptr : find_member(*pattern, "String");
      WH_ASSIGN(const std::string content, string_member(*part, "content"));
      if (text != nullptr && *text == " " && content == kEscapedSpace) {
        vocabulary.kind = TokenizerKind::kSentencePieceBpe;
        continue;
      }
    }
    return unsupported("normalizer " + type, "NFC, or Prepend and Replace as in Llama 2,");
  }
  return {};
}

Status read_split(const json& part, Vocabulary& vocabulary) {
  const json* pattern = find_member(part, "pattern");
  const json* regex = pattern == nullptr ? nullptr : find_member(*pattern, "Regex");
  WH_ASSIGN(const std::string behavior, string_member(part, "behavior"));
  WH_ASSIGN(const bool invert, bool_member(part, "invert", false));
  const bool keeps_everything = (behavior == "Isolated" && !invert) || (behavior == "Removed" && invert);
  if (regex == nullptr || !regex->is_string() || !keeps_everything) {
    return unsupported("a Split without Regex, or with behavior " + quote_text(behavior), "Isolated");
  }
  const auto& expression = regex->get_ref<const std::string&>();
  if (expression == kGpt2Expression) {
    vocabulary.pre_tokenizer = PreTokenizer::kGpt2;
  } else if (expression == kQwen2Expression) {
    vocabulary.pre_tokenizer = PreTokenizer::kQwen2;
  } else if (expression == kLlama3Expression) {
    vocabulary.pre_tokenizer = PreTokenizer::kLlama3;
  } else {
    return make_error(Code::kUnsupported,
                      "{}: the split expression {} is not supported; those of GPT-2, Qwen2 and Llama 3 are",
                      kFile, expression);
  }
  return {};
}

Status read_metaspace(const json& part, Vocabulary& vocabulary) {
  vocabulary.kind = TokenizerKind::kSentencePieceBpe;
  WH_ASSIGN(const std::string replacement, string_member(part, "replacement"));
  WH_ASSIGN(const bool split, bool_member(part, "split", true));
  WH_ASSIGN(const bool prefix, bool_member(part, "add_prefix_space", true));
  WH_ASSIGN(const std::string scheme, string_member(part, "prepend_scheme"));
  if (replacement != kEscapedSpace || split)
    return unsupported("Metaspace that splits words", "split = false");
  vocabulary.add_prefix_space = scheme.empty() ? prefix : scheme != "never";
  vocabulary.prefix_only_at_start = scheme == "first";
  vocabulary.prefix_unless_space = true;
  return {};
}

Status read_pre_tokenizer(const json& root, Vocabulary& vocabulary) {
  WH_ASSIGN(const auto parts, parts_of(root, "pre_tokenizer", "pretokenizers"));
  bool byte_level = false, digits = false;
  for (const json* part : parts) {
    const std::string type = type_of(*part);
    if (type == "Metaspace" && parts.size() == 1) return read_metaspace(*part, vocabulary);
    if (byte_level) return unsupported(type + " behind ByteLevel", "ByteLevel as the last part");
    if (type == "Split" && vocabulary.pre_tokenizer == PreTokenizer::kNone && !digits) {
      WH_TRY(read_split(*part, vocabulary));
    } else if (type == "Digits" && vocabulary.pre_tokenizer == PreTokenizer::kNone) {
      WH_ASSIGN(digits, bool_member(*part, "individual_digits", false));
      if (!digits) return unsupported("Digits with individual_digits = false", "true");
    } else if (type == "ByteLevel") {
      byte_level = true;
      WH_ASSIGN(const bool use_regex, bool_member(*part, "use_regex", true));
      WH_ASSIGN(vocabulary.add_prefix_space, bool_member(*part, "add_prefix_space", true));
      const bool split = vocabulary.pre_tokenizer != PreTokenizer::kNone;
      if (split == use_regex || (vocabulary.add_prefix_space && (split || digits))) {
        return unsupported("this combination of Split, Digits and ByteLevel", "a single split expression");
      }
      if (!split) vocabulary.pre_tokenizer = digits ? PreTokenizer::kSmolLm : PreTokenizer::kGpt2;
    } else {
      return unsupported("pre-tokenizer " + type, "Split, Digits or Metaspace");
    }
  }
  if (byte_level && vocabulary.kind == TokenizerKind::kSentencePieceBpe) {
    return unsupported("ByteLevel with a normalizer that replaces spaces", "either of them");
  }
  if (!byte_level && vocabulary.kind == TokenizerKind::kByteLevelBpe) {
    return unsupported("a tokenizer that is neither byte-level nor in sentencepiece's style",
                       "either of them");
  }
  return {};
}

// One side of a template: no token, or one that it adds.
struct TemplateSide {
  bool adds = false;
  std::optional<int32_t> id;
};

Status read_template_token(const json& processor, const json& item, TemplateSide& side) {
  if (side.adds) return unsupported("a template that adds two tokens on one side", "one");
  WH_ASSIGN(const std::string name, string_member(item, "id"));
  const json* tokens = find_member(processor, "special_tokens");
  const json* token = tokens == nullptr ? nullptr : find_member(*tokens, name.c_str());
  const json* ids = token == nullptr ? nullptr : find_member(*token, "ids");
  if (ids == nullptr || !ids->is_array() || ids->size() != 1 || !(*ids)[0].is_number_unsigned() ||
      (*ids)[0].get<uint64_t>() > IdRange::kMaxId) {
    return corrupt("the template's token " + quote_text(name) + " has no single id");
  }
  side.adds = true;
  side.id = (*ids)[0].get<int32_t>();
  return {};
}

Status read_template(const json& processor, Vocabulary& vocabulary) {
  const json* single = find_member(processor, "single");
  if (single == nullptr || !single->is_array()) return corrupt("the template has no list \"single\"");
  TemplateSide before, after;
  bool seen_text = false;
  for (const json& item : *single) {
    if (find_member(item, "Sequence") != nullptr) {
      if (seen_text) return unsupported("a template that repeats the text", "once");
      seen_text = true;
    } else if (const json* token = find_member(item, "SpecialToken")) {
      WH_TRY(read_template_token(processor, *token, seen_text ? after : before));
    } else {
      return corrupt("an item of the template is neither SpecialToken nor Sequence");
    }
  }
  vocabulary.add_bos = before.adds;
  vocabulary.add_eos = after.adds;
  if (before.adds) vocabulary.bos_id = before.id;
  if (after.adds) vocabulary.eos_id = after.id;
  return {};
}

Status read_post_processor(const json& root, Vocabulary& vocabulary) {
  WH_ASSIGN(const auto parts, parts_of(root, "post_processor", "processors"));
  for (const json* part : parts) {
    const std::string type = type_of(*part);
    if (type == "ByteLevel") continue;  // moves offsets only
    if (type != "TemplateProcessing") {
      return unsupported("post-processor " + type, "ByteLevel or TemplateProcessing");
    }
    WH_TRY(read_template(*part, vocabulary));
  }
  return {};
}

Status read_model(const json& model, Vocabulary& vocabulary) {
  WH_ASSIGN(const std::string type, string_member(model, "type"));
  if (!type.empty() && type != "BPE") return unsupported("a model of type " + type, "BPE");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    WH_ASSIGN(const std::string text, string_member(model, affix));
    if (!text.empty()) return unsupported(affix, "none");
  }
  const json* dropout = find_member(model, "dropout");
  if (dropout != nullptr && *dropout != 0) return unsupported("dropout", "none");
  WH_ASSIGN(vocabulary.ignore_merges, bool_member(model, "ignore_merges", false));
  WH_ASSIGN(vocabulary.byte_fallback, bool_member(model, "byte_fallback", false));
  WH_ASSIGN(vocabulary.fuse_unknown, bool_member(model, "fuse_unk", false));
  return {};
}

Status read_added_tokens(const json& root, Vocabulary& vocabulary) {
  const json* list = find_member(root, "added_tokens");
  if (list == nullptr) return {};
  if (!list->is_array()) return corrupt("added_tokens is no list");
  vocabulary.added.reserve(list->size());
  for (const json& entry : *list) {
    const json* id = find_member(entry, "id");
    if (id == nullptr || !id->is_number_integer()) return corrupt("an added token has no id");
    WH_ASSIGN(AddedToken token, parse_added_token(entry, id->get<int64_t>()));
    vocabulary.added.push_back(std::move(token));
  }
  return {};
}

Status find_unknown(const json& model, Vocabulary& vocabulary) {
  WH_ASSIGN(const std::string spelling, string_member(model, "unk_token"));
  if (spelling.empty()) return {};
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id] == spelling) vocabulary.unknown_id = static_cast<int32_t>(id);
  }
  for (const AddedToken& token : vocabulary.added) {
    if (token.content == spelling) vocabulary.unknown_id = token.id;
  }
  if (!vocabulary.unknown_id)
    return corrupt("unk_token " + quote_text(spelling) + " is not in the vocabulary");
  return {};
}

}  // namespace

Result<Vocabulary> read_tokenizer_json(std::string_view text) {
  WH_ASSIGN(TokenizerDocument document, parse_tokenizer_document(text, kFile));
  const json* model = find_member(document.root, "model");
  if (model == nullptr || !model->is_object()) return corrupt("there is no object \"model\"");
  Vocabulary vocabulary;
  WH_TRY(read_model(*model, vocabulary));
  WH_TRY(read_normalizer(document.root, vocabulary));
  WH_TRY(read_pre_tokenizer(document.root, vocabulary));
  WH_TRY(read_post_processor(document.root, vocabulary));
  WH_TRY(read_added_tokens(document.root, vocabulary));
  if (document.vocab.empty()) return corrupt("model.vocab is no object with tokens");
  // The parser takes a list out of the tree.
  if (find_member(*model, "merges") != nullptr) return corrupt("model.merges is no list");
  WH_TRY(place_tokens(vocabulary, std::move(document.vocab)));
  vocabulary.merges = std::move(document.merges);
  if (vocabulary.kind == TokenizerKind::kSentencePieceBpe && vocabulary.merges.empty()) {
    return corrupt("model.merges is empty");
  }
  WH_TRY(find_unknown(*model, vocabulary));
  return vocabulary;
}

}  // namespace whippet
