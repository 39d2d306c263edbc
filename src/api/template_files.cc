#include "api/template_files.h"

#include <algorithm>
#include <utility>

#include "api/json_file.h"

namespace whippet {
namespace {

constexpr uint64_t kLargestTemplate = 4 << 20;
constexpr size_t kMostTemplates = 16;
constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";

std::vector<NamedTemplate> templates_of(const nlohmann::json& object, const std::string& file) {
  std::vector<NamedTemplate> found;
  if (!object.is_object() || !object.contains("chat_template")) return found;
  const nlohmann::json& value = object["chat_template"];
  if (value.is_string()) found.push_back({kDefault, file, value.get<std::string>()});
  if (!value.is_array()) return found;
  for (const nlohmann::json& entry : value) {
    const auto name = spelling_of(entry, "name");
    const auto source = spelling_of(entry, "template");
    if (name && source && found.size() < kMostTemplates) found.push_back({*name, file, *source});
  }
  return found;
}

Result<std::vector<NamedTemplate>> read_jinja_files(const std::filesystem::path& folder) {
  std::vector<NamedTemplate> found;
  std::error_code failed;
  const std::filesystem::path main = folder / "chat_template.jinja";
  if (!std::filesystem::exists(main, failed)) return found;
  WH_ASSIGN(std::string source, read_small_file(main, kLargestTemplate));
  found.push_back({kDefault, main.filename().string(), std::move(source)});
  for (const auto& entry :
       std::filesystem::directory_iterator(folder / "additional_chat_templates", failed)) {
    if (entry.path().extension() != ".jinja" || found.size() >= kMostTemplates) continue;
    WH_ASSIGN(std::string more, read_small_file(entry.path(), kLargestTemplate));
    found.push_back({entry.path().stem().string(), entry.path().filename().string(), std::move(more)});
  }
  return found;
}

const NamedTemplate* find(const std::vector<NamedTemplate>& sources, const char* name) {
  const auto found =
      std::find_if(sources.begin(), sources.end(), [&](const NamedTemplate& t) { return t.name == name; });
  return found == sources.end() ? nullptr : &*found;
}

}  // namespace

Result<std::vector<NamedTemplate>> read_template_files(const std::filesystem::path& folder,
                                                       const nlohmann::json& tokenizer_config) {
  WH_ASSIGN(std::vector<NamedTemplate> found, read_jinja_files(folder));
  if (!found.empty()) return found;
  found = templates_of(tokenizer_config, "tokenizer_config.json");
  if (!found.empty()) return found;
  WH_ASSIGN(const nlohmann::json legacy, read_json_file(folder / "chat_template.json"));
  return templates_of(legacy, "chat_template.json");
}

std::vector<NamedTemplate> gguf_templates(const nlohmann::json& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  std::vector<NamedTemplate> found;
  if (!metadata.is_object()) return found;
  for (const auto& [key, value] : metadata.items()) {
    if (!key.starts_with(kKey) || !value.is_string() || found.size() >= kMostTemplates) continue;
    const bool named = key.size() > kKey.size() + 1 && key[kKey.size()] == '.';
    if (!named && key != kKey) continue;
    found.push_back(
        {named ? key.substr(kKey.size() + 1) : kDefault, "GGUF metadata", value.get<std::string>()});
  }
  return found;
}

Result<std::vector<NamedTemplate>> template_from_option(const std::string& option) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(option, failed)) {
    WH_ASSIGN(std::string source, read_small_file(option, kLargestTemplate));
    return std::vector<NamedTemplate>{{kDefault, option, std::move(source)}};
  }
  if (option.find("{{") != std::string::npos || option.find("{%") != std::string::npos)
    return std::vector<NamedTemplate>{{kDefault, "--chat-template", option}};
  return make_error(Code::kInvalidArgument, "chat_template: '{}' is neither a file nor a Jinja template",
                    option);
}

Result<const ChatTemplate*> ChatTemplates::choose(bool has_tools) const {
  if (has_tools && with_tools) return &*with_tools;
  if (plain) return &*plain;
  return make_error(Code::kInvalidArgument, "{}", problem);
}

ChatTemplates compile_templates(std::vector<NamedTemplate> sources) {
  ChatTemplates result;
  result.problem =
      "this model has no chat template, so it takes raw prompts only; give one with --chat-template FILE";
  const auto compile = [&](const NamedTemplate& named, std::optional<ChatTemplate>& into) {
    auto parsed = ChatTemplate::parse(named.source);
    if (parsed.ok()) {
      into = std::move(*parsed);
    } else {
      result.problem = fmt::format(
          "the chat template of {} cannot be used: {}; give another one with "
          "--chat-template FILE",
          named.file, parsed.error().message);
    }
  };
  const NamedTemplate* plain = find(sources, kDefault);
  if (plain == nullptr && !sources.empty()) plain = &sources.front();
  if (plain != nullptr) compile(*plain, result.plain);
  const NamedTemplate* tools = find(sources, kToolUse);
  if (tools != nullptr && result.plain) compile(*tools, result.with_tools);
  result.sources = std::move(sources);
  return result;
}

}  // namespace whippet
