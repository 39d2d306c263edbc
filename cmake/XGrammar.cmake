# The target `xgrammar`: the grammar library's C++ core, compiled from a source tree that scripts/fetch_source puts
# into the cache of downloads; nothing of it is in this tree. Where it is not there, the target is not either, and
# src/grammar links absent.cc.

set(WHIPPET_XGRAMMAR_VERSION 0.2.5.post1)
set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache)
  set(cache $ENV{HOME}/.cache)
endif()
set(WHIPPET_XGRAMMAR_SOURCE ${cache}/whippet/src/xgrammar-${WHIPPET_XGRAMMAR_VERSION}
    CACHE PATH "xgrammar's source, for structured output")

if(NOT EXISTS ${WHIPPET_XGRAMMAR_SOURCE}/include/xgrammar/xgrammar.h)
  message(STATUS "Grammars: built without, no xgrammar in '${WHIPPET_XGRAMMAR_SOURCE}' (scripts/fetch_source gets it)")
  return()
endif()
message(STATUS "Grammars: xgrammar ${WHIPPET_XGRAMMAR_VERSION} from ${WHIPPET_XGRAMMAR_SOURCE}")

file(GLOB xgrammar_sources ${WHIPPET_XGRAMMAR_SOURCE}/cpp/*.cc ${WHIPPET_XGRAMMAR_SOURCE}/cpp/support/*.cc)
add_library(xgrammar STATIC ${xgrammar_sources})
set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17)
# Its own build asks for link-time optimisation and its own warnings; neither is wanted here. Below -O1 a mask takes
# milliseconds.
target_compile_options(xgrammar PRIVATE -w $<$<CONFIG:Debug>:-O1>)
target_include_directories(xgrammar SYSTEM PUBLIC ${WHIPPET_XGRAMMAR_SOURCE}/include
                           ${WHIPPET_XGRAMMAR_SOURCE}/3rdparty/dlpack/include
                           PRIVATE ${WHIPPET_XGRAMMAR_SOURCE}/3rdparty/picojson)
# src/grammar/xgrammar_grammar.cc says what becomes of its log.
target_compile_definitions(xgrammar PRIVATE XGRAMMAR_LOG_CUSTOMIZE=1 XGRAMMAR_ENABLE_CPPTRACE=0
                           XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
if(WHIPPET_SANITIZE)
  string(REGEX REPLACE ",?undefined" "" sanitizers "${WHIPPET_SANITIZE}")  # of whose rules it keeps not all
  if(sanitizers)
    target_compile_options(xgrammar PRIVATE -fsanitize=${sanitizers} -fno-omit-frame-pointer)
  endif()
endif()
if(WHIPPET_FUZZ)
  target_compile_options(xgrammar PRIVATE -fsanitize=fuzzer-no-link)
endif()
