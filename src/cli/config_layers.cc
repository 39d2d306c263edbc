#include "cli/config_layers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "api/config_rules.h"
#include "base/fields.h"

namespace whippet {
namespace {

constexpr uintmax_t kLargestFile = 1 << 20;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed))
    return make_error(Code::kNotFound, "config file {} is not there, or is no file", path.string());
  if (std::filesystem::file_size(path, failed) > kLargestFile)
    return make_error(Code::kInvalidArgument, "config file {} is larger than 1 MiB", path.string());
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(Code::kNotFound, "config file {} cannot be read", path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Error no_value(const std::string& name) {
  return make_error(Code::kInvalidArgument, "{}: expected one value (a word, a number, true or false)", name);
}

Result<Pairs> parse_json_config(const std::string& text) {
  const auto object = nlohmann::ordered_json::parse(text, nullptr, false, true);
  if (!object.is_object())
    return make_error(Code::kInvalidArgument, "expected one JSON object of names and values");
  Pairs pairs;
  for (const auto& [name, value] : object.items()) {
    if (value.is_structured() || value.is_null()) return no_value(name);
    pairs.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return pairs;
}

Result<Pairs> parse_yaml_config(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    Pairs pairs;
    if (root.IsNull()) return pairs;
    if (!root.IsMap())
      return make_error(Code::kInvalidArgument, "expected lines of the form `name: value` (YAML)");
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) return make_error(Code::kInvalidArgument, "a name is not a word");
      if (!entry.second.IsScalar()) return no_value(entry.first.Scalar());
      pairs.emplace_back(entry.first.Scalar(), entry.second.Scalar());
    }
    return pairs;
  } catch (const YAML::Exception& failure) {
    return make_error(Code::kInvalidArgument, "no valid YAML: {}", failure.what());
  }
}

// Orchestrators set such variables for every service named whippet; they are not meant for us.
bool is_service_variable(std::string_view name) {
  return name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos ||
         name.find("_PORT_") != std::string_view::npos || name == "WHIPPET_PORT";
}

}  // namespace

Status ConfigLayers::set(std::string_view name, std::string_view text, std::string_view source) {
  const std::string knob = knob_name(name);
  if (std::find(other_names_.begin(), other_names_.end(), knob) != other_names_.end()) {
    others_[knob] = {.text = std::string(text), .source = std::string(source)};
    return {};
  }
  std::vector<std::string> known = knob_names();
  if (std::find(known.begin(), known.end(), knob) == known.end()) {
    known.insert(known.end(), other_names_.begin(), other_names_.end());
    if (is_foreign_knob(knob) && foreign_knob_advice(knob, text).empty()) return {};
    return make_error(Code::kInvalidArgument, "{}: {}", source,
                      unknown_knob("setting", name, text, known).message);
  }
  const Status status = set_knob(config_, knob, text);
  if (!status.ok()) return make_error(Code::kInvalidArgument, "{}: {}", source, status.error().message);
  sources_[knob] = source;
  return {};
}

Status ConfigLayers::read_file(const std::filesystem::path& path) {
  WH_ASSIGN(const std::string text, read_text(path));
  const std::string shown = path.filename().string();
  Result<Pairs> pairs = path.extension() == ".json" ? parse_json_config(text) : parse_yaml_config(text);
  if (!pairs.ok()) return make_error(Code::kInvalidArgument, "{}: {}", shown, pairs.error().message);
  std::set<std::string> seen;
  for (const auto& [name, value] : *pairs) {
    if (!seen.insert(knob_name(name)).second)
      return make_error(Code::kInvalidArgument, "{}: {} is given twice", shown, name);
    WH_TRY(set(name, value, fmt::format("{} ({})", shown, name)));
  }
  return {};
}

Status ConfigLayers::read_environment(const std::map<std::string, std::string>& variables) {
  for (const std::string& knob : knob_names()) {
    const auto found = variables.find(variable_name(knob));
    if (found != variables.end()) WH_TRY(set(knob, found->second, found->first));
  }
  return {};
}

std::string ConfigLayers::describe() const {
  std::string text;
  EngineConfig::fields(config_, [&](const char* name, const auto& value, const char*) {
    std::string shown = knob_text(config_, name);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      shown = nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const auto source = sources_.find(name);
    text += fmt::format("{:<40} # {}\n", fmt::format("{}: {}", name, shown),
                        source == sources_.end() ? "default" : source->second);
  });
  return text;
}

std::vector<std::string> unknown_variables(const std::map<std::string, std::string>& variables,
                                           const std::vector<std::string>& known) {
  std::vector<std::string> names = known;
  for (const std::string& knob : knob_names()) names.push_back(variable_name(knob));
  std::vector<std::string> warnings;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("WHIPPET_") || is_service_variable(name)) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    warnings.push_back(
        fmt::format("the environment variable {} means nothing here{}", name, did_you_mean(name, names)));
  }
  return warnings;
}

}  // namespace whippet
