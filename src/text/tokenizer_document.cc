#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace whippet {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;

// Receives nlohmann's parse events. Builds a tree, except for the object at model.vocab (or the whole file)
// and the array at model.merges, which go straight into lists: a tree of them takes four times as long.
class DocumentReader {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  DocumentReader(TokenizerDocument& document, bool is_vocab)
      : document_(document), whole_is_vocab_(is_vocab) {}

  bool null() { return value(json(nullptr)); }
  bool boolean(bool flag) { return value(json(flag)); }
  bool number_integer(number_integer_t number) { return value(json(number)); }
  bool number_float(number_float_t number, const string_t&) { return value(json(number)); }
  bool binary(binary_t&) { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t number) {
    if (list_ != List::kVocab) return value(json(number));
    document_.vocab.emplace_back(std::move(key_),
                                 static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)));
    return true;
  }

  bool string(string_t& text) {
    if (list_ != List::kMerges) return value(json(std::move(text)));
    if (in_pair_) {
      pair_.push_back(std::move(text));
      return pair_.size() <= 2 || fail_merge();
    }
    auto merge = split_merge(text, document_.merges.size() + 1);
    if (!merge.ok()) return fail(merge.error().message);
    document_.merges.push_back(std::move(merge).value());
    return true;
  }

  bool key(string_t& name) {
    key_ = std::move(name);
    return true;
  }

  bool start_object(size_t) {
    if (list_ != List::kNone) return fail_in_list();
    const bool vocab = whole_is_vocab_ ? stack_.empty() : at_model_member("vocab");
    if (vocab) {
      list_ = List::kVocab;
      return true;
    }
    return open(json::object());
  }

  bool end_object() {
    if (list_ == List::kVocab) {
      list_ = List::kNone;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool start_array(size_t) {
    if (list_ == List::kMerges && !in_pair_) {
      in_pair_ = true;
      return true;
    }
    if (list_ != List::kNone) return fail_in_list();
    if (!whole_is_vocab_ && at_model_member("merges")) {
      list_ = List::kMerges;
      return true;
    }
    return open(json::array());
  }

  bool end_array() {
    if (in_pair_) {
      if (pair_.size() != 2) return fail_merge();
      document_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      pair_.clear();
      in_pair_ = false;
      return true;
    }
    if (list_ == List::kMerges) {
      list_ = List::kNone;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    return fail(fmt::format("no JSON at byte {} (error {})", position, error.id));
  }

  const std::string& problem() const { return problem_; }

 private:
  enum class List { kNone, kVocab, kMerges };

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool fail_merge() {
    return fail(fmt::format("merge {} is not a pair of tokens", document_.merges.size() + 1));
  }
  bool fail_in_list() {
    return list_ == List::kMerges ? fail_merge()
                                  : fail(fmt::format("the id of {} is no number", quote_text(key_)));
  }

  // True where the value that begins now is root.model.<name>.
  bool at_model_member(std::string_view name) const {
    return stack_.size() == 2 && key_ == name && stack_[1] == model_;
  }

  json* place(json&& content) {
    if (stack_.empty()) return &(document_.root = std::move(content));
    json& parent = *stack_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(content));
    json& child = parent[key_];
    child = std::move(content);
    if (stack_.size() == 1 && key_ == "model") model_ = &child;
    return &child;
  }

  bool value(json&& content) {
    if (list_ != List::kNone) return fail_in_list();
    place(std::move(content));
    return true;
  }

  bool open(json&& container) {
    if (stack_.size() >= kMaxDepth) return fail(fmt::format("nested more than {} deep", kMaxDepth));
    stack_.push_back(place(std::move(container)));
    return true;
  }

  TokenizerDocument& document_;
  bool whole_is_vocab_;
  List list_ = List::kNone;
  std::vector<json*> stack_;  // the open containers; a container never moves while something in it is open
  const json* model_ = nullptr;
  std::string key_;
  bool in_pair_ = false;
  std::vector<std::string> pair_;
  std::string problem_;
};

Result<TokenizerDocument> parse(std::string_view text, std::string_view file, bool is_vocab) {
  TokenizerDocument document;
  DocumentReader reader(document, is_vocab);
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    return make_error(Code::kCorrupt, "{}: {}", file, reader.problem());
  }
  if (!is_vocab && !document.root.is_object()) return make_error(Code::kCorrupt, "{}: no JSON object", file);
  return document;
}

}  // namespace

Result<TokenizerDocument> parse_tokenizer_document(std::string_view text, std::string_view file) {
  return parse(text, file, false);
}

Result<TokenizerDocument> parse_vocab_document(std::string_view text, std::string_view file) {
  WH_ASSIGN(TokenizerDocument document, parse(text, file, true));
  if (!document.root.is_null()) return make_error(Code::kCorrupt, "{}: no JSON object", file);
  return document;
}

Result<json> parse_json_document(std::string_view text, std::string_view file) {
  WH_ASSIGN(TokenizerDocument document, parse(text, file, false));
  return std::move(document.root);
}

Result<std::pair<std::string, std::string>> split_merge(std::string_view merge, size_t index) {
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
      merge.find(' ', space + 1) != std::string_view::npos) {
    return make_error(Code::kCorrupt, "merge {} ({}) is not two tokens with a space between them", index,
                      quote_text(merge));
  }
  return std::pair(std::string(merge.substr(0, space)), std::string(merge.substr(space + 1)));
}

}  // namespace whippet
