# Run by the build: cmake -DSOURCE=... -DVERSION=... -DOUT=... -P WriteVersionStamp.cmake
# Writes OUT only when its content changes, so that an unchanged commit recompiles nothing.

set(commit "unknown")
file(READ ${SOURCE}/cmake/commit.txt archived)
string(STRIP "${archived}" archived)
if(archived MATCHES "^[0-9a-f]+$")  # `git archive` put the commit in place of the format
  set(commit ${archived})
elseif(EXISTS ${SOURCE}/.git)  # not a parent's repository that the tarball was unpacked into
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit ${head})
    execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()

set(text "#pragma once\n\n#define WHIPPET_VERSION \"${VERSION}\"\n#define WHIPPET_COMMIT \"${commit}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE ${OUT} "${text}")
endif()
