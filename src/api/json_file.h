// JSON files of a checkpoint: small, untrusted, read as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whippet {

// kCorrupt names the file where it is larger than max_bytes; kNotFound where it cannot be read.
Result<std::string> read_small_file(const std::filesystem::path& path, uint64_t max_bytes);
// The object in the file, or null where there is no such file. kCorrupt where it is no JSON object.
Result<nlohmann::json> read_json_file(const std::filesystem::path& path);

// Parses one JSON text. An error says what is wrong, or that it nests deeper than a hundred levels (code that
// walks a value recurses that deep).
template <class Json>
Result<Json> parse_json(std::string_view text);
extern template Result<nlohmann::json> parse_json(std::string_view text);
extern template Result<nlohmann::ordered_json> parse_json(std::string_view text);

// An id or a list of ids under `key`; what is no id is left out.
std::vector<int32_t> ids_of(const nlohmann::json& object, const char* key);
// A token's spelling under `key`: a text, or an object with "content".
std::optional<std::string> spelling_of(const nlohmann::json& object, const char* key);

}  // namespace whippet
