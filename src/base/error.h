// Result<T>: a value, or an Error that says what the outside did wrong and what to do about it.
// Used for everything a user, a file or a network can cause; bugs are WH_CHECK.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace whippet {

enum class Code {
  kInvalidArgument,    // the caller asked for something impossible; names the field
  kNotFound,           // no such model, file, tensor
  kUnauthenticated,    // a token is missing, wrong, or a licence is not accepted
  kCorrupt,            // a file is truncated, hostile or not what it claims to be
  kUnsupported,        // understood, but not implemented here; names what works instead
  kUnavailable,        // network, busy; trying again may help
  kResourceExhausted,  // memory, disk, a limit
  kDeadlineExceeded,
  kCancelled,
};

// "invalid_argument", "not_found", ...
const char* code_name(Code code);

struct Error {
  Code code;
  std::string message;  // one sentence a user can act on: which thing, expected, found
};

template <class... Args>
Error make_error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The value. Asking for it on an error is a bug: check ok() first.
  T& value() & {
    WH_CHECK(ok(), "{}", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    WH_CHECK(ok(), "{}", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T&& value() && {
    WH_CHECK(ok(), "{}", std::get<1>(state_).message);
    return std::move(std::get<0>(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    WH_CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    WH_CHECK(!ok());
    return std::move(std::get<1>(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    WH_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace whippet

#define WH_CONCAT_INNER(a, b) a##b
#define WH_CONCAT(a, b) WH_CONCAT_INNER(a, b)

// WH_TRY(expression): returns the error of a Result from the enclosing function.
#define WH_TRY(expression)                                    \
  do {                                                        \
    auto wh_status = (expression);                            \
    if (!wh_status.ok()) return std::move(wh_status).error(); \
  } while (false)

// WH_ASSIGN(auto x, expression): x is the value of the Result, or the enclosing function returns its error.
#define WH_ASSIGN(target, expression) WH_ASSIGN_INNER(target, expression, WH_CONCAT(wh_result_, __LINE__))
#define WH_ASSIGN_INNER(target, expression, name) \
  auto name = (expression);                       \
  if (!name.ok()) return std::move(name).error(); \
  target = std::move(name).value()
