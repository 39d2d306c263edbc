# Embeds the files of web/ in the binary: writes the .cc that implements src/serve/web_page.h.
#
# embed_web(OUT): sets OUT to the path of that .cc, and makes the build write it again when a file of web/ changes.
# Run as a script (cmake -DWEB=... -DOUT=... -P EmbedWeb.cmake), this file writes it.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(EMBED_WEB_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(embed_web out)
    set(web ${PROJECT_SOURCE_DIR}/web)
    set(file ${PROJECT_BINARY_DIR}/web_page.cc)
    file(GLOB files CONFIGURE_DEPENDS ${web}/*)
    add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -DWEB=${web} -DOUT=${file} -P ${EMBED_WEB_SCRIPT}
                       DEPENDS ${files} ${EMBED_WEB_SCRIPT} COMMENT "Embedding web/" VERBATIM)
    set(${out} ${file} PARENT_SCOPE)
  endfunction()
  return()
endif()

function(content_type_of name out)
  if(name MATCHES "\\.html$")
    set(type "text/html; charset=utf-8")
  elseif(name MATCHES "\\.js$")
    set(type "text/javascript; charset=utf-8")
  elseif(name MATCHES "\\.css$")
    set(type "text/css; charset=utf-8")
  elseif(name MATCHES "\\.svg$")
    set(type "image/svg+xml; charset=utf-8")
  else()
    message(FATAL_ERROR "web/${name}: cmake/EmbedWeb.cmake knows no content type for it")
  endif()
  set(${out} ${type} PARENT_SCOPE)
endfunction()

file(GLOB names RELATIVE ${WEB} ${WEB}/*)
list(SORT names)
set(arrays "")
set(rows "")
set(index 0)
foreach(name ${names})
  file(READ ${WEB}/${name} bytes HEX)
  file(SHA256 ${WEB}/${name} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  content_type_of(${name} type)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kBytes${index}[] = {${bytes}};\n")
  string(APPEND rows "    row(\"/${name}\", kBytes${index}, \"${type}\", \"\\\"${hash}\\\"\"),\n")
  if(name STREQUAL "index.html")
    string(APPEND rows "    row(\"/\", kBytes${index}, \"${type}\", \"\\\"${hash}\\\"\"),\n")
  endif()
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE ${OUT}.new "// Written by cmake/EmbedWeb.cmake from web/.
#include \"serve/web_page.h\"

namespace whippet::serve {
namespace {

${arrays}
struct Row {
  std::string_view path;
  WebFile file;
};

template <size_t kSize>
Row row(std::string_view path, const unsigned char (&bytes)[kSize], std::string_view type, std::string_view etag) {
  return {path, {.bytes = {reinterpret_cast<const char*>(bytes), kSize}, .content_type = type, .etag = etag}};
}

}  // namespace

std::optional<WebFile> web_file(std::string_view path) {
  static const Row kRows[] = {
${rows}  };
  for (const Row& candidate : kRows)
    if (candidate.path == path) return candidate.file;
  return std::nullopt;
}

}  // namespace whippet::serve
")
file(RENAME ${OUT}.new ${OUT})
