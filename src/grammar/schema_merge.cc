// Schemas that hold together (allOf, what stands beside a $ref or an anyOf) made one, and followed
// references.
#include <algorithm>

#include "grammar/schema_grammar.h"
#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// One step of a JSON pointer in a URI: %25 is %, ~1 is /, ~0 is ~.
std::string unescape(std::string_view step) {
  std::string plain;
  for (size_t i = 0; i < step.size(); ++i) {
    const bool hex =
        step[i] == '%' && i + 2 < step.size() && hex_value(step[i + 1]) >= 0 && hex_value(step[i + 2]) >= 0;
    plain += hex ? static_cast<char>(hex_value(step[i + 1]) * 16 + hex_value(step[i + 2])) : step[i];
    if (hex) i += 2;
  }
  std::string result;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool escaped =
        plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1');
    result += !escaped ? plain[i] : plain[i + 1] == '0' ? '~' : '/';
    if (escaped) ++i;
  }
  return result;
}

const Schema* step_into(const Schema& from, const std::string& step) {
  if (from.is_object()) return from.contains(step) ? &from.at(step) : nullptr;
  if (!from.is_array() || step.empty() || step.size() > 6) return nullptr;
  if (step.find_first_not_of("0123456789") != std::string::npos) return nullptr;
  const size_t index = std::stoul(step);
  return index < from.size() ? &from[index] : nullptr;
}

void join_required(Schema& into, const Schema& more) {
  for (const Schema& name : more)
    if (std::ranges::find(into, name) == into.end()) into.push_back(name);
}

// A member that only one of them names must be allowed by the other.
bool shuts_out(const Schema& closed, const Schema& other) {
  if (!closed.contains("additionalProperties") || closed.at("additionalProperties") == true) return false;
  if (!other.contains("properties")) return false;
  for (const auto& [name, schema] : other.at("properties").items())
    if (!closed.contains("properties") || !closed.at("properties").contains(name)) return true;
  return false;
}

}  // namespace

Result<Schema> merge(const Schema& a, const Schema& b, const std::string& path, const char* keyword) {
  if (!a.is_object() || !b.is_object()) return schema_error(path, keyword, "its parts must be objects");
  const auto conflict = [&](const std::string& what) {
    return schema_error(path, keyword,
                        fmt::format("two of its parts disagree in {}: write them as one", what));
  };
  for (const Schema* part : {&a, &b})
    if (part->contains("properties") && !part->at("properties").is_object())
      return schema_error(path, "properties", "expected an object");
  if (shuts_out(a, b) || shuts_out(b, a)) return conflict("additionalProperties");
  Schema result = a;
  for (const auto& [name, value] : b.items()) {
    if (!result.contains(name)) {
      result[name] = value;
    } else if (name == "required" && value.is_array() && result[name].is_array()) {
      join_required(result[name], value);
    } else if (name == "properties") {
      for (const auto& [member, schema] : value.items()) {
        if (result[name].contains(member) && result[name][member] != schema)
          return conflict("the member " + member);
        result[name][member] = schema;
      }
    } else if (result[name] != value && !is_annotation(name)) {
      return conflict(name);
    }
  }
  return result;
}

Result<SchemaAt> SchemaReader::resolve(const SchemaAt& place) const {
  const Schema& value = place.schema.at("$ref");
  if (!value.is_string()) return schema_error(place.path, "$ref", "expected a text");
  const std::string uri = value.get<std::string>();
  if (uri != "#" && !uri.starts_with("#/"))
    return schema_error(place.path, "$ref", "only references within the schema are supported (#/$defs/...)");
  const Schema* at = &root_;
  for (size_t begin = 2; begin <= uri.size() && uri != "#";) {
    const size_t end = std::min(uri.find('/', begin), uri.size());
    at = step_into(*at, unescape(std::string_view(uri).substr(begin, end - begin)));
    if (at == nullptr) return schema_error(place.path, "$ref", "there is nothing at " + uri);
    begin = end + 1;
  }
  return SchemaAt{*at, uri, place.depth + 1};
}

// $ref and allOf replaced by what they say, joined with what stands beside them.
Result<Schema> SchemaReader::flatten(const SchemaAt& place) {
  if (++steps_ > kMostSteps || place.depth > kMostSchemaDepth)
    return schema_error(place.path, "allOf", "too many parts, or it is part of itself");
  Schema result = Schema::object();
  for (const auto& [name, value] : place.schema.items())
    if (name != "$ref" && name != "allOf") result[name] = value;
  WH_TRY(check_keywords(place));
  std::vector<SchemaAt> parts;
  if (place.has("$ref")) {
    WH_ASSIGN(SchemaAt target, resolve(place));
    parts.push_back(std::move(target));
  }
  if (place.has("allOf")) {
    const Schema& list = place.schema.at("allOf");
    if (!list.is_array() || list.empty())
      return schema_error(place.path, "allOf", "expected a list of schemas");
    for (size_t i = 0; i < list.size(); ++i)
      parts.push_back({list[i], fmt::format("{}/allOf/{}", place.path, i), place.depth + 1});
  }
  for (const SchemaAt& part : parts) {
    if (part.schema == true) continue;
    if (!part.schema.is_object()) return schema_error(part.path, "allOf", "its parts must be objects");
    WH_ASSIGN(const Schema flat, flatten(part));
    WH_ASSIGN(result, merge(result, flat, place.path, place.has("allOf") ? "allOf" : "$ref"));
  }
  return result;
}

}  // namespace whippet::grammar
