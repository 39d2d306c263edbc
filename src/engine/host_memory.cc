// What /proc and the cgroups say of memory. Sources: proc(5); the kernel's cgroup-v1 and cgroup-v2 documents.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "engine/memory.h"

namespace whippet {
namespace {

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// The number after `key` at the start of a line of the file; key "" is the whole file.
std::optional<uint64_t> read_number(const std::filesystem::path& file, std::string_view key = "") {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) return parse_number(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

struct CgroupFiles {
  const char* folder;  // under /sys/fs/cgroup
  const char* limit;
  const char* usage;
  const char* reclaimable;  // of memory.stat: page cache that goes when memory is wanted
};
constexpr CgroupFiles kV2 = {"", "memory.max", "memory.current", "inactive_file "};
constexpr CgroupFiles kV1 = {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                             "total_inactive_file "};

// Lowers total and available to what the group at `path` and those above it allow.
void apply_cgroup(const std::filesystem::path& root, const CgroupFiles& files, std::filesystem::path path,
                  MemoryFacts& facts) {
  while (true) {
    const auto folder = root / "sys/fs/cgroup" / files.folder / path.relative_path();
    const auto limit = read_number(folder / files.limit);
    if (limit && *limit < (uint64_t{1} << 60)) {
      const uint64_t usage = read_number(folder / files.usage).value_or(0);
      const uint64_t cache = read_number(folder / "memory.stat", files.reclaimable).value_or(0);
      const uint64_t held = usage - std::min(usage, cache);
      facts.total = std::min(facts.total, *limit);
      facts.available = std::min(facts.available, *limit - std::min(*limit, held));
    }
    if (path.relative_path().empty()) return;
    path = path.parent_path();
  }
}

}  // namespace

MemoryFacts host_memory(DType kv_type, const std::string& root) {
  MemoryFacts facts{.kv_type = kv_type};
  const std::filesystem::path base(root);
  const auto meminfo = base / "proc/meminfo";
  // Without /proc the system is asked for its pages; what caches hold does not count as available then.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto total = read_number(meminfo, "MemTotal:");
  const auto available = read_number(meminfo, "MemAvailable:");
  facts.total = total ? *total * 1024 : static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  facts.available = available ? *available * 1024 : static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  std::ifstream groups(base / "proc/self/cgroup");  // lines "0::/path" (v2) or "5:cpu,memory:/path" (v1)
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (names == ",,") apply_cgroup(base, kV2, line.substr(second + 1), facts);
    if (names.find(",memory,") != std::string::npos) apply_cgroup(base, kV1, line.substr(second + 1), facts);
  }
  return facts;
}

}  // namespace whippet
