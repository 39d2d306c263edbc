// The Hugging Face hub: GET /api/models/{repo}/revision/{revision}, then {repo}/resolve/{commit}/{file}.
// https://huggingface.co/docs/hub/api
#include "base/log.h"
#include "hub/json_fields.h"
#include "hub/model_name.h"
#include "hub/repository.h"
#include "hub/retry.h"
#include "hub/url.h"

namespace whippet {
namespace {

using nlohmann::json;

constexpr const char* kPages = "https://huggingface.co/";  // where a licence is accepted, whatever the mirror

bool is_hex(const std::string& text, size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// An ETag is the SHA-256 of a large file, the git SHA-1 of a small one; anything else is no checksum.
void take_etag(std::string etag, RepoFile& file) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  if (is_hex(etag, 64)) file.sha256 = etag;
  if (is_hex(etag, 40)) file.git_sha1 = etag;
}

Listing parse_listing(const json& answer) {
  Listing listing;
  listing.commit = string_at(answer, "sha");
  const json& siblings = field_at(answer, "siblings");
  if (siblings.is_array()) {
    for (const json& sibling : siblings) {
      RepoFile file;
      file.path = string_at(sibling, "rfilename");
      file.size = count_at(sibling, "size");
      take_etag(string_at(sibling, "blobId"), file);
      const json& lfs = field_at(sibling, "lfs");
      if (lfs.is_object()) {
        file.git_sha1.clear();  // of the pointer, not of the file
        take_etag(string_at(lfs, "sha256"), file);
        if (const auto size = count_at(lfs, "size")) file.size = size;
      }
      listing.files.push_back(std::move(file));
    }
  }
  listing.licence = string_at(field_at(answer, "cardData"), "license");
  const json& tags = field_at(answer, "tags");
  for (size_t i = 0; listing.licence.empty() && tags.is_array() && i < tags.size(); ++i) {
    const std::string tag = tags[i].is_string() ? tags[i].get<std::string>() : "";
    if (tag.starts_with("license:")) listing.licence = tag.substr(8);
  }
  return listing;
}

Error explain_status(const HttpResponse& response, const std::string& repo, const std::string& what,
                     bool token) {
  const std::string page = kPages + repo;
  const std::string code = response.header("x-error-code");
  const std::string thing = what.empty() ? "hf:" + repo : "hf:" + repo + "/" + what;
  const int status = response.status;
  if (status == 403 || code == "GatedRepo") {
    return make_error(
        Code::kUnauthenticated,
        "{}: access is restricted ({}). Accept the licence at {}, then set HF_TOKEN to a token of "
        "that account with read access",
        thing, status, page);
  }
  if (code == "RevisionNotFound") {
    return make_error(Code::kNotFound, "{}: there is no such revision (see {}/branches/main)", thing, page);
  }
  if (status == 401) {
    if (token) {
      return make_error(
          Code::kUnauthenticated,
          "{}: the hub refuses the token ({}): it is wrong or expired, or {} is private, does not "
          "exist, or wants its licence accepted first at {}",
          thing, status, repo, page);
    }
    return make_error(
        code == "RepoNotFound" ? Code::kNotFound : Code::kUnauthenticated,
        "{}: there is no such model, or it is private or wants its licence accepted ({}). Look at {}; "
        "with an account set HF_TOKEN",
        thing, status, page);
  }
  if (status == 404)
    return make_error(Code::kNotFound, "{}: not found on {} (404)", thing, display_url(response.url));
  return make_error(Code::kUnavailable, "{}: {} answers {}", thing, display_url(response.url), status);
}

Result<Listing> list_files(HttpClient& client, const std::string& repo, const std::string& revision,
                           const HubConfig& config, const std::string& secret) {
  HttpRequest request;
  request.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", config.hf_endpoint, encode_path(repo),
                            encode_segment(revision));
  request.secret = secret;
  request.accept = "application/json";
  WH_ASSIGN(const HttpResponse response, send_with_retries(client, request, config));
  if (response.status != 200) return explain_status(response, repo, "", !secret.empty());
  const json answer = json::parse(response.body, nullptr, false);
  if (!answer.is_object() || !field_at(answer, "siblings").is_array()) {
    return make_error(Code::kCorrupt,
                      "{} does not answer as a Hugging Face hub does (no list of files): is it one?",
                      display_url(request.url));
  }
  Listing listing = parse_listing(answer);
  listing.revision = revision;
  return listing;
}

// For a mirror whose listing has no checksums: they are headers of the file itself.
Result<RepoFile> look_at_headers(HttpClient& client, const std::string& url, RepoFile file,
                                 const std::string& repo, const std::string& secret,
                                 const HubConfig& config) {
  HttpRequest request;
  request.url = url;
  request.head = true;
  request.secret = secret;
  request.leave_origin = false;
  WH_ASSIGN(const HttpResponse response, send_with_retries(client, request, config));
  if (response.status >= 400) return explain_status(response, repo, file.path, !secret.empty());
  const bool linked = !response.header("x-linked-etag").empty();
  take_etag(response.header(linked ? "x-linked-etag" : "etag"), file);
  const bool redirect = response.status >= 300;
  const std::string size = response.header(redirect || linked ? "x-linked-size" : "content-length");
  if (!size.empty() && size.size() < 19 && size.find_first_not_of("0123456789") == std::string::npos) {
    file.size = std::stoull(size);
  }
  return file;
}

}  // namespace

Repository hugging_face(const std::string& repo, const HubConfig& config) {
  const std::string secret = config.hf_token.empty() ? "" : "Authorization: Bearer " + config.hf_token;
  Repository repository{"hf:" + repo, secret, RepoCache(config.hf_cache, repo, "main"), {}, {}, {}, {}};
  repository.list = [repo, secret, &config](HttpClient& client, const std::string& revision) {
    return list_files(client, repo, revision.empty() ? "main" : revision, config, secret);
  };
  repository.file_url = [repo, &config](const Listing& listing, const RepoFile& file) {
    return fmt::format("{}/{}/resolve/{}/{}", config.hf_endpoint, encode_path(repo), listing.commit,
                       encode_path(file.path));
  };
  repository.look_at = [repo, secret, &config](HttpClient& client, const std::string& url, RepoFile file) {
    return look_at_headers(client, url, std::move(file), repo, secret, config);
  };
  repository.explain = [repo, secret](const HttpResponse& response, const std::string& what) {
    return explain_status(response, repo, what, !secret.empty());
  };
  return repository;
}

}  // namespace whippet
