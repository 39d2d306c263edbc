#include "api/config_rules.h"

#include <algorithm>
#include <array>

#include "base/fields.h"

namespace whippet {
namespace {

constexpr size_t kMostChoices = 12;
constexpr double kMostTokens = 1 << 24;

struct KnobRule {
  const char* name;
  double min = 0;
  double max = 0;
  std::array<const char*, kMostChoices> choices = {};  // nullptr: no more; none at all: any text
};

constexpr KnobRule kRules[] = {
    {.name = "hub", .choices = {"", "hf", "ms", "pypi"}},
    {.name = "device", .choices = {"auto", "cpu", "cuda"}},
    {.name = "dtype", .choices = {"auto", "float32", "bfloat16", "float16"}},
    {.name = "quantization",
     .choices = {"", "none", "int8", "int4", "gptq", "gptq_marlin", "awq", "awq_marlin", "bitsandbytes",
                 "compressed-tensors", "fp8", "gguf"}},
    {.name = "kv_cache_dtype",
     .choices = {"auto", "float32", "fp32", "bfloat16", "bf16", "float16", "fp16", "int8"}},
    {.name = "max_model_len", .min = 0, .max = kMostTokens},
    {.name = "max_num_seqs", .min = 0, .max = 8192},
    {.name = "max_num_batched_tokens", .min = 0, .max = 1 << 20},
    {.name = "block_size", .min = 8, .max = 128, .choices = {"8", "16", "32", "64", "128"}},
    {.name = "gpu_memory_utilization", .min = 0, .max = 1},
    {.name = "sliding_window", .min = 0, .max = kMostTokens},
    {.name = "batch_wait_ms", .min = 0, .max = 60000},
    {.name = "batch_wait_size", .min = 0, .max = 65536},
    {.name = "overlap", .choices = {"auto", "on", "off"}},
    {.name = "threads", .min = 0, .max = 1024},
};
constexpr KnobRule kFree = {.name = ""};

const KnobRule& rule_of(std::string_view knob) {
  const auto* rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const KnobRule& r) { return knob == r.name; });
  return rule == std::end(kRules) ? kFree : *rule;
}

Status check_choice(const std::string& text, const KnobRule& rule) {
  if (rule.choices[0] == nullptr) return {};
  std::string allowed;
  for (const char* choice : rule.choices) {
    if (choice == nullptr) break;
    if (text == choice) return {};
    if (*choice != '\0') allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
  }
  return make_error(Code::kInvalidArgument, "'{}' is not one of {}", text, allowed);
}

Status check_range(double value, const KnobRule& rule) {
  if (value >= rule.min && value <= rule.max) return {};
  return make_error(Code::kInvalidArgument, "{} is outside the allowed range {} to {}", value, rule.min,
                    rule.max);
}

Status check(const std::string& value, const KnobRule& rule) { return check_choice(value, rule); }
Status check(int32_t value, const KnobRule& rule) {
  WH_TRY(check_choice(std::to_string(value), rule));
  return check_range(value, rule);
}
Status check(double value, const KnobRule& rule) { return check_range(value, rule); }
Status check(uint64_t, const KnobRule&) { return {}; }
Status check(bool, const KnobRule&) { return {}; }
Status check(const ByteSize&, const KnobRule&) { return {}; }

Status parse(std::string_view text, const KnobRule&, std::string& value) {
  value = text;
  return {};
}
Status parse(std::string_view text, const KnobRule& rule, int32_t& value) {
  WH_ASSIGN(const int64_t number,
            parse_integer(text, static_cast<int64_t>(rule.min), static_cast<int64_t>(rule.max)));
  value = static_cast<int32_t>(number);
  return {};
}
Status parse(std::string_view text, const KnobRule&, double& value) {
  WH_ASSIGN(value, parse_number(text));
  return {};
}
Status parse(std::string_view text, const KnobRule&, uint64_t& value) {
  WH_ASSIGN(value, parse_unsigned(text));
  return {};
}
Status parse(std::string_view text, const KnobRule&, bool& value) {
  WH_ASSIGN(value, parse_switch(text));
  return {};
}
Status parse(std::string_view text, const KnobRule&, ByteSize& value) {
  WH_ASSIGN(value.bytes, parse_bytes(text));
  return {};
}

std::string to_text(const std::string& value) { return value; }
std::string to_text(bool value) { return value ? "true" : "false"; }
std::string to_text(const ByteSize& value) { return bytes_to_text(value.bytes); }
template <class T>
std::string to_text(T value) {
  return fmt::format("{}", value);
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::string knob_name(std::string_view spelling) {
  if (spelling.starts_with("--")) spelling.remove_prefix(2);
  std::string name(spelling);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string flag_name(std::string_view knob) {
  std::string name = "--" + std::string(knob);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string variable_name(std::string_view knob) {
  std::string name = "WHIPPET_" + std::string(knob);
  std::transform(name.begin(), name.end(), name.begin(), upper);
  return name;
}

std::vector<std::string> knob_names() {
  std::vector<std::string> names;
  const EngineConfig config;
  EngineConfig::fields(config, [&](const char* name, const auto&, const char*) { names.push_back(name); });
  return names;
}

Status set_knob(EngineConfig& config, std::string_view knob, std::string_view text) {
  Status status = make_error(Code::kInvalidArgument, "no such setting");
  EngineConfig::fields(config, [&](const char* name, auto& value, const char*) {
    if (knob != name) return;
    auto parsed = value;
    status = parse(text, rule_of(knob), parsed);
    if (status.ok()) status = check(parsed, rule_of(knob));
    if (status.ok()) value = parsed;
  });
  return status;
}

std::string knob_text(const EngineConfig& config, std::string_view knob) {
  std::string text;
  EngineConfig::fields(config, [&](const char* name, const auto& value, const char*) {
    if (knob == name) text = to_text(value);
  });
  return text;
}

Status check_config(const EngineConfig& config) {
  Status status;
  EngineConfig::fields(config, [&](const char* name, const auto& value, const char*) {
    if (!status.ok()) return;
    const Status checked = check(value, rule_of(name));
    if (!checked.ok()) status = make_error(Code::kInvalidArgument, "{}: {}", name, checked.error().message);
  });
  return status;
}

}  // namespace whippet
