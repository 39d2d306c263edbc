#include <bit>

#include "backend/cpu/kernel_runs.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kLengths[] = {1, 2, 15, 16, 17, 31, 64, 77, 576};
// exp.h: each result is within 2^-23.
constexpr double kExpBound = 0x1p-22;

void begin(Outcomes& outcomes, const char* kernel, int32_t n, double relative = 0) {
  outcomes.begin(std::string(kernel) + " " + std::to_string(n), 0, relative);
}

void run_rows(const Kernels& kernels, int32_t n, Outcomes& outcomes) {
  Sequence random;
  const std::vector<float> a = random.values(n, true), b = random.values(n, false);
  std::vector<float> out(static_cast<size_t>(n));
  begin(outcomes, "rms_norm", n);
  kernels.rms_norm(a.data(), b.data(), n, 1e-5f, out.data());
  outcomes.add(out.data(), n);
  begin(outcomes, "add", n);
  out = random.values(n, false);
  kernels.add(b.data(), out.data(), n);
  outcomes.add(out.data(), n);
  begin(outcomes, "rope", 2 * n);
  std::vector<float> head = random.values(2 * n, true);
  const std::vector<float> angles = random.values(2 * n, true);
  kernels.rope(head.data(), angles.data(), 2 * n);
  outcomes.add(head.data(), 2 * n);
  // e^-g, an addition, a division and a product, each in both.
  begin(outcomes, "silu_mul", n, kExpBound + 6 * 0x1p-24);
  std::vector<float> gate = random.values(n, false);
  for (float& each : gate) each *= 90;
  kernels.silu_mul(gate.data(), b.data(), out.data(), n);
  outcomes.add(out.data(), n);
}

void run_exp(const Kernels& kernels, Outcomes& outcomes) {
  std::vector<float> x = {0.0f, -0.0f, -INFINITY, INFINITY, NAN, -1e30f, 1e30f, -87.4f, 88.5f};
  for (float each = -87.25f; each < 88; each += 0.0137f) x.push_back(each);
  std::vector<float> out(x.size());
  outcomes.begin("exp", 0, kExpBound);
  kernels.exp(x.data(), out.data(), static_cast<int32_t>(x.size()));
  outcomes.add(out.data(), static_cast<int64_t>(out.size()));
}

// The halves of floats of every exponent: ordinary ones, ties and their neighbours.
void run_conversions(const Kernels& kernels, Outcomes& outcomes) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x100000000; bits += 65521 * 4)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (const uint32_t tie : {0x8000u, 0x1000u})  // of bf16; of fp16
    for (uint64_t top = 0; top < 0x100000000; top += 2 * tie * 13)
      for (const uint32_t low : {tie - 1, tie, tie + 1})
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(top) | low));
  for (uint32_t i = 0; i < 4096; ++i)
    x.push_back(std::ldexp(static_cast<float>(i), -26));  // subnormal halves
  for (const uint32_t nan :
       {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu})  // no rounding makes it a number
    x.push_back(std::bit_cast<float>(nan));
  const auto n = static_cast<int32_t>(x.size());
  std::vector<uint16_t> halves(x.size());
  const auto add = [&](const char* name, uint16_t infinity) {
    outcomes.begin(name, 0);
    for (const uint16_t half : halves)  // which NaN is not promised
      outcomes.add((half & 0x7fff) > infinity ? NAN : static_cast<double>(half));
  };
  kernels.to_f16(x.data(), halves.data(), n);
  add("to_f16", 0x7c00);
  kernels.to_bf16(x.data(), halves.data(), n);
  add("to_bf16", 0x7f80);
}

void run_bytes(const Kernels& kernels, int32_t n, Outcomes& outcomes) {
  Sequence random;
  const std::vector<float> x = random.values(n, false);
  std::vector<int8_t> bytes(x.size());
  float scale = -1;
  kernels.to_i8(x.data(), bytes.data(), &scale, n);
  begin(outcomes, "to_i8", n);
  outcomes.add(scale);
  for (const int8_t byte : bytes) outcomes.add(static_cast<double>(byte));
}

void run_scans(const Kernels& kernels, int32_t n, bool finite, Outcomes& outcomes) {
  Sequence random;
  std::vector<float> x = random.values(n, true), weights(x.size());
  if (!finite)
    for (int32_t i = 0; i < n; i += 5) x[static_cast<size_t>(i)] = i % 2 == 0 ? NAN : INFINITY;
  begin(outcomes, finite ? "clean_max" : "clean_max not finite", n);
  const float most = kernels.clean_max(x.data(), n);
  outcomes.add(most);
  outcomes.add(x.data(), n);
  begin(outcomes, finite ? "scans" : "scans not finite", n);
  std::vector<int32_t> found(x.size());
  const int32_t count = kernels.find_at_least(x.data(), n, 0.5f, found.data());
  outcomes.add(count);
  outcomes.add(found.data(), count);
  outcomes.add(kernels.count_greater(x.data(), n, 0.5f));
  // Sums of a block: 64 additions and a few more, in both.
  begin(outcomes, finite ? "softmax_weights" : "softmax_weights not finite", n, kExpBound + 2 * 80 * 0x1p-24);
  std::vector<double> blocks(static_cast<size_t>(n / kExpBlock + 1));
  const float shift = std::isfinite(most) ? most : 0;
  outcomes.add(kernels.softmax_weights(x.data(), n, shift, 1.25f, weights.data(), blocks.data()));
  outcomes.add(blocks.data(), (n + kExpBlock - 1) / kExpBlock);
  outcomes.add(weights.data(), n);
}

}  // namespace

void run_row_kernels(const Kernels& kernels, Outcomes& outcomes) {
  for (const int32_t n : kLengths) run_rows(kernels, n, outcomes);
  run_exp(kernels, outcomes);
  run_conversions(kernels, outcomes);
  for (const int32_t n : {1, 15, 16, 20, 64, 100}) run_bytes(kernels, n, outcomes);
  for (const int32_t n : {1, 15, 16, 100, 5000})
    for (const bool finite : {true, false}) run_scans(kernels, n, finite, outcomes);
}

}  // namespace whippet::cpu
