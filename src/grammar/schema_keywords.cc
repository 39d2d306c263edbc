// Which keywords the walk knows, and how their values are read.
#include <algorithm>
#include <array>
#include <cmath>

#include "grammar/regex_grammar.h"
#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

// Of the drafts 4 to 2020-12; what is in neither list is no keyword, which by the standard says nothing.
constexpr auto kRefused = std::to_array<std::string_view>({"not",
                                                           "if",
                                                           "then",
                                                           "else",
                                                           "dependentRequired",
                                                           "dependentSchemas",
                                                           "dependencies",
                                                           "contains",
                                                           "minContains",
                                                           "maxContains",
                                                           "unevaluatedItems",
                                                           "unevaluatedProperties",
                                                           "additionalItems",
                                                           "$dynamicRef",
                                                           "$dynamicAnchor",
                                                           "$recursiveRef",
                                                           "$recursiveAnchor",
                                                           "$anchor",
                                                           "contentSchema",
                                                           "nullable",
                                                           "extends",
                                                           "disallow",
                                                           "divisibleBy"});
constexpr auto kHeld = std::to_array<std::string_view>({"$ref",
                                                        "allOf",
                                                        "anyOf",
                                                        "oneOf",
                                                        "const",
                                                        "enum",
                                                        "type",
                                                        "properties",
                                                        "required",
                                                        "additionalProperties",
                                                        "patternProperties",
                                                        "propertyNames",
                                                        "minProperties",
                                                        "maxProperties",
                                                        "items",
                                                        "prefixItems",
                                                        "minItems",
                                                        "maxItems",
                                                        "uniqueItems",
                                                        "minLength",
                                                        "maxLength",
                                                        "pattern",
                                                        "format",
                                                        "minimum",
                                                        "maximum",
                                                        "exclusiveMinimum",
                                                        "exclusiveMaximum",
                                                        "multipleOf"});

}  // namespace

Error schema_error(const std::string& path, std::string_view keyword, std::string_view why) {
  return make_error(Code::kInvalidArgument, "JSON schema: '{}' at {}: {}", keyword, path, why);
}

bool is_annotation(std::string_view keyword) {
  return std::ranges::find(kHeld, keyword) == kHeld.end() &&
         std::ranges::find(kRefused, keyword) == kRefused.end();
}

Status check_keywords(const SchemaAt& place) {
  for (const std::string_view keyword : kRefused) {
    if (!place.schema.contains(keyword)) continue;
    const bool draft_7 = keyword == "additionalItems";
    return schema_error(place.path, keyword,
                        draft_7 ? "not supported: write prefixItems and items instead"
                                : "not supported: leave it out, and check it when the answer is there");
  }
  if (place.has("uniqueItems") && place.schema.at("uniqueItems") != false)
    return schema_error(place.path, "uniqueItems", "not supported: leave it out, and check it afterwards");
  if (place.has("$id") && place.path != "#")
    return schema_error(place.path, "$id", "supported in the root only");
  return {};
}

Result<int64_t> count_at(const SchemaAt& place, const char* keyword, int64_t otherwise) {
  if (!place.has(keyword)) return otherwise;
  const Schema& value = place.schema.at(keyword);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0) || number != std::floor(number))
    return schema_error(place.path, keyword, "expected a whole number of 0 or more");
  if (number > kMostRepeats)
    return schema_error(place.path, keyword, fmt::format("at most {} is supported", kMostRepeats));
  return static_cast<int64_t>(number);
}

}  // namespace whippet::grammar
