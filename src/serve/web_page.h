// The page at /: plain files that are embedded in the binary. Generated from web/ by cmake/EmbedWeb.cmake.
#pragma once

#include <optional>
#include <string_view>

namespace whippet::serve {

struct WebFile {
  std::string_view bytes;
  std::string_view content_type;  // with its charset
  std::string_view etag;          // with its quotation marks; changes with the bytes
};

// The file of a path of a URL, without its query: "/" is index.html, "/app.js" is app.js. nullopt: no such
// file.
std::optional<WebFile> web_file(std::string_view path);

}  // namespace whippet::serve
