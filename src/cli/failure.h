// Between the public API, which throws Failure, and the commands, which return Result.
#pragma once

#include <utility>

#include "base/error.h"
#include "whippet/whippet.h"

namespace whippet {

// What `body` returns; a Failure becomes an error with its message.
template <class Body>
auto with_failures(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Failure& failure) {
    return Error{Code::kInvalidArgument, failure.what()};
  }
}

}  // namespace whippet
