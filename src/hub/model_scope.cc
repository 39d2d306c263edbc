// The ModelScope hub: GET /api/v1/models/{repo}/repo/files, then /api/v1/models/{repo}/repo?FilePath=. Its
// listing has a SHA-256 of each file and no commit of the whole, so a snapshot is named by what it holds.
#include <algorithm>

#include "hub/digest.h"
#include "hub/json_fields.h"
#include "hub/model_name.h"
#include "hub/repository.h"
#include "hub/retry.h"
#include "hub/url.h"

namespace whippet {
namespace {

using nlohmann::json;

constexpr const char* kMainBranch = "master";
constexpr const char* kPages = "https://www.modelscope.cn/models/";

Error explain_status(const HttpResponse& response, const std::string& repo, const std::string& what) {
  const std::string thing = what.empty() ? "ms:" + repo : "ms:" + repo + "/" + what;
  const std::string page = kPages + repo;
  if (response.status == 401 || response.status == 403) {
    return make_error(
        Code::kUnauthenticated,
        "{}: access is restricted ({}). Look at {} (a licence may have to be accepted), then set "
        "MODELSCOPE_API_TOKEN to a token of that account",
        thing, response.status, page);
  }
  if (response.status == 404) {
    return make_error(Code::kNotFound, "{}: ModelScope has no such model, revision or file (404); see {}",
                      thing, page);
  }
  return make_error(Code::kUnavailable, "{}: {} answers {}", thing, display_url(response.url),
                    response.status);
}

// The snapshot's name: 40 hex digits over names, checksums and last commits of all files. The same content
// has the same name, whatever the order of the listing.
std::string commit_of(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  Digest digest = Digest::sha256();
  for (const std::string& line : lines) digest.update(line);
  return std::move(digest).hex().substr(0, 40);
}

Listing parse_listing(const json& files, const std::string& revision) {
  Listing listing;
  listing.revision = revision;
  std::vector<std::string> lines;
  for (const json& entry : files) {
    if (string_at(entry, "Type") == "tree") continue;
    RepoFile file;
    file.path = string_at(entry, "Path");
    file.size = count_at(entry, "Size");
    const std::string sha256 = string_at(entry, "Sha256");
    const bool valid =
        sha256.size() == 64 && sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (valid) file.sha256 = sha256;
    lines.push_back(fmt::format("{}\n{}\n{}\n{}\n", file.path, file.sha256, file.size.value_or(0),
                                string_at(entry, "Revision")));
    listing.files.push_back(std::move(file));
  }
  listing.commit = commit_of(std::move(lines));
  return listing;
}

Result<Listing> list_files(HttpClient& client, const std::string& repo, const std::string& revision,
                           const HubConfig& config, const std::string& secret) {
  HttpRequest request;
  request.url = fmt::format("{}/api/v1/models/{}/repo/files?Revision={}&Recursive=true", config.ms_endpoint,
                            encode_path(repo), encode_segment(revision));
  request.secret = secret;
  request.accept = "application/json";
  WH_ASSIGN(const HttpResponse response, send_with_retries(client, request, config));
  if (response.status != 200) return explain_status(response, repo, "");
  const json answer = json::parse(response.body, nullptr, false);
  const json& files = field_at(field_at(answer, "Data"), "Files");
  if (files.is_array()) return parse_listing(files, revision);
  const json& success = field_at(answer, "Success");
  if (success.is_boolean() && !success.get<bool>()) {
    return make_error(Code::kNotFound, "ms:{}: ModelScope says '{}'", repo,
                      string_at(answer, "Message").substr(0, 200));
  }
  return make_error(Code::kCorrupt, "{} does not answer as ModelScope does (no list of files)",
                    display_url(request.url));
}

}  // namespace

std::filesystem::path model_scope_cache(const HubConfig& config) {
  return config.whippet_cache / "models" / "modelscope";
}

Repository model_scope(const std::string& repo, const HubConfig& config) {
  const std::string secret = config.ms_token.empty() ? "" : "Cookie: m_session_id=" + config.ms_token;
  RepoCache cache(model_scope_cache(config), repo, kMainBranch);
  Repository repository{"ms:" + repo, secret, std::move(cache), {}, {}, {}, {}};
  repository.list = [repo, secret, &config](HttpClient& client, const std::string& revision) {
    return list_files(client, repo, revision.empty() ? kMainBranch : revision, config, secret);
  };
  repository.file_url = [repo, &config](const Listing& listing, const RepoFile& file) {
    return fmt::format("{}/api/v1/models/{}/repo?Revision={}&FilePath={}", config.ms_endpoint,
                       encode_path(repo), encode_segment(listing.revision), encode_segment(file.path));
  };
  repository.explain = [repo](const HttpResponse& response, const std::string& what) {
    return explain_status(response, repo, what);
  };
  return repository;
}

}  // namespace whippet
