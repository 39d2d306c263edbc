// What the tests of the commands share: running the real binary.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/test_folder.h"
#include "api/tiny_model.h"

namespace whippet {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal that ended it
  std::string out;
  std::string err;

  // The lines of `out`, each parsed; a line that is no JSON fails the test.
  std::vector<nlohmann::json> json_lines() const;
};

struct CommandInput {
  std::string text = {};                                // standard input
  std::map<std::string, std::string> environment = {};  // added to a small one with its own HOME
  std::string in_path = {};                             // what standard input is instead of `text`
  std::string out_path = {};  // where standard output goes instead of `out`; "": captured
  bool close_out = false;
};

// Runs the binary in a folder of its own and waits. Network access is off (HF_HUB_OFFLINE).
CommandResult run_whippet(const std::vector<std::string>& args, const CommandInput& input = {});

}  // namespace whippet
