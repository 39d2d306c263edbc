// The certificate and key of a server as OpenSSL wants them.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/error.h"
#include "serve/server_config.h"

namespace whippet::serve {

// nullptr where the config names none; errors name the file.
Result<std::unique_ptr<boost::asio::ssl::context>> make_tls(const ServerConfig& config);

}  // namespace whippet::serve
