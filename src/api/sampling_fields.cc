#include "api/sampling_fields.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/fields.h"
#include "engine/sampling_check.h"

namespace whippet {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kLongestShown = 60;  // bytes of a wrong value in a message

Error wrong_type(std::string_view name, const char* expected, const json& found) {
  std::string shown =
      found.is_structured() ? found.type_name() : found.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > kLongestShown) shown = shown.substr(0, kLongestShown) + "...";
  return make_error(Code::kInvalidArgument, "{}: expected {}, found {}", name, expected, shown);
}

Status read(std::string_view name, const json& value, float& field) {
  if (!value.is_number()) return wrong_type(name, "a number", value);
  const double number = value.get<double>();
  if (!(std::abs(number) <= std::numeric_limits<float>::max()))
    return wrong_type(name, "a finite number", value);
  field = static_cast<float>(number);
  return {};
}

Status read(std::string_view name, const json& value, int32_t& field) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMost);
  const bool fits = value.is_number_integer() && !too_large && value.get<int64_t>() >= -kMost &&
                    value.get<int64_t>() <= kMost;
  if (!fits) return wrong_type(name, "a whole number of 32 bits", value);
  field = value.get<int32_t>();
  return {};
}

Status read(std::string_view name, const json& value, uint64_t& field) {
  if (value.is_number_unsigned()) {
    field = value.get<uint64_t>();
  } else if (value.is_number_integer()) {
    field = static_cast<uint64_t>(value.get<int64_t>());
  } else {
    return wrong_type(name, "a whole number of 64 bits", value);
  }
  return {};
}

Status read(std::string_view name, const json& value, bool& field) {
  if (!value.is_boolean()) return wrong_type(name, "true or false", value);
  field = value.get<bool>();
  return {};
}

Status read(std::string_view name, const json& value, std::vector<std::string>& field) {
  const json list = value.is_string() ? json::array({value}) : value;
  if (!list.is_array()) return wrong_type(name, "a text or a list of texts", value);
  field.clear();
  for (const json& item : list) {
    if (!item.is_string()) return wrong_type(name, "a text or a list of texts", item);
    field.push_back(item.get<std::string>());
  }
  return {};
}

Status read(std::string_view name, const json& value, std::vector<int32_t>& field) {
  if (!value.is_array()) return wrong_type(name, "a list of token ids", value);
  field.clear();
  for (const json& item : value) {
    int32_t id = 0;
    WH_TRY(read(name, item, id));
    field.push_back(id);
  }
  return {};
}

Status read(std::string_view name, const json& value, std::vector<std::pair<int32_t, float>>& field) {
  if (!value.is_object()) return wrong_type(name, "an object {\"token id\": bias}", value);
  field.clear();
  for (const auto& [key, bias] : value.items()) {
    const auto id = parse_integer(key, 0, std::numeric_limits<int32_t>::max());
    if (!id.ok()) return make_error(Code::kInvalidArgument, "{}: token id {}", name, id.error().message);
    float number = 0;
    WH_TRY(read(name, bias, number));
    field.emplace_back(static_cast<int32_t>(*id), number);
  }
  return {};
}

template <class T>
Status read(std::string_view name, const json& value, std::optional<T>& field) {
  T inner{};
  WH_TRY(read(name, value, inner));
  field = std::move(inner);
  return {};
}

ordered_json to_json(const std::vector<std::pair<int32_t, float>>& biases) {
  ordered_json object = ordered_json::object();
  for (const auto& [id, bias] : biases) object[std::to_string(id)] = bias;
  return object;
}
template <class T>
ordered_json to_json(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}
// The shortest decimal that is this float, and not the double that it is exactly.
ordered_json to_json(float value) { return std::stod(fmt::format("{}", value)); }
template <class T>
ordered_json to_json(const T& value) {
  return value;
}

}  // namespace

std::vector<std::string> sampling_field_names() {
  std::vector<std::string> names;
  const SamplingParams params;
  sampling_fields(params, [&](const char* name, const auto&, const char*) { names.push_back(name); });
  return names;
}

bool is_sampling_field(std::string_view name) {
  bool known = false;
  const SamplingParams params;
  sampling_fields(params, [&](const char* field, const auto&, const char*) { known |= name == field; });
  return known;
}

Status set_sampling_field(SamplingParams& params, std::string_view name, const json& value) {
  Status status;
  bool known = false;
  sampling_fields(params, [&](const char* field_name, auto& field, const char*) {
    if (name != field_name) return;
    known = true;
    if (value.is_null()) return;
    auto parsed = field;
    status = read(name, value, parsed);
    if (status.ok()) field = std::move(parsed);
  });
  if (!known)
    return make_error(Code::kInvalidArgument, "unknown field {}{}", name,
                      did_you_mean(name, sampling_field_names()));
  return status;
}

Status check_sampling_fields(const SamplingParams& params, int32_t vocab_size) {
  return check_sampling(params, vocab_size, true);
}

ordered_json sampling_to_json(const SamplingParams& params) {
  ordered_json object = ordered_json::object();
  sampling_fields(params,
                  [&](const char* name, const auto& field, const char*) { object[name] = to_json(field); });
  return object;
}

}  // namespace whippet
