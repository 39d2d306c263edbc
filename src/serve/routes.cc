#include "serve/routes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "serve/shared.h"
#include "serve/web_page.h"
#include "whippet/whippet.h"

namespace whippet::serve {
namespace {

constexpr const char* kWhatWorks =
    "/v1/chat/completions, /v1/completions, /v1/models, /tokenize and /detokenize";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr int32_t kLoadingRetryS = 5;

HttpResponse json(std::string body) { return {.body = std::move(body)}; }

HttpResponse outcome_response(openai::Outcome<std::string> outcome) {
  if (const auto* error = std::get_if<openai::ApiError>(&outcome)) return error_response(*error);
  return json(std::move(std::get<0>(outcome)));
}

HttpResponse unavailable(const char* status) {
  return {.status = 503, .body = fmt::format(R"({{"status":"{}"}})", status)};
}

HttpResponse health(const Shared& shared, const HttpRequest&) {
  if (shared.gate.life() == Gate::Life::kLoading) return unavailable("loading");
  if (shared.gate.life() == Gate::Life::kDraining) return unavailable("draining");
  if (shared.stalled_s > shared.config.stall_timeout_s) return unavailable("stalled");
  return json(R"({"status":"ok"})");
}

HttpResponse livez(const Shared& shared, const HttpRequest&) {
  if (shared.stalled_s > 3 * shared.config.stall_timeout_s) return unavailable("hung");
  return json(R"({"status":"alive"})");
}

HttpResponse show_version(const Shared&, const HttpRequest&) {
  return json(fmt::format(R"({{"version":"{}"}})", version()));
}

HttpResponse metrics(const Shared& shared, const HttpRequest&) {
  HttpResponse response{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  if (const Service* service = shared.service) response.body = service->engine->metrics();
  shared.counters.append_prometheus(response.body);
  return response;
}

uint64_t resident_bytes() {
  uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The engine's numbers, and beside them what the server knows.
HttpResponse stats(const Shared& shared, const HttpRequest&) {
  const Service& service = *shared.service;
  std::string body = service.engine->stats_json();
  body.pop_back();
  const bool more = service.memory_json.size() > 2;
  body += fmt::format(R"(,"memory":{{"resident_bytes":{}{}{},"max_num_seqs":{},)", resident_bytes(),
                      more ? "," : "", std::string_view(service.memory_json).substr(1),
                      service.engine->config().max_num_seqs);
  body +=
      fmt::format(R"("http":{{"connections":{},"busy":{},"inside":{},"hang_ups":{},"slow_readers":{}}}}})",
                  shared.counters.connections.load(), shared.counters.busy.load(), shared.gate.inside(),
                  shared.counters.hang_ups.load(), shared.counters.slow_readers.load());
  return json(std::move(body));
}

HttpResponse load(const Shared& shared, const HttpRequest&) {
  return json(fmt::format(R"({{"server_load":{}}})", shared.gate.requests()));
}

HttpResponse models(const Shared& shared, const HttpRequest&) {
  return json(openai::models_body(shared.service.load()->context));
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

// "lab/name" of "lab%2Fname", which is how clients write a name with a slash in a path.
std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    const int high = escape ? hex_digit(text[i + 1]) : -1, low = escape ? hex_digit(text[i + 2]) : -1;
    const bool whole = high >= 0 && low >= 0;
    plain += whole ? static_cast<char>(high * 16 + low) : text[i];
    if (whole) i += 2;
  }
  return plain;
}

HttpResponse model(const Shared& shared, const HttpRequest& request) {
  const std::string id = percent_decoded(request.path().substr(std::string_view("/v1/models/").size()));
  return outcome_response(openai::model_body(shared.service.load()->context, id));
}

HttpResponse tokenize(const Shared& shared, const HttpRequest& request) {
  return outcome_response(openai::tokenize(shared.service.load()->context, request.body));
}

HttpResponse detokenize(const Shared& shared, const HttpRequest& request) {
  return outcome_response(openai::detokenize(shared.service.load()->context, request.body));
}

HttpResponse page(const Shared&, const HttpRequest& request) {
  const std::optional<WebFile> file = web_file(request.path());
  HttpResponse response{.content_type = std::string(file->content_type)};
  response.headers = {{"ETag", std::string(file->etag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  if (request.if_none_match == file->etag) {
    response.status = 304;
  } else {
    response.body = file->bytes;
  }
  return response;
}

using Kind = Route::Kind;
constexpr Route kRoutes[] = {
    {.method = "GET", .path = "/health", .open = true, .probe = true, .answer = health},
    {.method = "GET", .path = "/livez", .open = true, .probe = true, .answer = livez},
    {.method = "GET", .path = "/version", .answer = show_version},
    {.method = "GET", .path = "/metrics", .probe = true, .answer = metrics},
    {.method = "GET", .path = "/stats", .needs_model = true, .probe = true, .answer = stats},
    {.method = "GET", .path = "/load", .probe = true, .answer = load},
    {.method = "GET", .path = "/v1/models", .needs_model = true, .answer = models},
    {.method = "GET", .path = "/v1/models/*", .needs_model = true, .answer = model},
    {.method = "POST", .path = "/v1/chat/completions", .kind = Kind::kChat, .needs_model = true},
    {.method = "POST", .path = "/v1/completions", .kind = Kind::kCompletion, .needs_model = true},
    {.method = "POST", .path = "/tokenize", .kind = Kind::kWork, .needs_model = true, .answer = tokenize},
    {.method = "POST", .path = "/detokenize", .kind = Kind::kWork, .needs_model = true, .answer = detokenize},
};
constexpr Route kPage = {.method = "GET", .path = "/", .open = true, .answer = page};

bool path_matches(const Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (!pattern.ends_with('*')) return path == pattern;
  return path.starts_with(pattern.substr(0, pattern.size() - 1)) && path.size() >= pattern.size();
}

bool method_matches(const Route& route, const HttpRequest& request) {
  return request.method == route.method || (request.is_head() && std::string_view(route.method) == "GET");
}

// The route of a path whatever the method.
const Route* route_of_path(std::string_view path) {
  for (const Route& route : kRoutes)
    if (path_matches(route, path)) return &route;
  return web_file(path) ? &kPage : nullptr;
}

bool is_json(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  if (type.size() != kJson.size()) return false;
  for (size_t i = 0; i < type.size(); ++i)
    if ((type[i] >= 'A' && type[i] <= 'Z' ? type[i] + ('a' - 'A') : type[i]) != kJson[i]) return false;
  return true;
}

HttpResponse refuse(int status, std::string message, std::string code = "") {
  return error_response(openai::http_error(status, std::move(message), std::move(code)));
}

HttpResponse not_found(std::string_view path) {
  const std::string shown = printable(path, 200);
  for (const std::string_view other : {"/v1/responses", "/v1/messages", "/v1/embeddings", "/api/"}) {
    if (path.starts_with(other))
      return refuse(404, fmt::format("{} is not served here; what works: {}", shown, kWhatWorks),
                    "not_found");
  }
  return refuse(404, fmt::format("{} does not exist; what works: {}", shown, kWhatWorks), "not_found");
}

HttpResponse preflight(const Shared& shared, const HttpRequest& request) {
  HttpResponse response{.status = 204, .content_type = ""};
  response.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                      {"Access-Control-Allow-Headers", "authorization, content-type, x-request-id"},
                      {"Access-Control-Max-Age", "600"}};
  if (!shared.access.origin_allowed(request.origin))
    return refuse(403, "this origin is not allowed (--allowed-origins)");
  return response;
}

std::optional<HttpResponse> check_room(const Shared& shared, const Route& route) {
  if (!route.needs_model) return std::nullopt;
  const Gate::Verdict verdict = shared.gate.verdict();
  std::optional<HttpResponse> refusal;
  int32_t retry_s = shared.retry_after_s;
  if (shared.service == nullptr || verdict == Gate::Verdict::kLoading) {
    refusal = refuse(503, "the model is being loaded: /health says when it is ready", "loading");
    retry_s = kLoadingRetryS;
  } else if (route.answer != nullptr) {
    return std::nullopt;  // it asks nothing of the engine's thread
  } else if (verdict == Gate::Verdict::kDraining) {
    refusal = refuse(503, "the server is shutting down: ask again elsewhere", "shutting_down");
  } else if (verdict == Gate::Verdict::kFull) {
    refusal =
        refuse(429, fmt::format("{} answers run or wait already: try again later", shared.gate.inside()),
               "queue_full");
  }
  if (refusal) refusal->headers.emplace_back("Retry-After", fmt::to_string(retry_s));
  return refusal;
}

}  // namespace

HttpResponse error_response(const openai::ApiError& error) {
  return {.status = error.status, .body = error.body()};
}

const Route* find_route(const HttpRequest& request) {
  const Route* route = route_of_path(request.path());
  return route != nullptr && method_matches(*route, request) ? route : nullptr;
}

std::optional<HttpResponse> check_head(const Shared& shared, const HttpRequest& request) {
  const ServerConfig& config = shared.config;
  if (!shared.access.host_allowed(request.host))
    return refuse(403, fmt::format("the Host '{}' is not allowed here (--allowed-hosts)",
                                   printable(request.host, 100)));
  const bool asks =
      request.method == "OPTIONS" && !request.origin.empty() && !request.requested_method.empty();
  if (asks && shared.access.cors()) return preflight(shared, request);

  const Route* route = route_of_path(request.path());
  const bool open = route != nullptr && (route->open || (route->answer == metrics && !config.metrics_auth));
  if (!open && shared.access.asks_for_key() && !shared.access.opens(request.authorization)) {
    HttpResponse refusal =
        refuse(401,
               request.authorization.empty() ? "a key is needed: send it as 'Authorization: Bearer KEY'"
                                             : "this key is not valid here",
               "invalid_api_key");
    refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  if (route == nullptr) return not_found(request.path());
  if (!method_matches(*route, request)) {
    HttpResponse refusal = refuse(
        405, fmt::format("{} takes {}, not {}", route->path, route->method, printable(request.method, 16)));
    refusal.headers.emplace_back("Allow",
                                 std::string_view(route->method) == "GET" ? "GET, HEAD" : route->method);
    return refusal;
  }
  if (std::string_view(route->method) == "POST" && !is_json(request.content_type))
    return refuse(415, "the body must be JSON: send 'Content-Type: application/json'");
  if (request.content_length > config.max_request_size)
    return refuse(413, fmt::format("the body has {} bytes, the limit is {} (--max-request-size)",
                                   request.content_length, config.max_request_size));
  return check_room(shared, *route);
}

void add_cors(const Shared& shared, const HttpRequest& request, HttpResponse& response) {
  if (request.origin.empty() || !shared.access.origin_allowed(request.origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", request.origin);
  response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, X-Whippet-Ignored-Fields");
  response.headers.emplace_back("Vary", "Origin");
}

}  // namespace whippet::serve
