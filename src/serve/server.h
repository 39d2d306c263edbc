// The HTTP server: OpenAI's API, health, metrics and the page, over one Engine. Listens before the model is
// loaded, so that /health can say so. Used by the command line; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "serve/server_config.h"

namespace whippet {
class Engine;
}

namespace whippet::serve {

class Server {
 public:
  // Binds, listens and starts the threads. Errors name the flag or the address.
  static Result<std::unique_ptr<Server>> start(ServerConfig config);
  // stop(). The engine must have been destroyed before, so that no event comes late.
  ~Server();

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8000"

  // From here on requests are served. Checks what the flags say of the model.
  Status open(Engine& engine);
  // As SIGTERM does: no new request is taken, what runs has --shutdown-timeout to end.
  void drain();
  // Blocks until the server has been drained, then stop(). True where every answer was sent whole.
  bool wait();
  // Closes every connection and ends the threads: from here on nothing touches the engine.
  void stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet::serve
