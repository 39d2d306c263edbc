// Reading and writing the files of packed weights. Used by packed_cache.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "model/packed_file.h"

namespace whippet {

inline constexpr const char* kPackedSuffix = ".packed";

// kNotFound: there is no such file; kCorrupt says what is wrong with it.
Result<PackedTable> read_packed_table(const std::filesystem::path& path);

using PackedWeights = std::unordered_map<std::string, LinearWeight>;
// Every weight of the file, checked against its checksum but not against what a backend expects. kNotFound:
// there is no such file, or it is of another key.
Result<PackedWeights> read_packed(const std::filesystem::path& path, const std::string& key);

// table: model, checkpoint and key; names[i] is the weight that weights[i] is. Gives the file its name when
// it is whole. It is not forced to the disk: what a power cut leaves of it, its checksums refuse.
// kResourceExhausted where less than `keep_free` bytes of the disk would stay free.
Status write_packed(const std::filesystem::path& path, PackedTable table,
                    const std::vector<std::string>& names, const std::vector<const LinearWeight*>& weights,
                    uint64_t keep_free);

}  // namespace whippet
