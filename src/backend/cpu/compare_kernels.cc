// Compares what every instruction set of this machine makes of fixed inputs with what the portable one does:
//   compare_kernels [-v] [NAME...]
// Ends with 1 where a result differs or where an instruction set that is named is not there. A digest stands
// for the bits of all results, -v shows that of each: those of sets that fuse products into sums are the same
// on every machine. linear_pairs is left out: no other set has it. Needs no library, so that it is quickly
// cross-compiled and run under an emulator.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <string_view>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernel_runs.h"

namespace whippet::cpu {
namespace {

Outcomes run_all(const Kernels& kernels, const Kernels& portable) {
  Outcomes outcomes;
  run_linear_kernels(kernels, portable, outcomes);
  run_attention_kernels(kernels, portable, outcomes);
  run_row_kernels(kernels, outcomes);
  return outcomes;
}

bool same(double actual, double expected, const Outcome& bounds) {
  if (std::bit_cast<uint64_t>(actual) == std::bit_cast<uint64_t>(expected)) return true;
  if (bounds.absolute == 0 && bounds.relative == 0) return false;
  if (!std::isfinite(actual) || !std::isfinite(expected)) return false;
  return std::abs(actual - expected) <= bounds.absolute + bounds.relative * std::abs(expected);
}

// FNV-1a.
uint64_t digest_of(const Outcome& outcome, uint64_t digest) {
  for (const double value : outcome.values)
    for (uint64_t bits = std::bit_cast<uint64_t>(value), i = 0; i < 8; ++i, bits >>= 8)
      digest = (digest ^ (bits & 0xff)) * 0x100000001b3u;
  return digest;
}
constexpr uint64_t kNoDigest = 0xcbf29ce484222325u;

// Prints the first difference.
bool agrees(const char* isa, const Outcome& actual, const Outcome& expected) {
  if (actual.values.size() != expected.values.size()) {
    std::printf("%s: %s: %zu values, portable has %zu\n", isa, expected.name.c_str(), actual.values.size(),
                expected.values.size());
    return false;
  }
  for (size_t i = 0; i < expected.values.size(); ++i) {
    if (same(actual.values[i], expected.values[i], expected)) continue;
    std::printf("%s: %s: [%zu] is %.9g, portable has %.9g\n", isa, expected.name.c_str(), i, actual.values[i],
                expected.values[i]);
    return false;
  }
  return true;
}

// Returns how many results differ.
int compare(const Kernels& kernels, const Outcomes& expected, const Kernels& portable, bool verbose) {
  const Outcomes actual = &kernels == &portable ? expected : run_all(kernels, portable);
  int failed = 0;
  uint64_t all = kNoDigest;
  for (size_t i = 0; i < expected.list().size(); ++i) {
    const Outcome& each = actual.list()[i];
    if (!agrees(kernels.name, each, expected.list()[i])) ++failed;
    all = digest_of(each, all);
    if (verbose)
      std::printf("  %016llx %s\n", static_cast<unsigned long long>(digest_of(each, kNoDigest)),
                  each.name.c_str());
  }
  std::printf("%s: %zu results, %d differ from the portable ones; digest %016llx\n", kernels.name,
              expected.list().size(), failed, static_cast<unsigned long long>(all));
  return failed;
}

int main_of(int argc, char** argv) {
  const std::vector<const Kernels*> sets = supported_kernels();
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "-v") {
      verbose = true;
      continue;
    }
    if (std::none_of(sets.begin(), sets.end(), [&](const Kernels* each) { return name == each->name; })) {
      std::printf("%s: not on this machine\n", argv[i]);
      return 1;
    }
  }
  const Kernels& portable = *sets.back();
  const Outcomes expected = run_all(portable, portable);
  int failed = 0;
  for (const Kernels* each : sets) failed += compare(*each, expected, portable, verbose);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace whippet::cpu

int main(int argc, char** argv) { return whippet::cpu::main_of(argc, argv); }
