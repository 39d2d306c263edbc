#include "hub/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>

#include "hub/hub.h"
#include "hub/url.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxTokenBytes = 4096;

class Reader {
 public:
  Reader(const std::function<const char*(const char*)>& get, HubConfig& config)
      : get_(get), config_(config) {}

  // The first of `names` that is set and not empty; its name is kept as the source of `field`.
  std::string first(const char* field, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const char* value = get_(name);
      if (value == nullptr || *value == '\0') continue;
      config_.sources[field] = name;
      return value;
    }
    return "";
  }

  fs::path home() const {
    if (const char* value = get_("HOME"); value != nullptr && *value != '\0') return value;
    const passwd* entry = ::getpwuid(::getuid());
    return entry != nullptr ? entry->pw_dir : "/";
  }

  fs::path expand(const std::string& path) const {
    if (path == "~") return home();
    return path.starts_with("~/") ? home() / path.substr(2) : fs::path(path);
  }

 private:
  const std::function<const char*(const char*)>& get_;
  HubConfig& config_;
};

std::string trimmed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c == '\r' || c == '\n'; });
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), space).base(), text.end());
  return text;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string read_token_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxTokenBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return trimmed(text);
}

void read_token(Reader& read, const fs::path& hf_home, HubConfig& config) {
  config.hf_token = trimmed(read.first("hf_token", {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  if (!config.hf_token.empty()) return;
  const std::string given = read.first("hf_token", {"HF_TOKEN_PATH"});
  const fs::path path = given.empty() ? hf_home / "token" : read.expand(given);
  config.hf_token = read_token_file(path);
  if (config.hf_token.empty()) {
    config.sources.erase("hf_token");
  } else {
    config.sources["hf_token"] = path.string();
  }
}

std::string source_of(const HubConfig& config, const char* field) {
  const auto found = config.sources.find(field);
  return found == config.sources.end() ? "default" : found->second;
}

}  // namespace

HubConfig hub_config_from_environment() {
  return hub_config_from_environment([](const char* name) { return std::getenv(name); });
}

HubConfig hub_config_from_environment(const std::function<const char*(const char*)>& get) {
  HubConfig config;
  Reader read(get, config);
  const std::string xdg = read.first("whippet_cache", {"XDG_CACHE_HOME"});
  const fs::path cache = xdg.empty() ? read.home() / ".cache" : read.expand(xdg);
  config.whippet_cache = cache / "whippet";

  const std::string hf_home = read.first("hf_cache", {"HF_HOME", "XDG_CACHE_HOME"});
  const bool has_home = source_of(config, "hf_cache") == "HF_HOME";
  const fs::path hf = has_home ? read.expand(hf_home) : cache / "huggingface";
  const std::string hub = read.first("hf_cache", {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  config.hf_cache = hub.empty() ? hf / "hub" : read.expand(hub);
  read_token(read, hf, config);

  const auto url = [&](const char* field, const char* name, std::string& target) {
    const std::string value = trimmed(read.first(field, {name}));
    if (!value.empty()) target = without_slash(value);
  };
  url("hf_endpoint", "HF_ENDPOINT", config.hf_endpoint);
  url("pypi_index", "PIP_INDEX_URL", config.pypi_index);
  url("ms_endpoint", "MODELSCOPE_DOMAIN", config.ms_endpoint);
  if (config.ms_endpoint.find("://") == std::string::npos)
    config.ms_endpoint = "https://" + config.ms_endpoint;
  config.ms_token = trimmed(read.first("ms_token", {"MODELSCOPE_API_TOKEN"}));

  config.offline = is_true(read.first("offline", {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  config.ca_bundle =
      read.expand(read.first("ca_bundle", {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}));
  return config;
}

std::vector<HubSetting> describe_settings(const HubConfig& config) {
  const auto secret = [](const std::string& token) { return token.empty() ? "not set" : "set"; };
  const auto from = [&](const char* field) { return source_of(config, field); };
  return {
      {"Hugging Face endpoint", display_url(config.hf_endpoint), from("hf_endpoint")},
      {"Hugging Face cache", config.hf_cache.string(), from("hf_cache")},
      {"Hugging Face token", secret(config.hf_token), from("hf_token")},
      {"ModelScope endpoint", display_url(config.ms_endpoint), from("ms_endpoint")},
      {"ModelScope token", secret(config.ms_token), from("ms_token")},
      {"Python package index", display_url(config.pypi_index), from("pypi_index")},
      {"Whippet cache", config.whippet_cache.string(), from("whippet_cache")},
      {"CA certificates", config.ca_bundle.empty() ? "of the system" : config.ca_bundle.string(),
       from("ca_bundle")},
      {"Offline", config.offline ? "yes" : "no", from("offline")},
  };
}

}  // namespace whippet
