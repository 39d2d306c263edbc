// An EngineConfig put together from layers, the highest of which holds: flag, environment, config file,
// default. Remembers where each value came from. Used by the command line; one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "whippet/config.h"

namespace whippet {

class ConfigLayers {
 public:
  // A setting that belongs to somebody else: as it was given, and by whom.
  struct Other {
    std::string text, source;
  };
  using Others = std::map<std::string, Other, std::less<>>;  // by the knob's name

  // `others`: names of knobs that are none of EngineConfig's and are kept for who asks for others().
  explicit ConfigLayers(std::vector<std::string> others = {}) : other_names_(std::move(others)) {}

  // A later call overrules an earlier one, so call from the lowest layer up. `name` in any spelling. `source`
  // is shown to people and opens the message of an error: "--max-num-seqs", "WHIPPET_SEED", "it.yaml (seed)".
  Status set(std::string_view name, std::string_view text, std::string_view source);
  // YAML, or JSON where the name ends in .json: one flat object of names and values.
  Status read_file(const std::filesystem::path& path);
  // Every WHIPPET_<NAME> that is a knob; the others are left alone (see unknown_variables).
  Status read_environment(const std::map<std::string, std::string>& variables);

  const EngineConfig& config() const { return config_; }
  const Others& others() const { return others_; }
  // A config file of everything that holds, with the source of each value as a comment.
  std::string describe() const;

 private:
  std::vector<std::string> other_names_;
  Others others_;
  EngineConfig config_;
  std::map<std::string, std::string, std::less<>> sources_;  // knob -> source; absent: the default
};

// One warning for each WHIPPET_ variable that is neither a knob nor in `known` and seems to be a mistake.
std::vector<std::string> unknown_variables(const std::map<std::string, std::string>& variables,
                                           const std::vector<std::string>& known);

}  // namespace whippet
