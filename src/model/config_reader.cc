#include "model/config_reader.h"

#include <cmath>
#include <utility>

namespace whippet {
namespace {

constexpr size_t kMaxShown = 60;  // of a wrong value, in a message

std::string shown(const nlohmann::json* value) {
  if (value == nullptr) return "nothing";
  if (value->is_structured() && value->size() > 16) return value->is_array() ? "a long list" : "an object";
  std::string text = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

// Whole numbers only; 8.0 is one.
std::optional<int64_t> whole(const nlohmann::json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX) return value.get<int64_t>();
  if (value.is_number_integer() && !value.is_number_unsigned()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) < 1e15) || std::floor(number) != number) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace

ConfigReader::ConfigReader(const nlohmann::json& config, std::string label)
    : config_(config), label_(std::move(label)) {
  WH_CHECK(config.is_object());
}

const nlohmann::json* ConfigReader::find(const std::string& key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigReader::wrong(const std::string& key, const std::string& expected) {
  fail(Code::kCorrupt, "{}: expected {}, found {}", key, expected, shown(find(key)));
}

int32_t ConfigReader::integer(const std::string& key, int32_t low, int32_t high) {
  const nlohmann::json* value = find(key);
  const std::optional<int64_t> number = value == nullptr ? std::nullopt : whole(*value);
  if (number && *number >= low && *number <= high) return static_cast<int32_t>(*number);
  wrong(key, fmt::format("a whole number from {} to {}", low, high));
  return low;
}

int32_t ConfigReader::integer_or(const std::string& key, int32_t fallback, int32_t low, int32_t high) {
  return find(key) == nullptr ? fallback : integer(key, low, high);
}

double ConfigReader::number(const std::string& key, double low, double high) {
  const nlohmann::json* value = find(key);
  if (value != nullptr && value->is_number()) {
    const double number = value->get<double>();
    if (number >= low && number <= high) return number;
  }
  wrong(key, fmt::format("a number from {} to {}", low, high));
  return low;
}

double ConfigReader::number_or(const std::string& key, double fallback, double low, double high) {
  return find(key) == nullptr ? fallback : number(key, low, high);
}

bool ConfigReader::flag_or(const std::string& key, bool fallback) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return fallback;
}

std::string ConfigReader::text_or(const std::string& key, const std::string& fallback) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "a string");
  return fallback;
}

std::vector<int32_t> ConfigReader::ids(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  const nlohmann::json list = value->is_array() ? *value : nlohmann::json::array({*value});
  std::vector<int32_t> out;
  for (const nlohmann::json& element : list) {
    const std::optional<int64_t> id = whole(element);
    if (!id || *id > INT32_MAX) {
      wrong(key, "a token id or a list of them");
      return {};
    }
    if (*id >= 0) out.push_back(static_cast<int32_t>(*id));
  }
  return out;
}

Status ConfigReader::status() const {
  if (error_) return *error_;
  return {};
}

}  // namespace whippet
