#include "serve/tls.h"

#include <openssl/ssl.h>

#include <utility>

namespace whippet::serve {

Result<std::unique_ptr<boost::asio::ssl::context>> make_tls(const ServerConfig& config) {
  using boost::asio::ssl::context;
  if (config.ssl_certfile.empty() && config.ssl_keyfile.empty()) return std::unique_ptr<context>();
  if (config.ssl_certfile.empty() || config.ssl_keyfile.empty())
    return make_error(Code::kInvalidArgument, "--ssl-certfile and --ssl-keyfile go together: {} is missing",
                      config.ssl_certfile.empty() ? "--ssl-certfile" : "--ssl-keyfile");
  auto tls = std::make_unique<context>(context::tls_server);
  tls->set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                   context::no_tlsv1_1);
  boost::system::error_code failure;
  tls->use_certificate_chain_file(config.ssl_certfile, failure);
  if (failure)
    return make_error(Code::kInvalidArgument, "--ssl-certfile {}: {}", config.ssl_certfile,
                      failure.message());
  tls->use_private_key_file(config.ssl_keyfile, context::pem, failure);
  if (failure)
    return make_error(Code::kInvalidArgument, "--ssl-keyfile {}: {}", config.ssl_keyfile, failure.message());
  if (SSL_CTX_check_private_key(tls->native_handle()) != 1)
    return make_error(Code::kInvalidArgument, "--ssl-keyfile {} is not the key of --ssl-certfile {}",
                      config.ssl_keyfile, config.ssl_certfile);
  // A connection that waits gives its buffers back.
  SSL_CTX_set_mode(tls->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  return tls;
}

}  // namespace whippet::serve
