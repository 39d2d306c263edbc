#include "serve/access.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>

#include "base/ascii.h"

namespace whippet::serve {
namespace {

bool is_address(const std::string& name) {
  in6_addr address;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

bool is_loopback(std::string_view host) {
  const std::string name = host_name(host);
  return name == "localhost" || name == "::1" || (name.starts_with("127.") && is_address(name));
}

std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower_ascii(host.substr(1, host.find(']') - 1));
  if (std::count(host.begin(), host.end(), ':') == 1) host = host.substr(0, host.find(':'));
  return lower_ascii(host);
}

Status Access::check(const ServerConfig& config) {
  for (const std::string& key : config.api_keys)
    if (key.empty()) return make_error(Code::kInvalidArgument, "--api-key: a key is empty");
  if (is_loopback(config.host) || !config.api_keys.empty() || config.allow_unauthenticated) return {};
  return make_error(
      Code::kInvalidArgument,
      "--host {} lets the network in, and no key is set: give --api-key (or WHIPPET_API_KEY), or "
      "--allow-unauthenticated to let everybody in",
      config.host);
}

Access::Access(const ServerConfig& config) {
  for (const std::string& key : config.api_keys) keys_.push_back(digest(key));
  for (const std::string& host : config.allowed_hosts) {
    any_host_ |= host == "*";
    hosts_.push_back(host_name(host));
  }
  if (config.allowed_hosts.empty()) {
    any_host_ = asks_for_key() && !is_loopback(config.host);  // a key cannot be guessed by a page
    hosts_ = {"localhost", host_name(config.host)};
    char name[256] = {};
    if (::gethostname(name, sizeof(name) - 1) == 0) hosts_.push_back(lower_ascii(name));
  }
  for (const std::string& origin : config.allowed_origins) {
    any_origin_ |= origin == "*";
    origins_.push_back(lower_ascii(origin));
  }
}

Access::Digest Access::digest(std::string_view text) {
  Digest result;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), result.data());
  return result;
}

bool Access::opens(std::string_view authorization) const {
  constexpr std::string_view kBearer = "bearer ";
  const std::string scheme = lower_ascii(authorization.substr(0, kBearer.size()));
  const bool bearer = scheme == kBearer;
  const Digest given = digest(bearer ? authorization.substr(kBearer.size()) : std::string_view());
  int found = 0;  // every key is compared, and all of it
  for (const Digest& key : keys_) found |= CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0 ? 1 : 0;
  return found != 0 && bearer;
}

// An address in the Host header is no danger: what a foreign page can bend is what a name means.
bool Access::host_allowed(std::string_view host) const {
  if (any_host_ || host.empty()) return true;  // HTTP/1.0 need not name one, and browsers do not speak it
  const std::string name = host_name(host);
  return contains(hosts_, name) || is_address(name);
}

bool Access::origin_allowed(std::string_view origin) const {
  return any_origin_ || contains(origins_, lower_ascii(origin));
}

}  // namespace whippet::serve
