// The flags of a command that stand for EngineConfig, MODEL among them, and what holds once file, environment
// and flags are put together. Copyable: the options belong to the CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/config_layers.h"
#include "whippet/config.h"

namespace whippet {

class EngineOptions {
 public:
  // The knobs that say which model; for commands that only read its files.
  static std::vector<std::string> model_knobs() { return {"model", "hub", "revision", "pull"}; }

  // Flags for `knobs`, or for all of them where it is empty.
  EngineOptions(CLI::App& app, const Context& context, const std::vector<std::string>& knobs = {});

  // Flags over environment over --config file over defaults. others: ConfigLayers'.
  Result<ConfigLayers> read(const std::vector<std::string>& others = {}) const;
  bool print_config() const { return print_->count() > 0; }

 private:
  const Context* context_;
  CLI::Option* model_ = nullptr;
  CLI::Option* config_ = nullptr;
  CLI::Option* print_ = nullptr;
  std::vector<std::pair<std::string, CLI::Option*>> knobs_;
};

// Reads the config and gives it to `body`, unless --print-config asks for no more. The result is the exit
// code: a config that is wrong is wrong usage, an error of the body a failure.
int run_with_config(const EngineOptions& options, const CLI::App& app, const Context& context,
                    const std::function<Result<int>(const EngineConfig&)>& body);

// Warns of variables of the environment that are neither the engine's nor among `others`.
void warn_of_variables(const Context& context, const std::vector<std::string>& others = {});

}  // namespace whippet
