#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace whippet {
namespace {

constexpr auto kDrawInterval = std::chrono::milliseconds(100);
constexpr int kBarWidth = 30;

// Bytes that fit on one line of the terminal: a longer line would wrap and could not be drawn over.
size_t line_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
  return size.ws_col - 1u;
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

Progress::Progress(std::string label, uint64_t total, Unit unit)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_draw_(start_) {}

Progress::~Progress() { finish(); }

void Progress::set(uint64_t done) {
  done_ = done;
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_draw_ < kDrawInterval) return;
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto show = [this](uint64_t n) {
    return unit_ == Unit::kBytes ? format_bytes(n) : std::to_string(n);
  };
  std::string line = label_ + " ";
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const int filled = static_cast<int>(share * kBarWidth);
    line += fmt::format("[{}{}] {:3.0f}% {} / {}", std::string(filled, '='),
                        std::string(kBarWidth - filled, ' '), share * 100, show(done_), show(total_));
    if (done_ > 0 && share < 1) line += fmt::format(", {:.0f} s left", seconds / share - seconds);
  } else {
    line += show(done_);
  }
  if (unit_ == Unit::kBytes && seconds > 0)
    line += fmt::format(" ({}/s)", format_bytes(static_cast<uint64_t>(static_cast<double>(done_) / seconds)));
  if (line.size() > line_width()) line.resize(line_width());
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (!drawn_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace whippet
