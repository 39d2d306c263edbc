// Between argv and CLI11: spells flags one way, and refuses unknown ones with what to do instead.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet {

// What CLI11 gets: "--max_num_seqs 4" as "--max-num-seqs=4", so that values may begin with a dash; flags of
// other engines that ask for what happens anyway left out; "help X" as "X --help". Everything behind "--"
// stays as it is. `command` becomes the (sub)command that the arguments name.
Result<std::vector<std::string>> normalise_arguments(const CLI::App& root,
                                                     const std::vector<std::string>& args,
                                                     const CLI::App*& command);

}  // namespace whippet
