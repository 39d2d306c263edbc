// What the server itself costs: streams over an engine without weights, one token a stream a step, the client
// in a process of its own. Prints the processor time of the server process a streamed token (getrusage), and
// of its threads; how much later a token is read than its step ended; memory a stream; first tokens.
//
//   serve_load [--streams N] [--tokens N] [--step-us N] [--io-threads N] [--first N]
//
// --step-us 0: as fast as it goes. --first N: then N requests alone, one after the other, for their first
// token.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "api/fake_engine.h"
#include "api/tiny_model.h"
#include "base/check.h"
#include "serve/server.h"

namespace whippet::serve {
namespace {

constexpr int kClock = 64;  // steps that can be told apart by the letter they draw
constexpr int32_t kFirstLetter = '0';

struct Options {
  int streams = 512, tokens = 400, step_us = 8000, io_threads = 1, first = 0;
};

// In memory that both processes see. Times are microseconds on the steady clock.
struct Board {
  std::atomic<double> step_time[kClock];  // when the last step of this letter ended
  std::atomic<uint16_t> port;
  std::atomic<bool> started, go;  // every stream has its first token; the measured part begins
  std::atomic<bool> alone;        // steps take no time
  std::atomic<uint64_t> tokens;   // read by the client in the measured part
  std::atomic<double> client_cpu_us, p50_us, p99_us, max_us, first_p50_us, first_max_us;
};

double now_us() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double process_cpu_us() {
  rusage use;
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

int connect_to(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  WH_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

std::string request_of(int tokens) {
  const std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"max_tokens":)" +
                           std::to_string(tokens) + "}";
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Client: reads all streams, and takes the age of every token from the letter that is its text.
class Client {
 public:
  Client(Board& board, const Options& options) : board_(board), options_(options) {}

  void run() {
    while (board_.port == 0) ::usleep(1000);
    const int poll = ::epoll_create1(0);
    for (int i = 0; i < options_.streams; ++i) {
      const int socket = connect_to(board_.port);
      const std::string request = request_of(options_.tokens);
      WH_CHECK(::send(socket, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()));
      ::fcntl(socket, F_SETFL, O_NONBLOCK);
      epoll_event event = {.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(i)}};
      ::epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
      sockets_.push_back(socket);
    }
    tails_.resize(sockets_.size());
    counts_.resize(sockets_.size());
    ages_.reserve(static_cast<size_t>(options_.streams) * static_cast<size_t>(options_.tokens));
    double cpu = 0;
    while (ended_ < options_.streams) {
      std::array<epoll_event, 256> events;
      const int count = ::epoll_wait(poll, events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) read(events[static_cast<size_t>(i)].data.u32);
      if (started_ == options_.streams && !board_.started.exchange(true)) cpu = process_cpu_us();
    }
    board_.client_cpu_us = process_cpu_us() - cpu;
    board_.tokens = ages_.size();
    std::sort(ages_.begin(), ages_.end());
    if (ages_.empty()) ages_.push_back(0);
    board_.p50_us = ages_[ages_.size() / 2];
    board_.p99_us = ages_[ages_.size() * 99 / 100];
    board_.max_us = ages_.back();
    for (const int socket : sockets_) ::close(socket);
    board_.alone = true;
    if (options_.first > 0) measure_first();
  }

 private:
  static constexpr std::string_view kMark = "\"content\":\"";

  void read(uint32_t stream) {
    char* buffer = buffer_.data();
    std::string& tail = tails_[stream];
    std::memcpy(buffer, tail.data(), tail.size());
    const ssize_t count = ::recv(sockets_[stream], buffer + tail.size(), buffer_.size() - tail.size(), 0);
    if (count < 0) return;
    WH_CHECK(count > 0, "stream {} was cut off after {} tokens", stream, counts_[stream]);
    const double now = now_us();
    const std::string_view bytes(buffer, tail.size() + static_cast<size_t>(count));
    size_t at = 0;
    for (size_t found; (found = bytes.find(kMark, at)) != std::string_view::npos;) {
      if (found + kMark.size() >= bytes.size()) break;
      at = found + kMark.size();
      const int letter = bytes[at] - kFirstLetter;
      if (letter < 0 || letter >= kClock) continue;  // the empty text of the opening
      if (counts_[stream]++ == 0) ++started_;
      if (board_.go) ages_.push_back(now - board_.step_time[letter]);
    }
    if (bytes.find("data: [DONE]") != std::string_view::npos) {
      ++ended_;
      ::epoll_ctl(0, EPOLL_CTL_DEL, sockets_[stream], nullptr);
    }
    const std::string_view rest =
        bytes.substr(std::max(at, bytes.size() - std::min(bytes.size(), kMark.size())));
    tail.assign(rest);
  }

  // From the request to its first token, when nothing else runs; the steps take no time.
  void measure_first() {
    const int socket = connect_to(board_.port);
    std::vector<double> times;
    for (int i = 0; i < options_.first; ++i) {
      const std::string request = request_of(2);
      std::string answer;
      const double begin = now_us();
      WH_CHECK(::send(socket, request.data(), request.size(), 0) > 0);
      double first = 0;
      while (answer.find("data: [DONE]\n\n\r\n0\r\n\r\n") == std::string::npos) {
        const ssize_t count = ::recv(socket, buffer_.data(), buffer_.size(), 0);
        WH_CHECK(count > 0);
        answer.append(buffer_.data(), static_cast<size_t>(count));
        if (first == 0 && answer.find("\"finish_reason\":null", answer.find("role")) != std::string::npos &&
            answer.find(kMark, answer.find("\"role\"") + 40) != std::string::npos)
          first = now_us();
      }
      times.push_back(first - begin);
    }
    std::sort(times.begin(), times.end());
    board_.first_p50_us = times[times.size() / 2];
    board_.first_max_us = times.back();
  }

  Board& board_;
  const Options options_;
  std::vector<int> sockets_;
  std::vector<std::string> tails_;
  std::vector<int> counts_;
  std::vector<double> ages_;
  std::vector<char> buffer_ = std::vector<char>(1 << 20);
  int started_ = 0, ended_ = 0;
};

struct ThreadTime {
  std::string name;
  double us = 0;
};

// Processor time by thread.
std::map<std::string, ThreadTime> thread_times() {
  std::map<std::string, ThreadTime> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    double ns = 0;
    ThreadTime& time = all[entry.path().filename().string()];
    std::ifstream(entry.path() / "schedstat") >> ns;
    std::getline(std::ifstream(entry.path() / "comm"), time.name);
    time.us = ns / 1e3;
  }
  return all;
}

double resident_kib() {
  double pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

FakeEngineOptions engine_options(const Options& options, Board& board, const TestFolder& folder) {
  FakeEngineOptions fake{
      .model = folder.path(), .max_model_len = 4096, .max_num_seqs = options.streams, .on_step = {}};
  fake.on_step = [&board, options, next = 0.0](int64_t step) mutable {
    const int letter = static_cast<int>(step % kClock);
    if (board.port != 0 && options.step_us > 0 && !board.alone) {
      next = std::max(next + options.step_us, now_us());
      while (now_us() < next)
        std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(next - now_us()) + 1));
    }
    board.step_time[letter] = now_us();
    return kFirstLetter + letter;
  };
  return fake;
}

// From submit to the first event, without a server.
double first_event_us(Engine& engine, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.messages = {{.role = "user", .content = "Hi"}};
    request.params.max_tokens = 2;
    std::atomic<double> first = 0;
    std::promise<void> done;
    const double begin = now_us();
    engine.submit(std::move(request), [&](const Event& event) {
      if (first == 0) first = now_us();
      if (event.last) done.set_value();
    });
    done.get_future().wait();
    times.push_back(first - begin);
  }
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

int serve(Board& board, const Options& options, pid_t client) {
  TestFolder folder;
  write_tiny_model(folder, 4096);
  ServerConfig config;
  config.port = 0;
  config.handle_signals = config.access_log = false;
  config.io_threads = options.io_threads;
  auto started = Server::start(config);
  WH_CHECK(started.ok(), "{}", started.error().message);
  const std::unique_ptr<Server> server = std::move(started).value();
  Engine engine = FakeEngine::make(engine_options(options, board, folder));
  WH_CHECK(server->open(engine).ok());
  const double direct_us = first_event_us(engine, options.first);
  const double resident = resident_kib();
  board.port = server->port();
  while (!board.started) ::usleep(500);
  const auto threads = thread_times();
  const double cpu = process_cpu_us(), begin = now_us();
  const uint64_t before = engine.counts().generation_tokens;
  board.go = true;
  const uint64_t all = static_cast<uint64_t>(options.streams) * static_cast<uint64_t>(options.tokens);
  while (engine.counts().generation_tokens < before + (all - before) * 9 / 10) ::usleep(20000);
  const auto tokens = static_cast<double>(engine.counts().generation_tokens - before);
  const double used = process_cpu_us() - cpu, seconds = (now_us() - begin) / 1e6;
  const double grown = resident_kib() - resident;
  std::printf("%d streams, step %d us: %.0f tokens/s; server %.2f us of processor a token\n", options.streams,
              options.step_us, tokens / seconds, used / tokens);
  for (const auto& [thread, time] : thread_times()) {
    const double spent = time.us - (threads.contains(thread) ? threads.at(thread).us : 0);
    if (spent / tokens > 0.01) std::printf("  thread %s: %.2f us\n", time.name.c_str(), spent / tokens);
  }
  std::printf("  resident: %.1f KiB a stream\n", grown / options.streams);
  std::fflush(stdout);
  int status = 0;
  ::waitpid(client, &status, 0);
  std::printf("  client: %.2f us a token; token read after its step: p50 %.0f us, p99 %.0f us, max %.0f us\n",
              board.client_cpu_us / static_cast<double>(board.tokens), board.p50_us.load(),
              board.p99_us.load(), board.max_us.load());
  if (options.first > 0)
    std::printf(
        "  first token of a request alone: p50 %.0f us, max %.0f us; from the engine itself: p50 %.0f us\n",
        board.first_p50_us.load(), board.first_max_us.load(), direct_us);
  server->stop();
  return status;
}

int run(int argc, char** argv) {
  Options options;
  const std::map<std::string, int*> flags = {{"--streams", &options.streams},
                                             {"--tokens", &options.tokens},
                                             {"--step-us", &options.step_us},
                                             {"--io-threads", &options.io_threads},
                                             {"--first", &options.first}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto flag = flags.find(argv[i]);
    WH_CHECK(flag != flags.end(), "unknown flag {}", argv[i]);
    *flag->second = std::atoi(argv[i + 1]);
  }
  rlimit limit;
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Board& board = *new (memory) Board();
  const pid_t client = ::fork();  // before there are threads
  if (client == 0) {
    Client(board, options).run();
    std::_Exit(0);
  }
  return serve(board, options, client);
}

}  // namespace
}  // namespace whippet::serve

int main(int argc, char** argv) { return whippet::serve::run(argc, argv); }
