// Fields of JSON that came from outside: a missing or wrongly typed one reads as its default, never as a
// throw.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace whippet {

inline const nlohmann::json& field_at(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

inline std::string string_at(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = field_at(object, name);
  return field.is_string() ? field.get<std::string>() : "";
}

inline std::optional<uint64_t> count_at(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = field_at(object, name);
  if (!field.is_number_integer()) return std::nullopt;
  if (!field.is_number_unsigned() && field.get<int64_t>() < 0) return std::nullopt;
  return field.get<uint64_t>();
}

}  // namespace whippet
