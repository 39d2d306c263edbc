#include "cli/server_options.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "api/config_rules.h"
#include "base/fields.h"
#include "openai/tool_format.h"
#include "text/utf8.h"

namespace whippet {
namespace {

using serve::ServerConfig;
using Strings = std::vector<std::string>;

constexpr double kMaxSeconds = 1e9;

template <class T>
const char* type_label() {
  if constexpr (std::is_same_v<T, double>) return "SECONDS";
  if constexpr (std::is_same_v<T, uint64_t>) return "SIZE";
  if constexpr (std::is_integral_v<T>) return "N";
  return "TEXT";
}

// One value, or a list in JSON as vLLM's users write it: '["*"]'.
Status add_values(Strings& list, const std::string& text) {
  if (!text.starts_with('[')) {
    list.push_back(text);
    return {};
  }
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_array()) return make_error(Code::kInvalidArgument, "'{}' is no JSON array", text);
  for (const auto& value : parsed) {
    if (!value.is_string())
      return make_error(Code::kInvalidArgument, "'{}': an array of strings is needed", text);
    list.push_back(value.get<std::string>());
  }
  return {};
}

template <class T>
Status set_value(T& value, const Strings& texts) {
  const std::string& text = texts.back();
  if constexpr (std::is_same_v<T, Strings>) {
    value.clear();
    for (const std::string& one : texts) WH_TRY(add_values(value, one));
  } else if constexpr (std::is_same_v<T, bool>) {
    WH_ASSIGN(value, parse_switch(text));
  } else if constexpr (std::is_same_v<T, double>) {
    WH_ASSIGN(value, parse_number(text));
    if (value < 0 || value > kMaxSeconds)
      return make_error(Code::kInvalidArgument, "{} is outside the allowed range 0 to {} seconds", text,
                        kMaxSeconds);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    WH_ASSIGN(value, parse_bytes(text));
  } else if constexpr (std::is_integral_v<T>) {
    WH_ASSIGN(const int64_t number, parse_integer(text, 0, std::numeric_limits<T>::max()));
    value = static_cast<T>(number);
  } else {
    value = text;
  }
  return {};
}

Status set_knob(ServerConfig& config, std::string_view name, const Strings& texts,
                const std::string& source) {
  Status status;
  ServerConfig::fields(config, [&](const char* knob, auto& value, const char*) {
    if (name == knob) status = set_value(value, texts);
  });
  if (status.ok()) return {};
  return make_error(status.error().code, "{}: {}", source, status.error().message);
}

// A list in the environment or a config file is separated by commas, or JSON.
Strings split_variable(const std::string& text) {
  if (text.starts_with('[')) return {text};
  Strings parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, Strings>) return fmt::format("{}", fmt::join(value, ","));
  if constexpr (std::is_same_v<T, uint64_t>) return bytes_to_text(value);
  if constexpr (!std::is_same_v<T, Strings> && !std::is_same_v<T, uint64_t>) return fmt::format("{}", value);
}

// The knobs, and whether each is a list.
std::vector<std::pair<std::string, bool>> knobs() {
  std::vector<std::pair<std::string, bool>> all;
  const ServerConfig config;
  ServerConfig::fields(config, [&](const char* name, const auto& value, const char*) {
    all.emplace_back(name, std::is_same_v<std::remove_cvref_t<decltype(value)>, Strings>);
  });
  return all;
}

Status read_file(const ConfigLayers::Others& file, ServerConfig& config) {
  for (const auto& [name, is_list] : knobs()) {
    const auto found = file.find(name);
    if (found == file.end()) continue;
    const Strings values = is_list ? split_variable(found->second.text) : Strings{found->second.text};
    if (!values.empty()) WH_TRY(set_knob(config, name, values, found->second.source));
  }
  return {};
}

