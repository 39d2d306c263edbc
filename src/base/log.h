// Log lines go to stderr, data to stdout. One sink for the process, set up once by main; before that
// (and in tests) warnings and errors are printed as text. Safe from any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  bool json = false;  // one JSON object a line: {"time", "level", "message"}
};

// "debug" | "info" | "warning" | "error" | "off".
Result<LogLevel> parse_log_level(std::string_view name);

void init_log(const LogConfig& config);
bool log_enabled(LogLevel level);
void write_log(LogLevel level, const std::string& message);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace whippet
