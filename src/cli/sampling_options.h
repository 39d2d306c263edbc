// The flags of a command that stand for SamplingParams. Copyable: the options belong to the CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "whippet/sampling_params.h"

namespace whippet {

class SamplingOptions {
 public:
  // Every field but `seed`, which is the engine's flag, and those in `without`.
  explicit SamplingOptions(CLI::App& app, const std::vector<std::string>& without = {});

  // Lays the given flags over `params`. Errors name the flag.
  Status apply(SamplingParams& params) const;
  // Whether any flag that says how tokens are drawn was given.
  bool given(const std::string& field) const;

 private:
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // field name, option
};

}  // namespace whippet
