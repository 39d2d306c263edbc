// Reads sizes and switches from a checkpoint's config (or GGUF metadata) and keeps the first problem, so that
// a family's file reads as a list of keys. A key that is absent and one that is null mean the same.
// Used by families/ and gguf_config.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet {

class ConfigReader {
 public:
  // `config` must be an object and outlive the reader; `label` names it in messages ("config.json").
  ConfigReader(const nlohmann::json& config, std::string label);

  // nullptr when absent or null.
  const nlohmann::json* find(const std::string& key) const;

  // Values within [low, high]; on a problem they return `low`, the fallback or nothing, and status() has it.
  int32_t integer(const std::string& key, int32_t low, int32_t high);
  int32_t integer_or(const std::string& key, int32_t fallback, int32_t low, int32_t high);
  double number(const std::string& key, double low, double high);
  double number_or(const std::string& key, double fallback, double low, double high);
  bool flag_or(const std::string& key, bool fallback);
  std::string text_or(const std::string& key, const std::string& fallback);
  // A whole number or a list of them (token ids); negative ones, which stand for "none", are left out.
  std::vector<int32_t> ids(const std::string& key);

  template <class... Args>
  void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
    if (!error_)
      error_ = make_error(code, "{}: {}", label_, fmt::format(format, std::forward<Args>(args)...));
  }
  // The first problem so far.
  Status status() const;

 private:
  void wrong(const std::string& key, const std::string& expected);

  const nlohmann::json& config_;
  std::string label_;
  std::optional<Error> error_;
};

}  // namespace whippet
