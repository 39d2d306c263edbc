#include "cli/bench_flags.h"

#include <fmt/format.h>

#include <string>

#include "base/fields.h"

namespace whippet {

CLI::Validator within(double least, double most) {
  return {[least, most](const std::string& text) {
            const Result<double> value = parse_number(text);
            if (!value.ok()) return value.error().message;
            const bool fits = *value >= least && *value <= most;
            return fits ? std::string() : fmt::format("{} is not between {} and {}", text, least, most);
          },
          ""};
}

}  // namespace whippet
