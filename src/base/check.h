// WH_CHECK: for what only a bug can cause. Prints file, line, condition and a message, then aborts.
// A CHECK must be unreachable from any request or file; what the outside can cause is a Result<T>.
#pragma once

#include <fmt/format.h>

#include <string>

namespace whippet {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace whippet

#define WH_CHECK(condition, ...)                                                              \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::whippet::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

#define WH_CHECK_EQ(a, b) WH_CHECK((a) == (b), "{} vs {}", (a), (b))
#define WH_CHECK_LE(a, b) WH_CHECK((a) <= (b), "{} vs {}", (a), (b))
#define WH_CHECK_LT(a, b) WH_CHECK((a) < (b), "{} vs {}", (a), (b))
