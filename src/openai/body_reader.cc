#include "openai/body_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "openai/refusal.h"
#include "text/utf8.h"

namespace whippet::openai {
namespace {

constexpr size_t kDeepest = 100;
constexpr size_t kMostKeys = 4096;  // of one object
// Objects find their keys one by one, here and in templates: keys times keys, summed over all objects.
constexpr size_t kMostKeySteps = 12 << 20;
constexpr size_t kLongestKey = 256;     // bytes
constexpr size_t kMostUnits = 4 << 20;  // a number is 1, what allocates 4
constexpr size_t kLongestReason = 200;

// Builds the tree for nlohmann's parser, which calls one function for each piece; false ends the parsing.
class TreeBuilder {
 public:
  bool null() { return add(Json(), 1); }
  bool boolean(bool value) { return add(Json(value), 1); }
  bool number_integer(int64_t value) { return add(Json(value), 1); }
  bool number_unsigned(uint64_t value) { return add(Json(value), 1); }
  bool number_float(double value, const std::string&) { return add(Json(value), 1); }
  bool string(std::string& value) { return add(Json(std::move(value)), 4); }
  bool binary(Json::binary_t&) { return fail("the body is no JSON"); }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    Json::object_t& object = level.value->get_ref<Json::object_t&>();
    if (object.size() >= kMostKeys) return fail(fmt::format("an object has more than {} keys", kMostKeys));
    if (name.size() > kLongestKey) return fail(fmt::format("a key has more than {} bytes", kLongestKey));
    key_steps_ += object.size();
    if (key_steps_ > kMostKeySteps) return fail("too many objects with many keys");
    for (const auto& member : object)
      if (member.first == name) return fail(fmt::format("the key {} is there twice", quote_text(name)));
    // At its end, without the search that ordered_map's own functions make.
    object.emplace_back(std::move(name), nullptr);
    level.next = &object.back().second;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& failure) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ..."
    std::string reason = failure.what();
    for (const char* before : {"] ", "column ", ": "}) {
      const size_t at = reason.find(before);
      if (at != std::string::npos) reason.erase(0, at + std::string_view(before).size());
    }
    if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + "...";
    return fail(fmt::format("the body is no valid JSON at byte {}: {}", position, reason));
  }

  Json& tree() { return tree_; }
  const std::string& reason() const { return reason_; }

 private:
  struct Level {
    Json* value;
    Json* next = nullptr;  // of an object: where the value of the key that was read goes
  };

  Json* add_value(Json value) {
    if (levels_.empty()) return &(tree_ = std::move(value));
    Level& level = levels_.back();
    if (level.next != nullptr) return &(*level.next = std::move(value));
    Json::array_t& array = level.value->get_ref<Json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool add(Json value, size_t units) {
    units_ += units;
    if (units_ > kMostUnits) return fail("the body has too many values");
    add_value(std::move(value));
    return true;
  }
  bool open(Json container) {
    units_ += 4;
    if (units_ > kMostUnits) return fail("the body has too many values");
    if (levels_.size() >= kDeepest)
      return fail(fmt::format("the body nests deeper than {} levels", kDeepest));
    levels_.push_back({add_value(std::move(container))});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  Json tree_;
  std::vector<Level> levels_;  // pointers into tree_: what holds an open value does not grow
  size_t units_ = 0;
  size_t key_steps_ = 0;
  std::string reason_;
};

}  // namespace

Outcome<Json> read_body(std::string_view body) {
  TreeBuilder builder;
  ApiError error;
  error.code = "invalid_json";
  if (!Json::sax_parse(body, &builder)) {
    error.message = builder.reason();
    return error;
  }
  if (builder.tree().is_object()) return std::move(builder.tree());
  error.message = fmt::format("the body must be a JSON object, not {}", shown(builder.tree()));
  return error;
}

}  // namespace whippet::openai
