// How many workers make sense: physical cores that this process may run on, within its cgroup's CPU quota.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace whippet::cpu {

// The CPU numbers of this process's affinity mask.
std::vector<int32_t> allowed_cpus();

// Distinct cores among the CPUs, as sysfs under `root` tells; a CPU it does not know counts as a core.
int32_t count_cores(const std::vector<int32_t>& cpus, const std::filesystem::path& root);

// The smallest CPU quota (version 2 or 1) of this process's cgroup and its ancestors, in whole CPUs rounded
// down and at least 1; a large number where there is none.
int32_t cgroup_cpus(const std::filesystem::path& root);

// At least 1.
int32_t usable_cores();

}  // namespace whippet::cpu
