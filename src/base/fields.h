// The value of a knob from text, and the nearest valid spelling of a wrong one. Used wherever people type
// names and values: flags, environment, config files, JSON lines. Errors say what was found and what is
// allowed; the caller puts the knob's name in front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whippet {

// A whole decimal number in [min, max]; "1_000" and "1e3" are refused.
Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);
// The same for seeds and other values that use all 64 bits.
Result<uint64_t> parse_unsigned(std::string_view text);
// A finite number.
Result<double> parse_number(std::string_view text);
// true | false, on | off, yes | no, 1 | 0, in any case.
Result<bool> parse_switch(std::string_view text);
// "24MiB", "1.5 GB", "64k", "1073741824". kB, MB, GB, TB count in thousands; KiB, MiB, GiB, TiB and the bare
// letters K, M, G, T in 1024.
Result<uint64_t> parse_bytes(std::string_view text);
// Such that parse_bytes gives the same number back: "24MiB", "1000000".
std::string bytes_to_text(uint64_t bytes);

// The candidate that is the fewest edits away (a transposition is one), or "" where none is near enough to be
// meant.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& candidates);
// " (did you mean 'max_num_seqs'?)", or "" where nothing is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

}  // namespace whippet
