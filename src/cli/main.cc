// The binary: reads the environment, parses the command line, runs one command.
#include <fcntl.h>
#include <langinfo.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "backend/registry.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/output.h"
#include "grammar/compiled_grammar.h"

extern char** environ;

namespace whippet {
namespace {

constexpr const char* kDescription = R"(Whippet serves small language models fast.

Examples:
  whippet serve                                      OpenAI's API and a chat at http://127.0.0.1:8000
  whippet chat                                       talk to the default model
  whippet generate -p "Once upon a time"             continue a text
  whippet pull Qwen/Qwen2.5-0.5B-Instruct            fetch a model
  whippet chat Qwen/Qwen2.5-0.5B-Instruct
Data goes to standard output; logs and progress go to standard error.
Exit codes: 0 done, 1 failed, 2 wrong usage. WHIPPET_<FLAG> in the environment stands for --<flag>.
)";

struct Entry {
  Command command;
  CLI::App* app = nullptr;
  Run run;
};

std::vector<Command> commands() {
  return {serve_command(),  chat_command(), generate_command(), inspect_command(), pull_command(),
          list_command(),   rm_command(),   tokenize_command(), render_command(),  prompt_command(),
          logits_command(), eval_command(), quantize_command(), bench_command()};
}

// Descriptors 0 to 2 are taken, so that no file that is opened later becomes standard output.
void occupy_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) == -1) static_cast<void>(::open("/dev/null", O_RDONLY));
}

// The editor of the chat counts columns by the locale's characters: UTF-8 whatever the locale's language.
void use_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

Context read_environment() {
  Context context;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("WHIPPET_") && equals != std::string::npos)
      context.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && *state == '/') {
    context.state_folder = std::filesystem::path(state) / "whippet";
  } else if (home != nullptr && *home == '/') {
    context.state_folder = std::filesystem::path(home) / ".local/state/whippet";
  }
  return context;
}

std::string describe_binary() {
  std::string isas;
  for (const std::string& isa : supported_isas()) isas += (isas.empty() ? "" : ", ") + isa;
  const std::string library = grammar::grammar_library();
  return fmt::format("whippet {}\ncommit {}\ninstruction sets on this machine: {}\ngrammars: {}\n", release(),
                     commit(), isas, library.empty() ? "built without" : library);
}

// CLI11's text, with the names of the commands before it and without its mark of flags that turn something
// off.
std::string help_of(const CLI::App& app) {
  std::string before;
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    before = parent->get_name() + (before.empty() ? "" : " " + before);
  std::string text = app.help(before);
  const std::string mark = "{false}";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    const bool ends_line = text[at + mark.size()] == '\n';
    text.replace(at, mark.size(), ends_line ? "" : std::string(mark.size(), ' '));
  }
  for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at))
    text.erase(at, 1);
  return text;
}

struct LogOptions {
  CLI::Option* level;
  CLI::Option* format;
};

LogOptions add_log_options(CLI::App& app) {
  return {.level = add_value(app, "--log-level", "LEVEL", "debug, info, warning, error or off"),
          .format = add_value(app, "--log-format", "FORMAT", "text or json, one object a line")};
}

// The flag, else the environment, else the default.
std::string choose(const CLI::Option* option, const Context& context, const char* variable,
                   const char* other) {
  if (option->count() > 0) return option->as<std::string>();
  const auto found = context.variables.find(variable);
  return found == context.variables.end() ? other : found->second;
}

Status start_log(const LogOptions& options, const char* default_level, Context& context) {
  const std::string format = choose(options.format, context, "WHIPPET_LOG_FORMAT", "text");
  if (format != "text" && format != "json")
    return make_error(Code::kInvalidArgument, "--log-format: '{}' is not one of text, json", format);
  const std::string level = choose(options.level, context, "WHIPPET_LOG_LEVEL", default_level);
  const Result<LogLevel> parsed = parse_log_level(level);
  if (!parsed.ok()) return make_error(Code::kInvalidArgument, "--log-level: {}", parsed.error().message);
  context.log_json = format == "json";
  init_log({.level = *parsed, .json = context.log_json});
  return {};
}

std::vector<Entry> add_commands(CLI::App& app, const Context& context) {
  std::vector<Entry> entries;
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->fallthrough();
    sub->footer("Every command: --log-level debug|info|warning|error|off, --log-format text|json.");
    Run run = command.setup(*sub, context);
    entries.push_back({command, sub, std::move(run)});
  }
  app.require_subcommand(0, 1);
  return entries;
}

int run_command_line(const std::vector<std::string>& args, Context& context) {
  CLI::App app(kDescription, "whippet");
  const LogOptions log_options = add_log_options(app);
  const CLI::Option* version = add_switch(app, "--version", "print version, commit and instruction sets");
  std::vector<Entry> entries = add_commands(app, context);
  const CLI::App* named = &app;
  Result<std::vector<std::string>> normal = normalise_arguments(app, args, named);
  if (!normal.ok()) return report_usage(context, *named, normal.error());
  for (Entry& entry : entries)
    if (entry.app == named || entry.app == named->get_parent())
      entry.app->description(std::string(entry.command.help) + "\n");
  try {
    std::vector<std::string> reversed(normal->rbegin(), normal->rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const Status written = write_output(help_of(*named));
    return written.ok() ? kExitOk : report_failure(context, written.error());
  } catch (const CLI::ParseError& failure) {
    return report_usage(context, *named, make_error(Code::kInvalidArgument, "{}", failure.what()));
  }
  if (version->count() > 0) {
    const Status written = write_output(describe_binary());
    return written.ok() ? kExitOk : report_failure(context, written.error());
  }
  for (const Entry& entry : entries) {
    if (!entry.app->parsed()) continue;
    const Status log = start_log(log_options, entry.command.default_log_level, context);
    return log.ok() ? entry.run() : report_usage(context, app, log.error());
  }
  std::fprintf(stderr, "%s", help_of(app).c_str());
  return kExitUsage;
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) {
  whippet::occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a write says so itself
  whippet::use_utf8();
  std::ios::sync_with_stdio(false);
  whippet::Context context = whippet::read_environment();
  try {
    return whippet::run_command_line(std::vector<std::string>(argv + 1, argv + argc), context);
  } catch (const std::bad_alloc&) {
    return whippet::report_failure(context, {whippet::Code::kResourceExhausted, "out of memory"});
  } catch (const std::exception& failure) {
    return whippet::report_failure(context, {whippet::Code::kInvalidArgument, failure.what()});
  }
}
