// HubConfig: endpoints, caches, tokens and limits of the hub, and the one place that reads them from the
// environment. Everything else in hub/ takes a HubConfig, so that a test sets fields.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace whippet {

struct HubConfig {
  std::string hf_endpoint = "https://huggingface.co";     // no slash at the end
  std::string ms_endpoint = "https://www.modelscope.cn";  // likewise
  std::string pypi_index = "https://pypi.org/simple";     // likewise; may hold user:password@
  std::filesystem::path hf_cache;                         // .../hub, holds models--org--name
  std::filesystem::path whippet_cache;                    // models/modelscope, models/pypi, downloads
  std::string hf_token;                                   // a secret: never printed; empty: anonymous
  std::string ms_token;                                   // likewise
  std::filesystem::path ca_bundle;                        // file or folder; empty: libcurl's own
  std::string no_proxy;                                   // empty: libcurl's own reading of no_proxy
  bool offline = false;                                   // no request is ever made
  int max_attempts = 5;                                   // in a row without progress
  std::chrono::seconds low_speed_time{60};                // below 1 KiB/s for so long is a broken connection
  std::map<std::string, std::string> sources;             // field name -> variable that set it
  const std::atomic<bool>* cancelled = nullptr;           // polled; true ends a download (resumable later)

  // Injected by tests.
  std::function<void(std::chrono::milliseconds)> sleep;  // between attempts; empty: really sleeps
  std::function<uint64_t(const std::filesystem::path&)>
      free_bytes;  // of the disk below a folder; empty: statvfs
};

// Reads HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_TOKEN, HF_TOKEN_PATH and the login token file,
// MODELSCOPE_DOMAIN, MODELSCOPE_API_TOKEN, PIP_INDEX_URL, XDG_CACHE_HOME, HOME, CURL_CA_BUNDLE,
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE. `get` is getenv in the first form. Proxies are read by libcurl itself.
HubConfig hub_config_from_environment();
HubConfig hub_config_from_environment(const std::function<const char*(const char*)>& get);

}  // namespace whippet
