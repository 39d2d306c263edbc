// Who may come in: keys, Host names, origins of browsers. Fixed at start; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/server_config.h"

namespace whippet::serve {

class Access {
 public:
  explicit Access(const ServerConfig& config);

  // kInvalidArgument where the server would be open to a network without anyone having said so.
  static Status check(const ServerConfig& config);

  bool asks_for_key() const { return !keys_.empty(); }
  // `authorization` is the header: "Bearer KEY". Takes the same time whatever it holds.
  bool opens(std::string_view authorization) const;

  // A page of another site that points its own name at this address is refused by its Host.
  bool host_allowed(std::string_view host) const;

  bool cors() const { return any_origin_ || !origins_.empty(); }
  bool origin_allowed(std::string_view origin) const;

 private:
  using Digest = std::array<uint8_t, 32>;  // SHA-256
  static Digest digest(std::string_view text);

  std::vector<Digest> keys_;
  bool any_host_ = false;
  std::vector<std::string> hosts_;  // lower case, without port
  bool any_origin_ = false;
  std::vector<std::string> origins_;
};

bool is_loopback(std::string_view host);
// The name of a Host header in lower case, without port and brackets.
std::string host_name(std::string_view host);

}  // namespace whippet::serve
