# libwhippet.so: the C++ API as one library, and the CMake package that find_package(Whippet) finds. Everything else
# is linked into it and hidden, so that a program's own fmt, spdlog or OpenSSL headers never meet Whippet's.

include(CMakePackageConfigHelpers)

add_library(whippet_shared SHARED $<TARGET_OBJECTS:whippet_api>)
target_link_libraries(whippet_shared PRIVATE whippet_api)
target_link_options(whippet_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/api/whippet.map -Wl,-z,defs)
set_target_properties(whippet_shared PROPERTIES
  OUTPUT_NAME whippet EXPORT_NAME whippet VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINKER_LANGUAGE CXX LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/whippet.map)
target_include_directories(whippet_shared INTERFACE $<INSTALL_INTERFACE:include>)
target_compile_features(whippet_shared INTERFACE cxx_std_20)

set(package lib/cmake/Whippet)
install(TARGETS whippet_shared EXPORT WhippetTargets LIBRARY DESTINATION lib)
install(EXPORT WhippetTargets NAMESPACE whippet:: DESTINATION ${package})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/whippet DESTINATION include)
write_basic_package_version_file(WhippetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/WhippetConfig.cmake ${PROJECT_BINARY_DIR}/WhippetConfigVersion.cmake
        DESTINATION ${package})
