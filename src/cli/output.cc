#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace whippet {

Status write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return make_error(Code::kCancelled, "the reader of standard output is gone");
    } else if (errno == EAGAIN) {  // somebody made the terminal non-blocking
      pollfd ready{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return make_error(Code::kResourceExhausted, "cannot write to standard output: {}",
                        std::strerror(errno));
    }
  }
  return {};
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Status write_json_line(const nlohmann::ordered_json& value) { return write_output(json_text(value) + "\n"); }

}  // namespace whippet
