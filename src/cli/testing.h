// What the tests of the commands share: running the real binary, and a tiny model made on the spot.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/test_folder.h"

namespace whippet {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal that ended it
  std::string out;
  std::string err;

  // The lines of `out`, each parsed; a line that is no JSON fails the test.
  std::vector<nlohmann::json> json_lines() const;
};

struct CommandInput {
  std::string text;                                // standard input
  std::map<std::string, std::string> environment;  // added to a small one with its own HOME
  std::string out_path;  // where standard output goes instead of `out`; "": captured
  bool close_out = false;
};

// Runs the binary in a folder of its own and waits. Network access is off (HF_HUB_OFFLINE).
CommandResult run_whippet(const std::vector<std::string>& args, const CommandInput& input = {});

// Writes a llama of 2 layers with random weights, a byte-level tokenizer and ChatML into the folder. Its
// context has `max_position` tokens.
void write_tiny_model(const TestFolder& folder, int max_position = 256);

}  // namespace whippet
