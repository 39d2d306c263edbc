// What answers which path: the list of routes, what each asks for, and what is said before a body is read.
// Pure functions over Shared; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/answer_stream.h"
#include "serve/http_message.h"

namespace whippet::serve {

struct Shared;
struct Service;

struct Route {
  enum class Kind : uint8_t {
    kAtOnce,  // a quick function
    kWork,    // one that may take its time
    kChat,    // answers come from the engine
    kCompletion,
  };
  const char* method;  // "GET" stands for HEAD too
  const char* path;    // one that ends in '*' is a beginning
  Kind kind = Kind::kAtOnce;
  bool open = false;         // no key is asked for
  bool needs_model = false;  // 503 until it is loaded
  bool probe = false;        // no line in the access log
  HttpResponse (*answer)(const Shared& shared, const HttpRequest& request) = nullptr;
};

// The request's route, or nullptr: check_head() has answered then.
const Route* find_route(const HttpRequest& request);

// What is wrong with a request as far as its head shows: Host, key, path, method, type, size, a server that
// loads, stops or is full. nullopt: let the body in.
std::optional<HttpResponse> check_head(const Shared& shared, const HttpRequest& request);

// Headers that every answer to this request gets: CORS, where it is on.
void add_cors(const Shared& shared, const HttpRequest& request, HttpResponse& response);

HttpResponse error_response(const openai::ApiError& error);

}  // namespace whippet::serve
