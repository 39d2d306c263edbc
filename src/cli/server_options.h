// The flags of `whippet serve` that stand for ServerConfig, and what holds once environment and flags are put
// together. Copyable: the options belong to the CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "serve/server_config.h"

namespace whippet {

class ServerOptions {
 public:
  ServerOptions(CLI::App& app, const Context& context);

  // Flags over environment over defaults. Errors name the flag or the variable.
  Result<serve::ServerConfig> read() const;
  // The variables of the environment that mean something here.
  static std::vector<std::string> variables();

 private:
  const Context* context_;
  std::vector<std::pair<std::string, CLI::Option*>> knobs_;
  CLI::Option* key_file_;
};

}  // namespace whippet
