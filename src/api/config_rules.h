// What values each knob of EngineConfig may have, and how values are read from and written as text. The knobs
// themselves (names, defaults, help) are EngineConfig::fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "whippet/config.h"

namespace whippet {

// "max_num_seqs" from "--max-num-seqs", "max-num-seqs" or "max_num_seqs".
std::string knob_name(std::string_view spelling);
// "--max-num-seqs" from "max_num_seqs".
std::string flag_name(std::string_view knob);
// "WHIPPET_MAX_NUM_SEQS".
std::string variable_name(std::string_view knob);
// All knobs in the order of --help.
std::vector<std::string> knob_names();

// Reads `text` into the knob and checks it. The error says what is allowed; it does not name the knob.
Status set_knob(EngineConfig& config, std::string_view knob, std::string_view text);
// The knob's value such that set_knob reads it back.
std::string knob_text(const EngineConfig& config, std::string_view knob);

// Every knob is within its range; the error names the first that is not.
Status check_config(const EngineConfig& config);

// What to do instead of a knob that other engines have and this one does not ("trust_remote_code"); "" where
// the name means nothing. A value that asks for what happens anyway ("tensor_parallel_size" 1) has no advice.
std::string foreign_knob_advice(std::string_view knob, std::string_view value);
bool is_foreign_knob(std::string_view knob);
// Whether the foreign knob is a switch, which takes no value of its own on a command line.
bool is_foreign_switch(std::string_view knob);

// kInvalidArgument for a knob that does not exist: advice where it is another engine's, else the nearest of
// `known`. kind: "flag", "setting".
Error unknown_knob(std::string_view kind, std::string_view spelling, std::string_view value,
                   const std::vector<std::string>& known);

}  // namespace whippet
