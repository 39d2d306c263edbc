// Packed weights on the command line: which folder list and rm look at, and whose each file is.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "hub/hub.h"
#include "model/packed_cache.h"

namespace whippet {

CLI::Option* add_packed_cache(CLI::App& app);
// The files of the folder that holds: flag over environment over default; none where it is "off".
std::vector<PackedFile> packed_files(const CLI::Option& option, const Context& context);

// Whether the file is of this model, whichever revision or file of it.
bool is_packed_of(const PackedFile& file, const CachedModel& model);
// The same for a name that list shows, or a path.
bool is_packed_of(const PackedFile& file, const std::string& name, const std::vector<CachedModel>& models);

}  // namespace whippet
