// Every knob of the server that is none of the engine's. Filled by the command line; names are vLLM's where
// they mean the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace whippet::serve {

struct ServerConfig {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: any that is free
  std::string ssl_certfile, ssl_keyfile;
  std::vector<std::string> api_keys;         // any of them opens; none: no key is asked for
  bool allow_unauthenticated = false;        // beyond loopback
  bool metrics_auth = true;                  // /metrics asks for a key like the others
  std::vector<std::string> allowed_origins;  // of browsers, "*": all; none: CORS is off
  std::vector<std::string> allowed_hosts;    // names in the Host header, "*": all; none: chosen by address

  std::vector<std::string> served_model_names;  // none: the model's own
  std::string chat_template_kwargs;             // a JSON object
  bool strict_fields = false;

  uint64_t max_request_size = uint64_t{8} << 20;      // bytes of a body
  uint64_t max_stream_backlog = uint64_t{256} << 10;  // bytes that a slow reader may be behind
  int32_t max_connections = 4096;
  int32_t max_queued_requests = 1024;  // answers that wait behind those that run; 0: no limit
  double header_timeout_s = 10;        // from a request's first byte to the end of its head
  double body_timeout_s = 60;          // from there to the end of the body
  double idle_timeout_s = 75;          // between two requests of a connection
  double write_timeout_s = 30;         // without one byte of a waiting answer being taken
  double comment_interval_s = 15;      // silence of a stream after which a comment is sent
  double request_timeout_s = 0;        // of an answer; 0: none
  double shutdown_timeout_s = 25;      // for what runs when the server is told to stop
  double stall_timeout_s = 30;         // work waits and no step ends: not healthy; three times: not alive
  bool access_log = true;
  bool handle_signals = true;  // SIGTERM and SIGINT drain, a second one exits
  int32_t io_threads = 1;
};

}  // namespace whippet::serve
