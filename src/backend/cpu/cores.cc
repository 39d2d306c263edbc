#include "backend/cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace whippet::cpu {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kUnlimited = std::numeric_limits<int32_t>::max();

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// quota and period in microseconds; a quota below 0 or a word ("max") is none.
int32_t whole_cpus(const std::string& quota, const std::string& period) {
  std::istringstream quota_stream(quota), period_stream(period);
  double microseconds = -1, of = 0;
  if (!(quota_stream >> microseconds) || !(period_stream >> of) || microseconds <= 0 || of <= 0)
    return kUnlimited;
  return static_cast<int32_t>(std::clamp(microseconds / of, 1.0, 1e6));
}

int32_t limit_of_folder(const fs::path& folder) {
  std::istringstream v2(first_line(folder / "cpu.max"));
  std::string quota, period;
  v2 >> quota >> period;
  return std::min(whole_cpus(quota, period), whole_cpus(first_line(folder / "cpu.cfs_quota_us"),
                                                        first_line(folder / "cpu.cfs_period_us")));
}

// Inside a container the path of the cgroup may not exist below the mount, but an ancestor of it does.
int32_t limit_of_ancestors(const fs::path& mount, const std::string& group) {
  int32_t limit = limit_of_folder(mount);
  fs::path folder = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    limit = std::min(limit, limit_of_folder(folder));
  }
  return limit;
}

bool names_cpu_controller(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return true;
  return false;
}

}  // namespace

std::vector<int32_t> allowed_cpus() {
  std::vector<int32_t> cpus;
  for (int32_t size = 1024; size <= 1 << 20 && cpus.empty(); size *= 2) {  // the kernel's mask may be wider
    cpu_set_t* set = CPU_ALLOC(size);
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0)
      for (int32_t cpu = 0; cpu < size; ++cpu)
        if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(size), set)) cpus.push_back(cpu);
    CPU_FREE(set);
  }
  return cpus;
}

int32_t count_cores(const std::vector<int32_t>& cpus, const fs::path& root) {
  std::set<std::pair<std::string, std::string>> cores;
  int32_t unknown = 0;
  for (int32_t cpu : cpus) {
    const fs::path topology = root / ("sys/devices/system/cpu/cpu" + std::to_string(cpu)) / "topology";
    const std::string core = first_line(topology / "core_id");
    if (core.empty())
      ++unknown;
    else
      cores.emplace(first_line(topology / "physical_package_id"), core);
  }
  return static_cast<int32_t>(cores.size()) + unknown;
}

int32_t cgroup_cpus(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  int32_t limit = kUnlimited;
  for (std::string line; std::getline(file, line);) {  // "0::/group" or "4:cpu,cpuacct:/group"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    const fs::path base = root / "sys/fs/cgroup";
    if (controllers.empty())
      for (const fs::path& mount : {base, base / "unified"})
        limit = std::min(limit, limit_of_ancestors(mount, group));
    else if (names_cpu_controller(controllers))
      for (const fs::path& mount : {base / controllers, base / "cpu"})
        limit = std::min(limit, limit_of_ancestors(mount, group));
  }
  return limit;
}

int32_t usable_cores() { return std::max(1, std::min(count_cores(allowed_cpus(), "/"), cgroup_cpus("/"))); }

}  // namespace whippet::cpu