Status read_environment(const Context& context, ServerConfig& config) {
  for (const auto& [name, is_list] : knobs()) {
    const std::string variable = variable_name(name);
    const auto found = context.variables.find(variable);
    if (found == context.variables.end()) continue;
    // Kubernetes sets it for a service of the name whippet.
    if (variable == "WHIPPET_PORT" && found->second.find("://") != std::string::npos) continue;
    const Strings values = is_list ? split_variable(found->second) : Strings{found->second};
    if (!values.empty()) WH_TRY(set_knob(config, name, values, variable));
  }
  return {};
}

// One key a line; empty lines and those that begin with # do not count.
Status read_keys(const std::string& path, Strings& keys) {
  std::ifstream file(path);
  if (!file) return make_error(Code::kNotFound, "--api-key-file {}: cannot be read", path);
  for (std::string line; std::getline(file, line);) {
    while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') keys.push_back(line);
  }
  if (keys.empty())
    return make_error(Code::kInvalidArgument, "--api-key-file {}: there is no key in it", path);
  return {};
}

Status check_choice(const char* flag, const std::string& value, const Strings& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return make_error(Code::kInvalidArgument, "{}: there is no '{}' here, but {}{}", flag, value,
                    fmt::join(known, ", "), did_you_mean(value, known));
}

}  // namespace

ServerOptions::ServerOptions(CLI::App& app, const Context& context) : context_(&context) {
  const ServerConfig defaults;
  ServerConfig::fields(defaults, [&](const char* name, const auto& value, const char* help) {
    using T = std::remove_cvref_t<decltype(value)>;
    std::string flag = flag_name(name);
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<T, bool>) {
      const std::string off = "--no-" + flag.substr(2);
      option = add_switch(app, flag + ",!" + off, help + std::string(value ? "; default: on" : ""));
    } else {
      if (flag == "--allowed-origins") flag += ",--cors-origins";
      option = add_value(app, flag, type_label<T>(), help);
      if (std::is_same_v<T, Strings>) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    option->group("Server");
    knobs_.emplace_back(name, option);
  });
  key_file_ = add_value(app, "--api-key-file", "FILE", "keys, one a line")->group("Server");
}

std::vector<std::string> ServerOptions::names() {
  std::vector<std::string> all;
  for (const auto& [name, is_list] : knobs()) all.push_back(name);
  return all;
}

std::string ServerOptions::describe(const ServerConfig& config) {
  std::string text;
  ServerConfig::fields(config, [&](const char* name, const auto& value, const char*) {
    const bool secret = std::string_view(name) == "api_key" && !config.api_keys.empty();
    text += fmt::format("{}: {}\n", name, secret ? "(not shown)" : text_of(value));
  });
  return text;
}

std::vector<std::string> ServerOptions::variables() {
  std::vector<std::string> names;
  for (const auto& [name, is_list] : knobs()) names.push_back(variable_name(name));
  return names;
}

Result<ServerConfig> ServerOptions::read(const ConfigLayers::Others& file) const {
  ServerConfig config;
  WH_TRY(read_file(file, config));
  WH_TRY(read_environment(*context_, config));
  for (const auto& [name, option] : knobs_)
    if (option->count() > 0) WH_TRY(set_knob(config, name, option->results(), flag_name(name)));
  if (key_file_->count() > 0) WH_TRY(read_keys(key_file_->as<std::string>(), config.api_keys));
  if (!config.chat_template_kwargs.empty() &&
      !nlohmann::json::parse(config.chat_template_kwargs, nullptr, false).is_object())
    return make_error(Code::kInvalidArgument, "--chat-template-kwargs: a JSON object is needed");
  Strings parsers = openai::tool_format_names();
  parsers.insert(parsers.end(), {"auto", "none"});
  WH_TRY(check_choice("--tool-call-parser", config.tool_call_parser, parsers));
  WH_TRY(
      check_choice("--reasoning-parser", config.reasoning_parser, {"qwen3", "deepseek_r1", "auto", "none"}));
  return config;
}

}  // namespace whippet
