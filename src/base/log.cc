#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace whippet {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// The message as a JSON string, so that quotes and control characters cannot break the line.
class JsonMessageFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessageFlag>();
  }
};

std::shared_ptr<spdlog::logger> make_logger(const LogConfig& config) {
  auto logger =
      std::make_shared<spdlog::logger>("whippet", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (config.json) {
    formatter->add_flag<JsonMessageFlag>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%*})");
  } else {
    formatter->set_pattern("%^%L%$ %H:%M:%S.%e %v");
  }
  logger->set_formatter(std::move(formatter));
  logger->set_level(to_spdlog(config.level));
  return logger;
}

// The one sink of the process, which spdlog keeps in its own registry. Before init_log, and in programs that
// use the library without it, warnings go to standard error.
std::shared_ptr<spdlog::logger> logger() {
  static const std::shared_ptr<spdlog::logger> fallback = make_logger({.level = LogLevel::kWarning});
  if (auto existing = spdlog::get("whippet")) return existing;
  return fallback;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning" || name == "warn") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return make_error(Code::kInvalidArgument, "log level '{}' is not one of debug, info, warning, error, off",
                    name);
}

void init_log(const LogConfig& config) {
  spdlog::drop("whippet");
  spdlog::register_logger(make_logger(config));
}

bool log_enabled(LogLevel level) { return logger()->should_log(to_spdlog(level)); }

void write_log(LogLevel level, const std::string& message) { logger()->log(to_spdlog(level), "{}", message); }

}  // namespace whippet
