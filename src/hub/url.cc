#include "hub/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/ascii.h"

namespace whippet {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part(CURLU* url, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, what, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

Result<Url> take_apart(CURLU* handle, const std::string& shown) {
  Url url;
  const std::string user = part(handle, CURLUPART_USER, CURLU_URLDECODE);
  const std::string password = part(handle, CURLUPART_PASSWORD, CURLU_URLDECODE);
  if (!user.empty() || !password.empty()) url.credentials = user + ":" + password;
  curl_url_set(handle, CURLUPART_USER, nullptr, 0);
  curl_url_set(handle, CURLUPART_PASSWORD, nullptr, 0);
  curl_url_set(handle, CURLUPART_FRAGMENT, nullptr, 0);
  url.scheme = lower_ascii(part(handle, CURLUPART_SCHEME));
  url.host = lower_ascii(part(handle, CURLUPART_HOST));
  url.port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.text = part(handle, CURLUPART_URL);
  if ((url.scheme != "http" && url.scheme != "https") || url.host.empty()) {
    return make_error(Code::kInvalidArgument, "'{}' is not an http or https address", shown);
  }
  return url;
}

}  // namespace

Result<Url> parse_url(const std::string& text) {
  const CurlUrl handle(curl_url(), &curl_url_cleanup);
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return make_error(Code::kInvalidArgument, "'{}' is not an http or https address", display_url(text));
  }
  return take_apart(handle.get(), display_url(text));
}

Result<Url> join_url(const std::string& base, const std::string& reference) {
  const CurlUrl handle(curl_url(), &curl_url_cleanup);
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK) {
    return make_error(Code::kCorrupt, "{} refers to '{}', which is not an http or https address",
                      display_url(base), display_url(reference));
  }
  return take_apart(handle.get(), display_url(reference));
}

bool may_share_secret(const Url& from, const Url& to) {
  if (from.host != to.host) return false;
  if (from.scheme == to.scheme) return from.port == to.port;
  return from.scheme == "http" && from.port == "80" && to.scheme == "https" && to.port == "443";
}

std::string display_url(const std::string& text) {
  std::string shown = text.substr(0, text.find_first_of("?#"));
  const size_t scheme = shown.find("://");
  if (scheme == std::string::npos) return shown;
  const size_t host = scheme + 3;
  const size_t end = shown.find('/', host);
  const size_t at = shown.rfind('@', end);
  if (at != std::string::npos && at >= host) shown.erase(host, at + 1 - host);
  return shown;
}

std::string encode_segment(std::string_view text) {
  std::string out;
  for (const unsigned char c : text) {
    const bool plain = (c < 0x80 && std::isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

std::string encode_path(std::string_view path) {
  std::string out;
  while (true) {
    const size_t slash = path.find('/');
    out += encode_segment(path.substr(0, slash));
    if (slash == path.npos) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

std::string base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](size_t k) -> uint32_t {
      return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0;
    };
    const uint32_t word = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kAlphabet[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace whippet
