// Prompt templates from a folder of files.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "text/prompt_template.h"
#include "text/utf8.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = 1 << 20;
constexpr size_t kMostTemplates = 256;

Result<std::string> read_text(const fs::path& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (!failed && size > kLargestFile)
    return make_error(Code::kInvalidArgument, "{} has {} bytes: a prompt template has at most {}",
                      path.string(), size, kLargestFile);
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (failed || file.bad() || !file.eof())
    return make_error(Code::kNotFound, "{} cannot be read", path.string());
  text.resize(static_cast<size_t>(file.gcount()));
  std::string repaired;
  append_repaired_utf8(repaired, text);
  if (repaired != text) return make_error(Code::kInvalidArgument, "{} is no UTF-8", path.string());
  return text;
}

Status read_jinja(const fs::path& path, std::string_view source, PromptTemplate& prompt) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return make_error(parsed.error().code, "{}: {}", path.string(), parsed.error().message);
  prompt.chat = std::move(*parsed);
  return {};
}

Status read_system(const fs::path& path, std::string text, PromptTemplate& prompt) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();  // editors add one
  if (text.empty())
    return make_error(Code::kInvalidArgument,
                      "{} is empty: a template without a system message is built in, \"minimal\"",
                      path.string());
  prompt.system = std::move(text);
  return {};
}

Status read_json(const fs::path& path, const std::string& text, PromptTemplate& prompt) {
  const TemplateVariables object = TemplateVariables::parse(text, nullptr, false);
  if (!object.is_object())
    return make_error(Code::kInvalidArgument, "{} holds no JSON object", path.string());
  for (const auto& [key, value] : object.items()) {
    const bool is_kwargs = key == "chat_template_kwargs";
    if (is_kwargs ? !value.is_object() : !value.is_string())
      return make_error(Code::kInvalidArgument, "{}: {} must be {}, not {}", path.string(), quote_text(key),
                        is_kwargs ? "an object" : "a text", value.type_name());
    if (is_kwargs) {
      prompt.variables = value;
    } else if (key == "description") {
      prompt.description = value.get<std::string>();
    } else if (key == "system") {
      WH_TRY(read_system(path, value.get<std::string>(), prompt));
    } else if (key == "chat_template") {
      WH_TRY(read_jinja(path, value.get_ref<const std::string&>(), prompt));
    } else {
      return make_error(Code::kInvalidArgument,
                        "{}: there is no field {}; there are description, system, chat_template and "
                        "chat_template_kwargs",
                        path.string(), quote_text(key));
    }
  }
  return {};
}

Status read_files(const std::vector<fs::path>& files, PromptTemplate& prompt) {
  for (const fs::path& path : files) {
    if (path.extension() == ".json" && files.size() > 1)
      return make_error(Code::kInvalidArgument, "{} stands beside {}: a template is one or the other",
                        path.string(),
                        (path == files.front() ? files.back() : files.front()).filename().string());
    WH_ASSIGN(const std::string text, read_text(path));
    if (path.extension() == ".jinja") WH_TRY(read_jinja(path, text, prompt));
    if (path.extension() == ".txt") WH_TRY(read_system(path, text, prompt));
    if (path.extension() == ".json") WH_TRY(read_json(path, text, prompt));
    prompt.origin += (prompt.origin.empty() ? "" : ", ") + path.filename().string();
  }
  return {};
}

}  // namespace

Result<PromptTemplates> PromptTemplates::from_folder(const fs::path& folder) {
  std::map<std::string, std::vector<fs::path>> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const fs::path& path = at->path();
    const bool is_template =
        path.extension() == ".txt" || path.extension() == ".jinja" || path.extension() == ".json";
    if (is_template && !path.filename().string().starts_with('.'))
      files[path.stem().string()].push_back(path);
  }
  if (failed)
    return make_error(Code::kNotFound, "prompt_template_dir: {} cannot be read: {}", folder.string(),
                      failed.message());
  if (files.size() > kMostTemplates)
    return make_error(Code::kInvalidArgument, "prompt_template_dir: {} holds {} templates, more than {}",
                      folder.string(), files.size(), kMostTemplates);
  PromptTemplates templates;
  for (auto& [name, paths] : files) {
    if (name == "default" || name == "minimal")
      return make_error(Code::kInvalidArgument, "{}: \"{}\" is built in, name the file otherwise",
                        paths.front().string(), name);
    std::sort(paths.begin(), paths.end());
    PromptTemplate prompt{.name = name, .origin = ""};
    WH_TRY(read_files(paths, prompt));
    templates.all_.push_back(std::move(prompt));
  }
  return templates;
}

}  // namespace whippet
