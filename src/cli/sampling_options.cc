#include "cli/sampling_options.h"

#include <algorithm>
#include <type_traits>

#include "api/config_rules.h"
#include "api/json_file.h"
#include "api/sampling_fields.h"
#include "cli/command.h"

namespace whippet {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;
using Ids = std::vector<int32_t>;

template <class T>
const char* type_label() {
  if constexpr (std::is_same_v<T, float>) return "X";
  if constexpr (std::is_same_v<T, Strings>) return "TEXT";
  if constexpr (std::is_same_v<T, Ids> || std::is_same_v<T, std::optional<Ids>>) return "ID";
  if constexpr (std::is_same_v<T, std::vector<std::pair<int32_t, float>>>) return "JSON";
  return "N";
}

template <class T>
constexpr bool is_list =
    std::is_same_v<T, Strings> || std::is_same_v<T, Ids> || std::is_same_v<T, std::optional<Ids>>;

// A word that is no JSON stays a word, so that the field's own message shows it.
json value_of(const std::string& text) {
  auto parsed = parse_json<json>(text);
  return parsed.ok() ? std::move(*parsed) : json(text);
}

template <class T>
json value_of(const CLI::Option& option) {
  const Strings& given = option.results();
  if constexpr (std::is_same_v<T, Strings>) return given;
  if constexpr (is_list<T>) {
    json list = json::array();
    for (const std::string& text : given) list.push_back(value_of(text));
    return list;
  }
  return value_of(given.back());
}

}  // namespace

SamplingOptions::SamplingOptions(CLI::App& app, const std::vector<std::string>& without) {
  const SamplingParams defaults;
  sampling_fields(defaults, [&](const char* name, const auto& field, const char* help) {
    using Field = std::decay_t<decltype(field)>;
    if (std::string(name) == "seed" || std::find(without.begin(), without.end(), name) != without.end())
      return;
    const std::string flag = flag_name(name);
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<Field, bool>) {
      option = add_switch(app, flag + ",!--no-" + flag.substr(2),
                          field ? std::string(help) + "; default: on" : std::string(help));
    } else {
      option = add_value(app, flag, type_label<Field>(), help);
      if (is_list<Field>) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    options_.emplace_back(name, option->group("Sampling"));
  });
}

Status SamplingOptions::apply(SamplingParams& params) const {
  Status status;
  sampling_fields(params, [&](const char* name, auto& field, const char*) {
    const auto found = std::find_if(options_.begin(), options_.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (!status.ok() || found == options_.end() || found->second->count() == 0) return;
    const Status set =
        set_sampling_field(params, name, value_of<std::decay_t<decltype(field)>>(*found->second));
    if (!set.ok())
      status = make_error(Code::kInvalidArgument, "{} of {}", set.error().message, flag_name(name));
  });
  return status;
}

bool SamplingOptions::given(const std::string& field) const {
  return std::any_of(options_.begin(), options_.end(),
                     [&](const auto& entry) { return entry.first == field && entry.second->count() > 0; });
}

}  // namespace whippet
