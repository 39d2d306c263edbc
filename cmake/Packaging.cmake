# `cpack` (in the build folder) makes whippet-VERSION-linux-ARCH.tar.gz: the binary, the licences, the READMEs.
# The binary needs nothing beyond glibc 2.36 or newer, libstdc++, libcurl, OpenSSL 3 and zlib.

install(TARGETS whippet RUNTIME DESTINATION bin)
install(FILES LICENSE THIRD_PARTY_NOTICES.md README.md README.zh.md CHANGELOG.md DESTINATION .)

string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_VENDOR "The Whippet authors")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_RESOURCE_FILE_README ${PROJECT_SOURCE_DIR}/README.md)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
