// The flags of `whippet serve` that stand for ServerConfig, and what holds once environment and flags are put
// together. Copyable: the options belong to the CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/config_layers.h"
#include "serve/server_config.h"

namespace whippet {

class ServerOptions {
 public:
  ServerOptions(CLI::App& app, const Context& context);

  // Flags over environment over `file` over defaults. Errors name where a value came from.
  Result<serve::ServerConfig> read(const ConfigLayers::Others& file) const;
  // What holds, as lines of a config file; keys are not shown.
  static std::string describe(const serve::ServerConfig& config);
  static std::vector<std::string> names();      // of the knobs
  static std::vector<std::string> variables();  // of the environment that stand for them

 private:
  const Context* context_;
  std::vector<std::pair<std::string, CLI::Option*>> knobs_;
  CLI::Option* key_file_;
};

}  // namespace whippet
