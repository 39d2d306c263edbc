// A progress bar on stderr: drawn only where stderr is a terminal, otherwise silent. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace whippet {

class Progress {
 public:
  enum class Unit { kCount, kBytes };

  // total 0 means unknown. Nothing is drawn before the first 100 ms have passed.
  Progress(std::string label, uint64_t total, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set(uint64_t done);
  void set_total(uint64_t total) { total_ = total; }
  void add(uint64_t more) { set(done_ + more); }
  void finish();  // removes the bar; idempotent

 private:
  void draw();

  std::string label_;
  uint64_t total_;
  uint64_t done_ = 0;
  Unit unit_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
};

// "93.8 MiB", "512 B".
std::string format_bytes(uint64_t bytes);

}  // namespace whippet
