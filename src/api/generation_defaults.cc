#include "api/generation_defaults.h"

#include <limits>

#include "api/json_file.h"
#include "api/sampling_fields.h"

namespace whippet {
namespace {

constexpr const char* kFile = "generation_config.json";

struct Range {
  const char* field;
  double min;
  double max;
};
// What the engine takes from a request; a checkpoint that asks for more is no reason to refuse every request.
constexpr Range kRanges[] = {{"temperature", 0, 100},
                             {"top_p", 1e-6, 1},
                             {"top_k", -1, 1 << 24},
                             {"min_p", 0, 1},
                             {"repetition_penalty", 1e-3, 100}};

void read_field(const nlohmann::json& config, const Range& range, GenerationDefaults& defaults) {
  if (!config.contains(range.field) || config[range.field].is_null()) return;
  const nlohmann::json& value = config[range.field];
  const bool sensible =
      value.is_number() && value.get<double>() >= range.min && value.get<double>() <= range.max;
  if (sensible && set_sampling_field(defaults.params, range.field, value).ok()) {
    defaults.named.push_back(fmt::format("{} {}", range.field, value.dump()));
  } else {
    defaults.warnings.push_back(
        fmt::format("{}: {} is no number from {} to {}: ignored", kFile, range.field, range.min, range.max));
  }
}

}  // namespace

GenerationDefaults parse_generation_config(const nlohmann::json& config) {
  GenerationDefaults defaults;
  if (!config.is_object()) return defaults;
  defaults.eos_ids = ids_of(config, "eos_token_id");
  for (const Range& range : kRanges) read_field(config, range, defaults);
  if (config.value("do_sample", nlohmann::json()) == nlohmann::json(false)) {
    defaults.params.temperature = 0;
    defaults.named.push_back("do_sample false (greedy)");
  }
  const std::vector<int32_t> most = ids_of(config, "max_new_tokens");
  if (!most.empty() && most[0] > 0) {
    defaults.max_new_tokens = most[0];
    defaults.named.push_back(fmt::format("max_new_tokens {}", most[0]));
  }
  return defaults;
}

Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& folder,
                                                    const std::string& choice) {
  WH_ASSIGN(const nlohmann::json own, read_json_file(folder / kFile));
  GenerationDefaults defaults = parse_generation_config(own);
  defaults.source = own.is_null() ? "" : (folder / kFile).string();
  if (choice == "auto") return defaults;
  GenerationDefaults chosen;
  if (choice != "none") {
    const std::filesystem::path file = std::filesystem::path(choice) / kFile;
    WH_ASSIGN(const nlohmann::json other, read_json_file(file));
    if (other.is_null())
      return make_error(Code::kInvalidArgument,
                        "generation_config: there is no {} (give auto, none, or a folder that has one)",
                        file.string());
    chosen = parse_generation_config(other);
    chosen.source = file.string();
  }
  chosen.eos_ids.insert(chosen.eos_ids.end(), defaults.eos_ids.begin(), defaults.eos_ids.end());
  return chosen;
}

}  // namespace whippet
