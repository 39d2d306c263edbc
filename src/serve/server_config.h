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
  bool enable_auto_tool_choice = true;
  std::string tool_call_parser = "auto";  // openai::Context has these two
  std::string reasoning_parser = "auto";

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
  int32_t io_threads = 0;      // 0: one, or two where there are eight cores

  // visit(name, member, help) for every knob that has a flag, in the order of --help.
  template <class Self, class Visitor>
  static void fields(Self& c, Visitor&& visit) {
    visit("host", c.host, "the address to listen on; default: 127.0.0.1");
    visit("port", c.port, "0: any that is free, printed; default: 8000");
    visit("api_key", c.api_keys, "a key that lets clients in; may be given several times");
    visit("allow_unauthenticated", c.allow_unauthenticated, "listen beyond this machine without a key");
    visit("metrics_auth", c.metrics_auth, "/metrics asks for a key too, where there is one");
    visit("ssl_certfile", c.ssl_certfile, "the certificate chain (PEM): speak TLS");
    visit("ssl_keyfile", c.ssl_keyfile, "its key (PEM)");
    visit("allowed_origins", c.allowed_origins, "sites whose pages may ask (CORS), '*': all; default: none");
    visit("allowed_hosts", c.allowed_hosts, "names in the Host header, '*': all; default: this machine's");
    visit("served_model_name", c.served_model_names,
          "what clients call the model; may be given several times");
    visit("chat_template_kwargs", c.chat_template_kwargs, "variables for the chat template, a JSON object");
    visit("strict_fields", c.strict_fields, "refuse requests with fields that mean nothing here");
    visit("enable_auto_tool_choice", c.enable_auto_tool_choice,
          "take tools that the model may call or not, as it likes");
    visit("tool_call_parser", c.tool_call_parser,
          "how the model writes calls: auto | hermes | internlm | llama3_json | none; default: auto");
    visit("reasoning_parser", c.reasoning_parser,
          "how its thinking is found: auto | qwen3 | deepseek_r1 | none; default: auto");
    visit("max_request_size", c.max_request_size, "largest body, with a unit; default: 8MiB");
    visit("max_connections", c.max_connections, "most open connections; default: 4096");
    visit("max_queued_requests", c.max_queued_requests,
          "answers that may wait; more are told 429; 0: no limit; default: 1024");
    visit("header_timeout", c.header_timeout_s, "seconds for the head of a request; default: 10");
    visit("body_timeout", c.body_timeout_s, "seconds for its body; default: 60");
    visit("idle_timeout", c.idle_timeout_s, "seconds between two requests of a connection; default: 75");
    visit("write_timeout", c.write_timeout_s, "seconds in which a client must read something; default: 30");
    visit("request_timeout", c.request_timeout_s, "seconds for an answer, waiting included; 0: no limit");
    visit("shutdown_timeout", c.shutdown_timeout_s, "seconds for open answers when stopped; default: 25");
    visit("stall_timeout", c.stall_timeout_s, "seconds without a step until /health says 503; default: 30");
    visit("access_log", c.access_log, "a line for each request");
    visit("io_threads", c.io_threads, "threads that read and write sockets; 0: chosen by cores");
  }
};

}  // namespace whippet::serve
