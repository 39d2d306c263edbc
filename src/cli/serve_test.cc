// whippet serve as a process: flags, the environment, signals. What it answers is tested in src/serve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "cli/testing.h"
#include "serve/testing.h"

namespace whippet {
namespace {

using serve::Answer;
using serve::get;
using serve::post;
using serve::RawClient;
using testing::HasSubstr;

// The binary, serving a tiny model on a port of its own.
class Serving {
 public:
  Serving(const TestFolder& folder, std::vector<std::string> flags) {
    int out[2];
    EXPECT_EQ(::pipe(out), 0);
    std::vector<std::string> words = {"whippet",   "serve", folder.path().string(), "--port", "0",
                                      "--threads", "1",     "--log-level",          "warning"};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]);
      ::execv(WHIPPET_BINARY, argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    FILE* lines = ::fdopen(out[0], "r");
    char line[256] = {};
    EXPECT_NE(std::fgets(line, sizeof(line), lines), nullptr) << "no address was printed";
    std::fclose(lines);
    url_ = line;
    port_ = static_cast<uint16_t>(std::stoi(url_.substr(url_.rfind(':') + 1)));
  }
  ~Serving() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  const std::string& url() const { return url_; }
  uint16_t port() const { return port_; }
  void signal(int number) { ::kill(child_, number); }
  Answer ask(const std::string& bytes) {
    RawClient client(port_);
    client.send(bytes);
    return client.read_answer();
  }
  void wait_until_ready() {
    for (int i = 0; i < 6000 && ask(get("/health")).status != 200; ++i) ::usleep(10'000);
  }
  // The exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  std::string url_;
  uint16_t port_ = 0;
};

class Serve : public testing::Test {
 protected:
  Serve() { write_tiny_model(folder_, 8192); }
  static std::string long_stream() {
    return post("/v1/completions", R"({"prompt":"Hi","max_tokens":8000,"ignore_eos":true,"stream":true})");
  }
  TestFolder folder_;
};

TEST_F(Serve, PrintsItsAddressServesAndEndsWithTheFirstSignal) {
  Serving serving(folder_, {"--served-model-name", "one", "--served-model-name", "two"});
  EXPECT_EQ(serving.url(), "http://127.0.0.1:" + std::to_string(serving.port()) + "\n");
  serving.wait_until_ready();
  EXPECT_EQ(serving.ask(get("/v1/models/two")).status, 200);
  EXPECT_EQ(serving.ask(post("/v1/completions", R"({"model":"one","prompt":"Hi","max_tokens":3})")).status,
            200);
  EXPECT_THAT(serving.ask(post("/v1/completions", R"({"model":"three","prompt":"Hi"})")).body,
              HasSubstr("one"));
  RawClient client(serving.port());
  client.send(post("/v1/completions", R"({"prompt":"Hi","max_tokens":40,"ignore_eos":true,"stream":true})"));
  EXPECT_NE(client.read_until("\r\n\r\n"), "");
  serving.signal(SIGTERM);
  EXPECT_NE(client.read_until("data: [DONE]\n\n"), "");
  EXPECT_EQ(serving.wait(), 0);
}

TEST_F(Serve, ASecondSignalEndsItAtOnce) {
  Serving serving(folder_, {});
  serving.wait_until_ready();
  RawClient client(serving.port());
  client.send(long_stream());
  EXPECT_NE(client.read_until("data: "), "");
  serving.signal(SIGINT);
  while (serving.ask(get("/health")).status != 503) {
  }
  serving.signal(SIGINT);
  EXPECT_EQ(serving.wait(), 128 + SIGINT);
}

TEST_F(Serve, KeysComeFromAFile) {
  const std::string keys = folder_.write("keys.txt", "# ours\nfirst\r\n\nsecond\n").string();
  Serving serving(folder_, {"--api-key-file", keys, "--api-key", "third"});
  serving.wait_until_ready();
  EXPECT_EQ(serving.ask(get("/v1/models")).status, 401);
  EXPECT_EQ(serving.ask(get("/v1/models", "Authorization: Bearer # ours\r\n")).status, 401);
  for (const char* key : {"first", "second", "third"})
    EXPECT_EQ(serving.ask(get("/v1/models", std::string("Authorization: Bearer ") + key + "\r\n")).status,
              200)
        << key;
}

TEST_F(Serve, WhatIsWrongIsSaidBeforeAModelIsLoaded) {
  const auto run = [this](std::vector<std::string> flags,
                          std::map<std::string, std::string> environment = {}) {
    flags.insert(flags.begin(), {"serve", folder_.path().string()});
    return run_whippet(flags, {.environment = std::move(environment)});
  };
  EXPECT_THAT(run({"--host", "0.0.0.0"}).err, HasSubstr("--allow-unauthenticated"));
  EXPECT_THAT(run({}, {{"WHIPPET_HOST", "0.0.0.0"}}).err, HasSubstr("--allow-unauthenticated"));
  EXPECT_EQ(run({"--host", "0.0.0.0"}).exit_code, 1);
  EXPECT_EQ(run({"--port", "70000"}).exit_code, 2);
  EXPECT_THAT(run({"--port", "70000"}).err, HasSubstr("--port: 70000 is outside"));
  EXPECT_THAT(run({"--shutdown-timeout", "-1"}).err, HasSubstr("--shutdown-timeout"));
  EXPECT_THAT(run({"--chat-template-kwargs", "[1]"}).err, HasSubstr("a JSON object is needed"));
  EXPECT_THAT(run({"--tool-call-parser", "hermse"}).err, HasSubstr("did you mean 'hermes'"));
  EXPECT_THAT(run({"--reasoning-parser", "x"}).err, HasSubstr("qwen3, deepseek_r1, auto, none"));
  EXPECT_THAT(run({"--allowed-origins", "[1]"}).err, HasSubstr("an array of strings"));
  EXPECT_THAT(run({"--api-key-file", "/nowhere"}).err, HasSubstr("/nowhere"));
  EXPECT_THAT(run({"--ssl-certfile", "/nowhere"}).err, HasSubstr("--ssl-keyfile is missing"));
  EXPECT_THAT(run({}, {{"WHIPPET_MAX_CONNECTIONS", "many"}}).err,
              HasSubstr("WHIPPET_MAX_CONNECTIONS: 'many'"));
}

TEST_F(Serve, FlagsHoldOverTheEnvironmentAndThatOverTheFile) {
  const auto file =
      folder_.write("it.yaml", "port: 1\nheader_timeout: 3\nio_threads: 5\nmax-num-seqs: 7\napi_key: k\n");
  const CommandResult result = run_whippet(
      {"serve", folder_.path().string(), "--config", file.string(), "--port", "2", "--print-config"},
      {.environment = {{"WHIPPET_IO_THREADS", "6"}, {"WHIPPET_SERVED_MODEL_NAME", "a,b"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* line :
       {"\nport: 2\n", "\nheader_timeout: 3\n", "\nio_threads: 6\n", "\nmax_num_seqs: 7 ",
        "\nserved_model_name: a,b\n", "\nmax_request_size: 8MiB\n", "\napi_key: (not shown)\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  const auto wrong = folder_.write("wrong.yaml", "io_thread: 5\n");
  EXPECT_THAT(run_whippet({"serve", folder_.path().string(), "--config", wrong.string()}).err,
              HasSubstr("did you mean 'io_threads'?"));
}

TEST_F(Serve, TheEnvironmentStandsForFlagsAndKubernetesMayNameAPort) {
  const CommandResult result =
      run_whippet({"serve", folder_.path().string(), "--ssl-certfile", "/nowhere"},
                  {.environment = {{"WHIPPET_API_KEY", "a,b"}, {"WHIPPET_PORT", "tcp://10.0.0.1:80"}}});
  EXPECT_THAT(result.err, HasSubstr("--ssl-keyfile is missing"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("WHIPPET_")));
}

}  // namespace
}  // namespace whippet
