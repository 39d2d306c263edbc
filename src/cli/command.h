// What a command of the binary is, and what all of them share: the environment that main read, exit codes,
// and how an error is shown.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/error.h"

namespace whippet {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Made by main before anything is parsed; nothing else reads the environment.
struct Context {
  std::map<std::string, std::string> variables;  // those that begin with WHIPPET_
  std::filesystem::path state_folder;            // where the chat's history lies; empty: nowhere
  bool log_json = false;                         // set when the command line is parsed
};

// What a command does once its flags are parsed; the result is the exit code.
using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* summary;  // one line of `whippet --help`
  const char* help;     // opens `whippet NAME --help`, with examples
  // Adds the command's flags to `app`. The context outlives the result.
  Run (*setup)(CLI::App& app, const Context& context);
  const char* default_log_level = "info";
};

// Flags and options that bind no variable: their CLI::Option says what was given. The last one given holds.
CLI::Option* add_switch(CLI::App& app, const std::string& names, const std::string& help);
CLI::Option* add_value(CLI::App& app, const std::string& names, const std::string& label,
                       const std::string& help);

// On stderr; the results are the exit codes.
int report_failure(const Context& context, const Error& error);
int report_usage(const Context& context, const CLI::App& app, const Error& error);

// One a file of the same name.
Command bench_command();
Command chat_command();
Command eval_command();
Command generate_command();
Command inspect_command();
Command list_command();
Command logits_command();
Command prompt_command();
Command pull_command();
Command quantize_command();
Command render_command();
Command rm_command();
Command serve_command();
Command tokenize_command();

}  // namespace whippet
