#include "cli/command.h"

#include <cstdio>

#include "base/log.h"

namespace whippet {

CLI::Option* add_switch(CLI::App& app, const std::string& names, const std::string& help) {
  return app.add_flag(names, help);
}

CLI::Option* add_value(CLI::App& app, const std::string& names, const std::string& label,
                       const std::string& help) {
  return app.add_option(names, help)->type_name(label)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

int report_failure(const Context& context, const Error& error) {
  // The reader of our output left (`whippet list | head -1`): it knows, and nobody else needs to.
  if (error.code == Code::kCancelled) return kExitFailed;
  if (context.log_json) {
    log_error("{}", error.message);
  } else {
    std::fprintf(stderr, "whippet: %s\n", error.message.c_str());
  }
  return kExitFailed;
}

int report_usage(const Context& context, const CLI::App& app, const Error& error) {
  report_failure(context, error);
  std::string name = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  if (!context.log_json) std::fprintf(stderr, "See `%s --help`.\n", name.c_str());
  return kExitUsage;
}

}  // namespace whippet
