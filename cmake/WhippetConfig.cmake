# find_package(Whippet): the target whippet::whippet, the C++ API of <whippet/whippet.h>.
include(${CMAKE_CURRENT_LIST_DIR}/WhippetTargets.cmake)
