// URLs: parsing, joining, who may see a secret, and what of a URL may be shown in a message.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet {

// Parts of a URL, or an error that shows it without its credentials. Only http and https are URLs here.
struct Url {
  std::string text;         // without user and password
  std::string scheme;       // lower case
  std::string host;         // lower case
  std::string port;         // the scheme's own where none is given
  std::string credentials;  // "user:password", decoded; empty where there are none
};
Result<Url> parse_url(const std::string& text);
// `reference` (absolute or relative) seen from `base`.
Result<Url> join_url(const std::string& base, const std::string& reference);
// Same host, and the same scheme and port or an upgrade from http:80 to https:443.
bool may_share_secret(const Url& from, const Url& to);
// For messages: without user, password, query and fragment (signatures of a CDN are secrets too).
std::string display_url(const std::string& text);
// Percent-encodes everything but unreserved characters and '/'.
std::string encode_path(std::string_view path);
// Likewise, '/' too: one segment of a path or one value of a query.
std::string encode_segment(std::string_view text);
std::string base64(std::string_view bytes);

}  // namespace whippet
