// whippet serve: the HTTP server.
#include <string>
#include <utility>

#include "api/loaded_model.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/server_options.h"
#include "serve/server.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

constexpr const char* kHelp =
    R"(Serve a model over HTTP: OpenAI's API under /v1, a chat and a dashboard at /, metrics at /metrics.

The address is printed on standard output as soon as the server listens; GET /health says 200 once the model
is loaded. SIGTERM and Ctrl-C let open answers end (--shutdown-timeout), a second one exits at once. Without a
key the server is open to this machine alone: beyond it --api-key (or WHIPPET_API_KEY, or --api-key-file) is
needed, or --allow-unauthenticated. Every flag can stand in the environment too: WHIPPET_HOST for --host.

Examples:
  whippet serve
  whippet serve Qwen/Qwen2.5-0.5B-Instruct --port 9000 --served-model-name qwen
  whippet serve --host 0.0.0.0 --api-key-file keys.txt
  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"messages": [{"role": "user", "content": "Hello"}]}')";

Result<int> run(const EngineConfig& config, serve::ServerConfig server_config) {
  WH_ASSIGN(const auto server, serve::Server::start(std::move(server_config)));
  WH_TRY(write_output(server->url() + "\n"));
  log_info("listening on {}; the model is being loaded", server->url());
  Engine engine(config);
  WH_TRY(server->open(engine));
  log_info("ready: {}", server->url());
  const bool whole = server->wait();
  log_info("stopped{}", whole ? "" : ": answers that were open ended with an error");
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const EngineOptions engine(app, context);
  const ServerOptions server(app, context);
  return [engine, server, &app, &context] {
    warn_of_variables(context, ServerOptions::variables());
    const Result<ConfigLayers> layers = engine.read(ServerOptions::names());
    if (!layers.ok()) return report_usage(context, app, layers.error());
    const Result<serve::ServerConfig> config = server.read(layers->others());
    if (!config.ok()) return report_usage(context, app, config.error());
    if (engine.print_config()) {
      const Status written = write_output(layers->describe() + ServerOptions::describe(*config));
      return written.ok() ? kExitOk : report_failure(context, written.error());
    }
    const Result<int> code = with_failures([&] { return run(layers->config(), *config); });
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command serve_command() {
  return {.name = "serve", .summary = "serve a model over HTTP", .help = kHelp, .setup = setup};
}

}  // namespace whippet
