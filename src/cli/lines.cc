#include "cli/lines.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "api/json_file.h"

namespace whippet {
namespace {

bool is_standard_input(const std::string& path) { return path.empty() || path == "-"; }

Result<std::ifstream> open_file(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed))
    return make_error(Code::kInvalidArgument, "{} is a folder, not a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(Code::kNotFound, "{} cannot be read: {}", path, std::strerror(errno));
  return file;
}

}  // namespace

Result<LineReader> LineReader::open(const std::string& path) {
  LineReader reader;
  reader.from_file_ = !is_standard_input(path);
  if (reader.from_file_) {
    WH_ASSIGN(reader.file_, open_file(path));
  }
  return reader;
}

Status LineReader::status() const {
  const std::istream& in = from_file_ ? static_cast<const std::istream&>(file_) : std::cin;
  if (!in.bad()) return {};
  return make_error(Code::kNotFound, "the input cannot be read beyond line {}", number_);
}

bool LineReader::next(std::string& line) {
  std::istream& in = from_file_ ? static_cast<std::istream&>(file_) : std::cin;
  while (std::getline(in, line)) {
    ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) return true;
  }
  return false;
}

Result<std::string> read_all(const std::string& path) {
  try {
    if (is_standard_input(path)) return std::string(std::istreambuf_iterator<char>(std::cin), {});
    WH_ASSIGN(std::ifstream file, open_file(path));
    return std::string(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {
    return make_error(Code::kNotFound, "{} cannot be read: {}", path.empty() ? "standard input" : path,
                      std::strerror(errno));
  }
}

Result<nlohmann::ordered_json> parse_object(const std::string& line) {
  WH_ASSIGN(nlohmann::ordered_json object, parse_json<nlohmann::ordered_json>(line));
  if (!object.is_object())
    return make_error(Code::kInvalidArgument, "expected one JSON object a line, found {}",
                      object.type_name());
  return object;
}

Result<std::vector<int32_t>> read_ids(const nlohmann::ordered_json& object, const char* key) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const nlohmann::ordered_json& list = object[key];
  if (!list.is_array()) return make_error(Code::kInvalidArgument, "{}: expected a list of token ids", key);
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const nlohmann::ordered_json& id : list) {
    const bool too_large = id.is_number_unsigned() && id.get<uint64_t>() > static_cast<uint64_t>(kMost);
    if (!id.is_number_integer() || too_large || id.get<int64_t>() < 0 || id.get<int64_t>() > kMost)
      return make_error(Code::kInvalidArgument, "{}: '{}' is no token id", key,
                        id.is_structured() ? id.type_name() : id.dump());
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

nlohmann::ordered_json error_line(const Error& error, int64_t line) {
  return {{"error", error.message}, {"line", line}};
}

}  // namespace whippet
