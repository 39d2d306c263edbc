// What the flags of the benchmarks check.
#pragma once

#include <CLI/CLI.hpp>

namespace whippet {

// A finite number from `least` to `most`; CLI11's own ranges let "nan" through.
CLI::Validator within(double least, double most);

}  // namespace whippet
