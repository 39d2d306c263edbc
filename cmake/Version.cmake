# whippet_version_stamp(TARGET): gives TARGET the generated header base/version_stamp.h, refreshed at build time.
# The commit comes from .git, or from cmake/commit.txt in a tarball made by `git archive`, or is "unknown".

function(whippet_version_stamp target)
  set(folder ${PROJECT_BINARY_DIR}/generated)
  set(stamp ${folder}/base/version_stamp.h)
  add_custom_target(version_stamp
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUT=${stamp}
            -P ${PROJECT_SOURCE_DIR}/cmake/WriteVersionStamp.cmake
    BYPRODUCTS ${stamp} VERBATIM COMMENT "")
  add_dependencies(${target} version_stamp)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
