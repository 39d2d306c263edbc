#include "api/json_file.h"

#include <fstream>
#include <iterator>
#include <limits>

#include "base/json_nesting.h"

namespace whippet {
namespace {

constexpr uint64_t kLargestJsonFile = 256 << 20;
constexpr int kDeepest = 100;

// nlohmann's message without its number: "[json.exception.parse_error.101] parse error at line 1, ...".
std::string reason(const std::exception& failure) {
  const std::string text = failure.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

template <class Json>
Result<Json> parse_json(std::string_view text) {
  if (json_nesting(text) > kDeepest)
    return make_error(Code::kInvalidArgument, "JSON nests deeper than {} levels", kDeepest);
  try {
    return Json::parse(text);
  } catch (const std::exception& failure) {
    return make_error(Code::kInvalidArgument, "no valid JSON: {}", reason(failure));
  }
}
template Result<nlohmann::json> parse_json(std::string_view text);
template Result<nlohmann::ordered_json> parse_json(std::string_view text);

Result<std::string> read_small_file(const std::filesystem::path& path, uint64_t max_bytes) {
  std::error_code failed;
  const uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) return make_error(Code::kNotFound, "{} cannot be read: {}", path.string(), failed.message());
  if (bytes > max_bytes)
    return make_error(Code::kCorrupt, "{} has {} bytes, more than the {} that such a file may have",
                      path.string(), bytes, max_bytes);
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(Code::kNotFound, "{} cannot be read", path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<nlohmann::json> read_json_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return nlohmann::json();
  WH_ASSIGN(const std::string text, read_small_file(path, kLargestJsonFile));
  auto object = parse_json<nlohmann::json>(text);
  if (!object.ok()) return make_error(Code::kCorrupt, "{}: {}", path.string(), object.error().message);
  if (!object->is_object()) return make_error(Code::kCorrupt, "{} holds no JSON object", path.string());
  return object;
}

std::vector<int32_t> ids_of(const nlohmann::json& object, const char* key) {
  std::vector<int32_t> ids;
  if (!object.is_object() || !object.contains(key)) return ids;
  const nlohmann::json& value = object[key];
  const nlohmann::json list = value.is_array() ? value : nlohmann::json::array({value});
  for (const nlohmann::json& id : list) {
    if (!id.is_number_integer()) continue;
    if (id.is_number_unsigned() && id.get<uint64_t>() > std::numeric_limits<int32_t>::max()) continue;
    const int64_t number = id.get<int64_t>();
    if (number >= 0 && number <= std::numeric_limits<int32_t>::max())
      ids.push_back(static_cast<int32_t>(number));
  }
  return ids;
}

std::optional<std::string> spelling_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const nlohmann::json& value = object[key];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return std::nullopt;
}

}  // namespace whippet
