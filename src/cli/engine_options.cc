#include "cli/engine_options.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "api/config_rules.h"
#include "base/log.h"
#include "cli/output.h"

namespace whippet {
namespace {

constexpr const char* kConfigVariable = "WHIPPET_CONFIG";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class T>
const char* type_label() {
  if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, uint64_t>) return "N";
  if constexpr (std::is_same_v<T, double>) return "X";
  if constexpr (std::is_same_v<T, ByteSize>) return "SIZE";
  return "TEXT";
}

// What --help says of a default; "" where the help itself does.
std::string defaults_to(int32_t value) { return value == 0 ? "" : std::to_string(value); }
template <class T>
std::string defaults_to(const T&) {
  return "";
}

template <class T>
CLI::Option* add_knob(CLI::App& app, const std::string& name, const T& value, const std::string& help) {
  const std::string flag = flag_name(name);
  if constexpr (std::is_same_v<T, bool>) {
    const std::string off = "--no-" + flag.substr(2);
    return add_switch(app, flag + ",!" + off, help + (value ? "; default: on" : ""));
  } else {
    const std::string shown = defaults_to(value);
    return add_value(app, flag, type_label<T>(), shown.empty() ? help : help + "; default: " + shown);
  }
}

}  // namespace

EngineOptions::EngineOptions(CLI::App& app, const Context& context, const std::vector<std::string>& knobs)
    : context_(&context) {
  model_ = app.add_option("MODEL", "folder, .gguf file, org/name, hf:, ms: or pypi: name; default: smollm2")
               ->group("Model");
  const EngineConfig defaults;
  EngineConfig::fields(defaults, [&](const char* name, const auto& value, const char* help) {
    if (!knobs.empty() && !contains(knobs, name)) return;
    CLI::Option* option = add_knob(app, name, value, help);
    option->group(contains(model_knobs(), name) ? "Model" : "Engine");
    knobs_.emplace_back(name, option);
  });
  config_ = add_value(app, "--config", "FILE", "settings in a YAML or JSON file")->group("Engine");
  print_ =
      add_switch(app, "--print-config", "print every setting, where it came from, and stop")->group("Engine");
}

Result<ConfigLayers> EngineOptions::read(const std::vector<std::string>& others) const {
  ConfigLayers layers(others);
  const auto variable = context_->variables.find(kConfigVariable);
  if (config_->count() > 0) {
    WH_TRY(layers.read_file(config_->results().back()));
  } else if (variable != context_->variables.end()) {
    WH_TRY(layers.read_file(variable->second));
  }
  WH_TRY(layers.read_environment(context_->variables));
  for (const auto& [name, option] : knobs_) {
    if (option->count() > 0) WH_TRY(layers.set(name, option->results().back(), flag_name(name)));
  }
  if (model_->count() == 0) return layers;
  for (const auto& [name, option] : knobs_) {
    if (name == "model" && option->count() > 0 && option->results().back() != model_->results().back())
      return make_error(Code::kInvalidArgument, "MODEL is {}, but --model is {}: give one of them",
                        model_->results().back(), option->results().back());
  }
  WH_TRY(layers.set("model", model_->results().back(), "MODEL"));
  return layers;
}

void warn_of_variables(const Context& context, const std::vector<std::string>& others) {
  std::vector<std::string> known = {kConfigVariable, "WHIPPET_LOG_LEVEL", "WHIPPET_LOG_FORMAT"};
  known.insert(known.end(), others.begin(), others.end());
  for (const std::string& warning : unknown_variables(context.variables, known)) log_warning("{}", warning);
}

int run_with_config(const EngineOptions& options, const CLI::App& app, const Context& context,
                    const std::function<Result<int>(const EngineConfig&)>& body) {
  warn_of_variables(context);
  const Result<ConfigLayers> layers = options.read();
  if (!layers.ok()) return report_usage(context, app, layers.error());
  if (options.print_config()) {
    const Status written = write_output(layers->describe());
    return written.ok() ? kExitOk : report_failure(context, written.error());
  }
  const Result<int> code = body(layers->config());
  return code.ok() ? *code : report_failure(context, code.error());
}

}  // namespace whippet
