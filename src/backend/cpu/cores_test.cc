#include "backend/cpu/cores.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

namespace whippet::cpu {
namespace {

namespace fs = std::filesystem;

// A made-up file system below a temporary folder.
class Cores : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            (std::string("cores_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  void add_cpu(int32_t cpu, int32_t package, int32_t core) {
    const fs::path topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology";
    write(topology / "physical_package_id", std::to_string(package));
    write(topology / "core_id", std::to_string(core));
  }

  fs::path root_;
};

constexpr int32_t kUnlimited = std::numeric_limits<int32_t>::max();

TEST_F(Cores, CountsHyperthreadsOfACoreOnce) {
  for (int32_t cpu = 0; cpu < 8; ++cpu) add_cpu(cpu, cpu / 4 % 2, cpu % 2);
  EXPECT_EQ(count_cores({0, 1, 2, 3, 4, 5, 6, 7}, root_), 4);
  EXPECT_EQ(count_cores({0, 2}, root_), 1);
  EXPECT_EQ(count_cores({0, 4}, root_), 2);  // core 0 of two packages
}

TEST_F(Cores, CountsCpusWithoutATopology) { EXPECT_EQ(count_cores({0, 1, 2}, root_), 3); }

TEST_F(Cores, WithoutCgroupsThereIsNoLimit) {
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
  write("proc/self/cgroup", "0::/");
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
}

TEST_F(Cores, ReadsTheQuotaOfVersion2AndOfItsAncestors) {
  write("proc/self/cgroup", "0::/pod/app");
  write("sys/fs/cgroup/pod/app/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
  write("sys/fs/cgroup/pod/app/cpu.max", "400000 100000");
  EXPECT_EQ(cgroup_cpus(root_), 4);
  write("sys/fs/cgroup/pod/cpu.max", "250000 100000");
  EXPECT_EQ(cgroup_cpus(root_), 2);  // rounded down
  write("sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(cgroup_cpus(root_), 1);  // but never below one
}

TEST_F(Cores, ReadsTheQuotaOfVersion1) {
  write("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n0::/");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(cgroup_cpus(root_), 3);
}

TEST_F(Cores, FindsTheMountOfAContainerThatHidesItsPath) {
  write("proc/self/cgroup", "0::/outside/the/container");
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(cgroup_cpus(root_), 2);
}

TEST_F(Cores, IgnoresFilesThatMakeNoSense) {
  write("proc/self/cgroup", "nonsense\n0::/a\n::::");
  write("sys/fs/cgroup/a/cpu.max", "lots of 7");
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
  write("sys/fs/cgroup/a/cpu.max", "100000 0");
  EXPECT_EQ(cgroup_cpus(root_), kUnlimited);
  write("sys/fs/cgroup/a/cpu.max", "1e300 1e-300");
  EXPECT_GE(cgroup_cpus(root_), 1);
}

TEST(UsableCores, IsAtLeastOne) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_FALSE(allowed_cpus().empty());
}

}  // namespace
}  // namespace whippet::cpu
