// The types that hold others: arrays and objects.
#include <algorithm>
#include <utility>

#include "grammar/regex_classes.h"
#include "grammar/regex_grammar.h"
#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

constexpr size_t kLongestInline = 16;  // of an expression; a longer one that stands in many places is a rule
constexpr size_t kSideBySide = 32;     // members that may be next, in one rule
constexpr size_t kLongestName = 200;   // characters of a member beside which others are allowed

const Schema& no_members() {
  static const Schema kNone = Schema::object();
  return kNone;
}

// What follows is read only once something has been: a reference to what is being read is no loop there.
class Inside {
 public:
  explicit Inside(std::vector<std::string>& open) : open_(open), outer_(std::exchange(open, {})) {}
  ~Inside() { open_ = std::move(outer_); }

 private:
  std::vector<std::string>& open_;
  std::vector<std::string> outer_;
};

Result<std::vector<std::string>> required_names(const SchemaAt& place) {
  std::vector<std::string> names;
  if (!place.has("required")) return names;
  const Schema& list = place.schema.at("required");
  for (const Schema& name : list.is_array() ? list : Schema::array({list})) {
    if (!name.is_string()) return schema_error(place.path, "required", "expected a list of names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

Result<std::u32string> characters(const std::string& text) {
  std::u32string points;
  RegexCursor cursor{text};
  while (!cursor.done()) {
    WH_ASSIGN(const uint32_t point, read_character(cursor));
    points += static_cast<char32_t>(point);
  }
  return points;
}

using Names = std::vector<std::u32string>;

// The rest of a key that begins with the first `done` characters that names[begin..end) share, up to and with
// its quote, and is none of them. Names are sorted.
std::string other_rest(const Names& names, size_t begin, size_t end, size_t done) {
  CodePoints taken{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  std::vector<std::string> parts;
  const bool is_name = names[begin].size() == done;
  if (!is_name && done > 0) parts.emplace_back("\"\\\"\"");
  for (size_t i = begin + (is_name ? 1 : 0); i < end;) {
    const char32_t next = names[i][done];
    size_t last = i;
    while (last < end && names[last][done] == next) ++last;
    if (!taken.contains(next)) {
      parts.push_back(sequence({character_class({{next, next}}), other_rest(names, i, last, done + 1)}));
      taken.add(next, next);
    }
    i = last;
  }
  parts.push_back(sequence({character_class(taken.complement()), "json_key_rest"}));
  return choices(parts);
}

}  // namespace

Result<std::string> SchemaReader::array(const SchemaAt& place) {
  const Inside inside(open_);
  WH_ASSIGN(const int64_t low, count_at(place, "minItems", 0));
  WH_ASSIGN(const int64_t high, count_at(place, "maxItems", -1));
  if (high >= 0 && high < low) return schema_error(place.path, "maxItems", "below minItems");
  std::vector<std::string> first;
  if (place.has("prefixItems")) {
    const Schema& list = place.schema.at("prefixItems");
    if (!list.is_array()) return schema_error(place.path, "prefixItems", "expected a list of schemas");
    for (size_t i = 0; i < list.size(); ++i) {
      WH_ASSIGN(first.emplace_back(),
                value({list[i], fmt::format("{}/prefixItems/{}", place.path, i), place.depth + 1}));
    }
  }
  const auto size = static_cast<int64_t>(first.size());
  if (high >= 0 && high < size)
    return schema_error(place.path, "maxItems", "below the number of prefixItems is not supported");
  const bool closed = place.has("items") ? place.schema.at("items") == false : !first.empty();
  if (closed) {
    if (low > size)
      return schema_error(place.path, "minItems", "there are fewer prefixItems, and no other items");
    return json_.rules().add("array", json_.list(first, "", 0, 0));
  }
  std::string item = json_.any();
  if (place.has("items")) {
    if (place.schema.at("items").is_array())
      return schema_error(place.path, "items", "a list is not supported: write prefixItems");
    WH_ASSIGN(item, value({place.schema.at("items"), place.path + "/items", place.depth + 1}));
  }
  return json_.rules().add(
      "array", json_.list(first, item, std::max<int64_t>(low - size, 0), high < 0 ? -1 : high - size));
}

// An expression of what members that are not named hold; "" where there are none. open: what holds where the
// schema does not say.
Result<std::string> SchemaReader::other_value(const SchemaAt& place, bool open) {
  if (!place.has("additionalProperties")) return open ? json_.any() : std::string();
  const SchemaAt other{place.schema.at("additionalProperties"), place.path + "/additionalProperties",
                       place.depth + 1};
  if (other.schema == false) return std::string();
  return value(other);
}

Result<std::string> SchemaReader::object(const SchemaAt& place) {
  const Inside inside(open_);
  for (const char* keyword : {"properties", "patternProperties"})
    if (place.has(keyword) && !place.schema.at(keyword).is_object())
      return schema_error(place.path, keyword, "expected an object");
  const bool named = (place.has("properties") && !place.schema.at("properties").empty()) ||
                     (place.has("required") && !place.schema.at("required").empty());
  for (const char* keyword : {"patternProperties", "propertyNames"})
    if (place.has(keyword) && named)
      return schema_error(place.path, keyword, "not supported beside properties or required");
  if (place.has("patternProperties")) {
    const Schema& patterns = place.schema.at("patternProperties");
    if (patterns.size() != 1 || place.has("propertyNames") ||
        (place.has("additionalProperties") && place.schema.at("additionalProperties") != false))
      return schema_error(place.path, "patternProperties", "supported with one pattern and no other members");
    const std::string pattern = patterns.begin().key();
    const Result<std::string> key = regex_to_grammar(pattern, RegexPlace::kJsonString);
    if (!key.ok()) return schema_error(place.path, "patternProperties", key.error().message);
    WH_ASSIGN(const std::string held, value({patterns.begin().value(),
                                             place.path + "/patternProperties/" + pattern, place.depth + 1}));
    return map_of(place, json_.quoted(*key), held);
  }
  const bool silent = !place.has("properties") && !place.has("required");
  WH_ASSIGN(const std::string other, other_value(place, silent));
  if (named) return named_members(place, other);
  if (other.empty()) return std::string("\"{}\"");
  std::string key = json_.string();
  if (place.has("propertyNames")) {
    const SchemaAt names = place.at("propertyNames");
    if (names.schema.is_object()) {
      WH_TRY(check_keywords(names));
      WH_ASSIGN(Schema joined, merge(Schema{{"type", "string"}}, names.schema, names.path, "propertyNames"));
      const Schema& made = made_.emplace_back(std::move(joined));
      WH_ASSIGN(key, value({made, names.path, place.depth + 1}));
    } else if (names.schema != true) {
      return schema_error(place.path, "propertyNames", "expected an object");
    }
  }
  return map_of(place, key, other);
}

Result<std::string> SchemaReader::map_of(const SchemaAt& place, const std::string& key,
                                         const std::string& held) {
  WH_ASSIGN(const int64_t low, count_at(place, "minProperties", 0));
  WH_ASSIGN(const int64_t high, count_at(place, "maxProperties", -1));
  if (low > 1)
    return schema_error(place.path, "minProperties", "at most 1 is supported: members may repeat a name");
  if (high >= 0 && high < low) return schema_error(place.path, "maxProperties", "below minProperties");
  if (high == 0) return std::string("\"{}\"");
  const std::string one = json_.member(group(key), held);
  const std::string further = repeat(sequence({json_.comma(), one}), 0, high < 0 ? -1 : high - 1);
  return json_.rules().add("object", json_.braces(sequence({one, further}), low == 0));
}

Result<std::string> SchemaReader::other_key(const SchemaAt& place, const Schema& properties) {
  Names names;
  for (const auto& [name, schema] : properties.items()) {
    WH_ASSIGN(names.emplace_back(), characters(name));
    if (names.back().size() > kLongestName || names.back().empty())
      return schema_error(place.path, "additionalProperties",
                          fmt::format("not supported beside a member whose name is empty or has more than {} "
                                      "characters",
                                      kLongestName));
  }
  std::ranges::sort(names);
  if (!json_.rules().has("json_key_rest"))
    json_.rules().define("json_key_rest", "[^\\u0000-\\u001f\\u0022\\u005c]* \"\\\"\"");
  return json_.rules().add("key", sequence({"\"\\\"\"", other_rest(names, 0, names.size(), 0)}));
}

// At least one of the members, in their order, with all that must be there; behind them any of `other`, where
// there is one. What may be next stands side by side in one rule, whose names the library then reads as one
// tree; of a chain of rules it would follow each on its own.
std::string SchemaReader::members_in_order(const std::vector<std::string>& member,
                                           const std::vector<bool>& must, const std::string& other) {
  const std::string others = other.empty() ? "" : repeat(sequence({json_.comma(), other}), 0, -1);
  std::string rest = others;      // behind member i
  std::vector<std::string> ways;  // members i, i + 1, ... up to one that must be there, each with its rest
  std::vector<std::string> next(member.size());  // [i]: the rule of those ways
  bool open = true;                              // none of members i, i + 1, ... must be there
  for (size_t i = member.size(); i-- > 0;) {
    if (must[i]) ways.clear();
    open = open && !must[i];
    ways.insert(ways.begin(), sequence({member[i], rest}));
    if (ways.size() > kSideBySide) {
      ways.resize(kSideBySide);
      ways.push_back(next[i + kSideBySide]);
    }
    if (i == 0) break;
    next[i] = ways.size() == 1 ? ways[0] : json_.rules().add("members", choices(ways));
    rest = sequence({json_.comma(), next[i]});
    if (open) rest = others.empty() ? repeat(rest, 0, 1) : choices({rest, others});
    if (rest.size() > kLongestInline) rest = json_.rules().add("rest", rest);
  }
  if (open && !other.empty()) ways.push_back(sequence({other, others}));
  return choices(ways);
}

Result<std::string> SchemaReader::named_members(const SchemaAt& place, const std::string& other) {
  WH_ASSIGN(const std::vector<std::string> required, required_names(place));
  Schema members = place.has("properties") ? place.schema.at("properties") : no_members();
  for (const std::string& name : required) {
    if (members.contains(name)) continue;
    if (other.empty() && place.has("additionalProperties"))
      return schema_error(place.path, "required", "'" + name + "' is no member of properties");
    members[name] =
        place.has("additionalProperties") ? place.schema.at("additionalProperties") : Schema(true);
  }
  const size_t count = members.size();
  WH_ASSIGN(const int64_t low, count_at(place, "minProperties", 0));
  WH_ASSIGN(const int64_t high, count_at(place, "maxProperties", -1));
  if (low > static_cast<int64_t>(required.size()))
    return schema_error(place.path, "minProperties",
                        "more than are required is not supported beside properties");
  if (high >= 0 && (!other.empty() || high < static_cast<int64_t>(count)))
    return schema_error(place.path, "maxProperties", "below the number of properties is not supported");

  std::vector<std::string> member;
  std::vector<bool> must;
  for (const auto& [name, schema] : members.items()) {
    WH_ASSIGN(std::string held, value({schema, place.path + "/properties/" + name, place.depth + 1}));
    if (held.size() > kLongestInline) held = json_.rules().add("value", std::move(held));
    must.push_back(std::ranges::find(required, name) != required.end());
    member.push_back(json_.member(json_.constant(name), held));
  }
  std::string first_other;  // members without a name
  if (!other.empty()) {
    WH_ASSIGN(const std::string key, other_key(place, members));
    first_other = json_.rules().add("member", json_.member(key, other));
  }
  const bool may_be_empty = required.empty();
  return json_.rules().add("object", json_.braces(members_in_order(member, must, first_other), may_be_empty));
}

}  // namespace whippet::grammar
