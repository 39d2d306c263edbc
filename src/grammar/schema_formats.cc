#include "grammar/schema_formats.h"

#include <algorithm>
#include <array>
#include <utility>

namespace whippet::grammar {
namespace {

#define WH_DATE                                                                                              \
  "[12]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-" \
  "8]))"
#define WH_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define WH_BYTE "(25[0-5]|2[0-4]\\d|1\\d{2}|[1-9]?\\d)"
#define WH_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,40}[a-zA-Z0-9])?"
#define WH_HEX "[0-9a-fA-F]"

constexpr auto kFormats = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"date", WH_DATE},
    {"time", WH_TIME},
    {"date-time", WH_DATE "T" WH_TIME},
    {"duration",
     "P(\\d{1,4}W|\\d{1,4}D(T\\d{1,2}H(\\d{1,2}M)?)?|T\\d{1,4}H(\\d{1,2}M(\\d{1,2}S)?)?|T\\d{1,4}M|"
     "T\\d{1,5}S)"},
    {"email", "[a-zA-Z0-9]([a-zA-Z0-9_+-]{0,30}[a-zA-Z0-9])?(\\.[a-zA-Z0-9]{1,20}){0,3}@(" WH_LABEL
              "\\.){1,3}[a-zA-Z]{2,12}"},
    {"hostname", WH_LABEL "(\\." WH_LABEL "){0,4}"},
    {"ipv4", WH_BYTE "(\\." WH_BYTE "){3}"},
    {"ipv6", WH_HEX "{1,4}(:" WH_HEX "{1,4}){7}"},
    {"uuid", WH_HEX "{8}-" WH_HEX "{4}-" WH_HEX "{4}-" WH_HEX "{4}-" WH_HEX "{12}"},
    {"uri", "https?://(" WH_LABEL "\\.){1,3}[a-zA-Z]{2,12}(:[1-9]\\d{0,3})?(/[a-zA-Z0-9._~-]{1,60}){0,8}/?"
            "(\\?[a-zA-Z0-9._~=&-]{1,100})?(#[a-zA-Z0-9._~-]{1,60})?"},
});

// They tell a program what to do with the text, and say nothing of it.
constexpr auto kSilent =
    std::to_array<std::string_view>({"binary", "password", "path", "file-path", "directory-path", "byte",
                                     "int32", "int64", "float", "double"});

}  // namespace

Result<std::optional<std::string_view>> format_pattern(const SchemaAt& place, const std::string& format) {
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return std::optional(pattern);
  if (std::ranges::find(kSilent, format) != kSilent.end()) return std::optional<std::string_view>();
  std::string known;
  for (const auto& [name, pattern] : kFormats) known += (known.empty() ? "" : ", ") + std::string(name);
  return schema_error(place.path, "format",
                      fmt::format("'{}' is not supported: {} are", format.substr(0, 40), known));
}

}  // namespace whippet::grammar
