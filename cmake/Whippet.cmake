# How every folder of src/ is built: whippet_library, whippet_test, whippet_fuzzer.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(whippet_flags INTERFACE)
target_include_directories(whippet_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
# -ffp-contract=off: a*b+c is fused only where the source says fma, so that results do not depend
# on what a compiler chose to contract.
target_compile_options(whippet_flags INTERFACE -Wall -Wextra -Wshadow -Wno-unknown-pragmas -ffp-contract=off)
if(WHIPPET_WERROR)
  target_compile_options(whippet_flags INTERFACE -Werror)
endif()
if(WHIPPET_SANITIZE)
  # The instrumentation hides from g++ that a value is set, and the warning is then wrong.
  target_compile_options(whippet_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(whippet_flags INTERFACE -fsanitize=${WHIPPET_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=undefined)
  target_link_options(whippet_flags INTERFACE -fsanitize=${WHIPPET_SANITIZE})
endif()
if(WHIPPET_FUZZ)
  target_compile_options(whippet_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(whippet_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# find_static(NAME OUT): the archive where the system ships one, else the shared library.
function(find_static name out)
  find_library(${out}_PATH NAMES lib${name}.a ${name} REQUIRED)
  set(${out} ${${out}_PATH} PARENT_SCOPE)
endfunction()

# Folders that compute: slow without optimisation, and quick to compile with it.
set(WHIPPET_COMPUTING_FOLDERS tensor backend model quantize text)
function(whippet_optimise target folder)
  if(WHIPPET_SANITIZE AND folder IN_LIST WHIPPET_COMPUTING_FOLDERS)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# whippet_library(FOLDER SOURCES a.cc ... USES base ... LINKS ...): the library of one folder.
function(whippet_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(whippet_${name} STATIC ${ARG_SOURCES})
  whippet_optimise(whippet_${name} ${name})
  list(TRANSFORM ARG_USES PREPEND whippet_)
  target_link_libraries(whippet_${name} PUBLIC whippet_flags ${ARG_USES} PRIVATE ${ARG_LINKS} Threads::Threads)
endfunction()

# Folders whose code starts threads: their tests are built by the target thread_tests for ThreadSanitizer.
set(WHIPPET_THREADED_FOLDERS base backend hub engine api serve)
if(WHIPPET_TESTS)
  add_custom_target(thread_tests)
endif()

# GoogleTest: what is installed, or its source for another processor (both of libgtest-dev).
function(whippet_find_gtest)
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(GTest REQUIRED)
  elseif(NOT TARGET GTest::gtest)
    add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  endif()
endfunction()

# whippet_test(FOLDER SOURCES a_test.cc ... USES ...): one test program of a folder, each case a ctest test with
# the folder as its label. A case whose name begins with Long runs only under `scripts/test --long`.
function(whippet_test name)
  if(NOT WHIPPET_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  whippet_find_gtest()
  include(GoogleTest)
  list(TRANSFORM ARG_USES PREPEND whippet_)
  add_executable(${name}_test ${ARG_SOURCES})
  target_compile_definitions(${name}_test PRIVATE WHIPPET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name}_test PRIVATE ${ARG_USES} ${ARG_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(${name}_test PRIVATE -O1)  # half the compile time, and only the tests' own code
  endif()
  whippet_optimise(${name}_test ${name})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder ${folder})
  if(folder IN_LIST WHIPPET_THREADED_FOLDERS)
    add_dependencies(thread_tests ${name}_test)
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 600 LABELS ${name})
endfunction()

# whippet_fuzzer(NAME SOURCES x_fuzz.cc USES ...): a libFuzzer program; built only with WHIPPET_FUZZ, all of
# them by the target `fuzzers`. Seeds, where it has any, are the files of tests/fuzz_seeds/NAME.
if(WHIPPET_FUZZ)
  add_custom_target(fuzzers)
endif()
function(whippet_fuzzer name)
  if(NOT WHIPPET_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND whippet_)
  add_executable(${name}_fuzz ${ARG_SOURCES})
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_USES} ${ARG_LINKS})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name}_fuzz)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()
