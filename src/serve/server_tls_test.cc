// The same server over TLS, by OpenSSL's own client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "serve/testing.h"

namespace whippet::serve {
namespace {

using testing::HasSubstr;

// Writes a key and a certificate that it signs itself.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* x509 = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), 0);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, pair);
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"),
                             -1, -1, 0);
  X509_set_issuer_name(x509, name);
  EXPECT_GT(X509_sign(x509, pair, EVP_sha256()), 0);
  FILE* file = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(file, x509);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(x509);
  EVP_PKEY_free(pair);
}

class ServerTls : public ServerTest {
 protected:
  ServerTls() {
    config.ssl_certfile = folder.path() / "cert.pem";
    config.ssl_keyfile = folder.path() / "key.pem";
    write_certificate(config.ssl_certfile, config.ssl_keyfile);
  }

  // Sends the bytes over TLS and reads until `end` stands in what came.
  std::string converse(const std::string& bytes, const std::string& end) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    BIO* bio = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(server->port())).c_str());
    std::string answer;
    if (BIO_write(bio, bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size())) {
      char buffer[4096];
      while (answer.find(end) == std::string::npos) {
        const int count = BIO_read(bio, buffer, sizeof(buffer));
        if (count <= 0) break;
        answer.append(buffer, static_cast<size_t>(count));
      }
    }
    BIO_free_all(bio);
    SSL_CTX_free(context);
    return answer;
  }
};

TEST_F(ServerTls, StreamsAndAnswersWhole) {
  start();
  EXPECT_TRUE(server->url().starts_with("https://127.0.0.1:")) << server->url();
  const std::string done = "0\r\n\r\n";
  const std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":300,"stream":true})";
  EXPECT_THAT(converse(post("/v1/chat/completions", body), done), HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(converse(get("/version"), "}"), HasSubstr("200 OK"));
  EXPECT_THAT(converse(get("/health", "Connection: close\r\n"), "}"), HasSubstr("ok"));
}

TEST_F(ServerTls, AClientThatLeavesIsCancelled) {
  start();
  gate.shut();
  gate.allow(3);
  const std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":300,"stream":true})";
  EXPECT_THAT(converse(post("/v1/chat/completions", body), "\"a\""), HasSubstr("200 OK"));
  EXPECT_TRUE(eventually([this] {
    gate.allow(1);
    return engine_is_empty();
  }));
  EXPECT_LT(engine->counts().generation_tokens, 300u);
}

TEST_F(ServerTls, WhoSpeaksPlainOrNothingHoldsNobodyUp) {
  config.header_timeout_s = 0.3;
  start();
  RawClient plain = connect(), silent = connect();
  plain.send(get("/health"));
  EXPECT_THAT(converse(get("/health"), "}"), HasSubstr("ok"));
  EXPECT_EQ(plain.read_answer().status, 0);
  EXPECT_TRUE(silent.ended());
}

TEST_F(ServerTls, FilesThatAreWrongAreNamed) {
  const auto problem = [this] {
    const auto started = Server::start(config);
    return started.ok() ? "" : started.error().message;
  };
  const std::string key = std::exchange(config.ssl_keyfile, "");
  EXPECT_THAT(problem(), HasSubstr("--ssl-keyfile is missing"));
  config.ssl_keyfile = "/nowhere/key.pem";
  EXPECT_THAT(problem(), HasSubstr("/nowhere/key.pem"));
  config.ssl_keyfile = folder.path() / "other.pem";
  write_certificate(folder.path() / "unused.pem", config.ssl_keyfile);
  EXPECT_THAT(problem(), HasSubstr("--ssl-keyfile"));
  config.ssl_keyfile = key;
  EXPECT_EQ(problem(), "");
}

TEST_F(ServerTest, AnAddressThatCannotBeHadIsNamed) {
  start();
  ServerConfig taken = config;
  taken.port = server->port();
  const auto second = Server::start(taken);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(server->port())));
  config.host = "no.such.host.invalid";
  config.allow_unauthenticated = true;
  const auto nowhere = Server::start(config);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("no.such.host.invalid"));
}

}  // namespace
}  // namespace whippet::serve
