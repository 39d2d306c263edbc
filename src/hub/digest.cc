#include "hub/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

namespace whippet {
namespace {

constexpr size_t kReadBytes = 1u << 20;

EVP_MD_CTX* as_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

Digest::Digest(const void* algorithm)
    : context_(EVP_MD_CTX_new(), [](void* context) { EVP_MD_CTX_free(as_context(context)); }) {
  WH_CHECK(context_ != nullptr);
  WH_CHECK(EVP_DigestInit_ex(as_context(context_.get()), static_cast<const EVP_MD*>(algorithm), nullptr) ==
           1);
}

Digest Digest::sha256() { return Digest(EVP_sha256()); }

Digest Digest::git_blob(uint64_t size) {
  Digest digest(EVP_sha1());
  std::string head = fmt::format("blob {}", size);
  head += '\0';
  digest.update(head);
  return digest;
}

void Digest::update(std::string_view bytes) {
  WH_CHECK(EVP_DigestUpdate(as_context(context_.get()), bytes.data(), bytes.size()) == 1);
}

std::string Digest::bytes() && {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned size = 0;
  WH_CHECK(EVP_DigestFinal_ex(as_context(context_.get()), out.data(), &size) == 1);
  return {reinterpret_cast<const char*>(out.data()), size};
}

std::string Digest::hex() && {
  std::string out;
  for (const unsigned char c : std::move(*this).bytes()) out += fmt::format("{:02x}", c);
  return out;
}

Status update_from_file(Digest& digest, const std::filesystem::path& path, uint64_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(static_cast<size_t>(std::min<uint64_t>(kReadBytes, std::max<uint64_t>(1, limit))));
  while (limit > 0) {
    const auto want = static_cast<std::streamsize>(std::min<uint64_t>(buffer.size(), limit));
    if (!file.read(buffer.data(), want)) {
      return make_error(Code::kNotFound, "{} cannot be read", path.string());
    }
    digest.update({buffer.data(), static_cast<size_t>(want)});
    limit -= static_cast<uint64_t>(want);
  }
  return {};
}

}  // namespace whippet
