#include "backend/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/registry.h"
#include "tensor/dtype.h"

namespace whippet::cpu {
namespace {

class KernelTable : public ::testing::TestWithParam<const Kernels*> {};

// exp.h derives 2^-23.
TEST_P(KernelTable, ExpIsWithinItsBound) {
  std::vector<float> x;
  for (float value = -87.3f; value < 88.0f; value += 1e-3f) x.push_back(value);
  for (float value = 1e-30f; value < 80.0f; value *= 1.001f) {
    x.push_back(value);
    x.push_back(-value);
  }
  for (int32_t n = -120; n <= 120; ++n) {  // where the reduced argument changes sides
    const auto border = static_cast<float>((n + 0.5) * std::log(2.0));
    if (std::abs(border) > 87) continue;
    x.push_back(std::nextafter(border, 1000.0f));
    x.push_back(std::nextafter(border, -1000.0f));
  }
  std::vector<float> out(x.size());
  GetParam()->exp(x.data(), out.data(), static_cast<int32_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    worst = std::max(worst, std::abs(out[i] - exact) / exact);
  }
  EXPECT_LE(worst, 0x1p-23);
}

TEST_P(KernelTable, ExpKeepsItsPromisesAtTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, -1e30f, -87.4f,   0.0f,
                                -0.0f,     1e30f,  infinity, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> out(x.size());
  GetParam()->exp(x.data(), out.data(), static_cast<int32_t>(x.size()));
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 1);
  EXPECT_EQ(out[4], 1);
  EXPECT_NEAR(out[5] / std::exp(88.0), 1, 0x1p-23);
  EXPECT_EQ(out[6], out[5]);
  EXPECT_TRUE(std::isnan(out[7]));
}

TEST_P(KernelTable, ConversionsRoundLikeTheScalarOnes) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x100000000; bits += 65521 * 4)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (uint32_t half = 0; half < 0x7c00; ++half)  // ties between halves
    x.push_back((f16_to_f32(static_cast<uint16_t>(half)) + f16_to_f32(static_cast<uint16_t>(half + 1))) / 2);
  for (uint32_t top = 0; top < 0x7f80; top += 3) x.push_back(std::bit_cast<float>(top << 16 | 0x8000u));
  const auto n = static_cast<int32_t>(x.size());
  std::vector<uint16_t> half(n), brain(n);
  GetParam()->to_f16(x.data(), half.data(), n);
  GetParam()->to_bf16(x.data(), brain.data(), n);
  for (int32_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(f16_to_f32(half[i])));
      EXPECT_TRUE(std::isnan(bf16_to_f32(brain[i])));
    } else {
      ASSERT_EQ(half[i], f32_to_f16(x[i])) << x[i];
      ASSERT_EQ(brain[i], f32_to_bf16(x[i])) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelTable, ::testing::ValuesIn(supported_kernels()),
                         [](const auto& each) { return std::string(each.param->name); });

TEST(Registry, EndsItsListOfInstructionSetsWithThePortableOne) {
  ASSERT_FALSE(supported_isas().empty());
  EXPECT_EQ(supported_isas().back(), "portable");
}

TEST(Registry, MakesTheCpuBackendThatWasAskedFor) {
  BackendOptions options;
  options.num_threads = 3;
  options.isa = "portable";
  EXPECT_EQ(make_backend("cpu", options).value()->description(), "cpu (portable, 3 threads)");
  EXPECT_TRUE(make_backend("auto", {}).ok());
}

// No machine has both.
TEST(Registry, RefusesAnInstructionSetOfAnotherProcessorAndNamesItsOwn) {
  int32_t refused = 0;
  for (const std::string name : {"avx2", "neon"}) {
    BackendOptions options;
    options.isa = name;
    const auto made = make_backend("cpu", options);
    const std::vector<std::string> isas = supported_isas();
    ASSERT_EQ(made.ok(), std::find(isas.begin(), isas.end(), name) != isas.end()) << name;
    if (made.ok()) continue;
    ++refused;
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_NE(made.error().message.find("'" + name + "'"), std::string::npos) << made.error().message;
    for (const std::string& each : isas)
      EXPECT_NE(made.error().message.find(each), std::string::npos) << made.error().message;
  }
  EXPECT_GE(refused, 1);
}

TEST(Registry, RefusesWhatItDoesNotHave) {
  BackendOptions options;
  options.isa = "mmx";
  const auto no_isa = make_backend("cpu", options);
  ASSERT_FALSE(no_isa.ok());
  EXPECT_EQ(no_isa.error().code, Code::kInvalidArgument);
  EXPECT_NE(no_isa.error().message.find("portable"), std::string::npos) << no_isa.error().message;
  options = {};
  options.num_threads = 100000;
  EXPECT_EQ(make_backend("cpu", options).error().code, Code::kInvalidArgument);
  EXPECT_EQ(make_backend("tpu", {}).error().code, Code::kInvalidArgument);
  const auto cuda = make_backend("cuda", {});  // there may be a GPU
  EXPECT_TRUE(cuda.ok() || cuda.error().code == Code::kUnsupported);
}

}  // namespace
}  // namespace whippet::cpu
