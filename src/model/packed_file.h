// The file that packed weights are kept in, as bytes: a head, a table (what of, and where each weight's
// arrays lie), then each weight's storage at a multiple of 4096. A file is trusted in nothing. Used by
// packed_cache.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/linear_weight.h"
#include "base/error.h"

namespace whippet {

struct PackedEntry {
  std::string name;
  LinearWeight weight;      // scalars alone: no storage, no pointers
  uint64_t arrays[5] = {};  // codes, scale, min, order, bias: where each begins in the storage; or kNoArray
  uint64_t at = 0;          // of the storage in the file
  uint64_t bytes = 0;       // of the storage
  uint64_t hash = 0;        // of the storage: hash64 in pieces of kPackedPiece
};
constexpr uint64_t kNoArray = ~uint64_t{0};
constexpr size_t kPackedPiece = size_t{4} << 20;

struct PackedTable {
  std::string model;       // the name of the model, for people
  std::string checkpoint;  // its path
  std::string key;         // all that the weights follow from
  std::vector<PackedEntry> entries;
  uint64_t file_bytes = 0;
};

constexpr size_t kPackedHead = 48;  // bytes of the head

// An entry for a packed weight in host memory; `at` and `hash` are left for the writer.
PackedEntry packed_entry(const std::string& name, const LinearWeight& weight);
// The entry's weight with its arrays pointing into `storage`, which has entry.bytes.
LinearWeight with_storage(const PackedEntry& entry, Buffer storage);

// Places every storage (fills `at` and file_bytes): the table's own length must not depend on what is filled
// in later.
void place_storages(PackedTable& table);
// Head and table, once every hash is there.
std::string encode_packed(const PackedTable& table);

// The bytes of the table behind a head; kCorrupt where it is none, or of a file of another size.
Result<uint64_t> packed_table_bytes(std::span<const std::byte> head, uint64_t file_bytes);
// From head and table together. Every storage lies within the file and every array begins within its storage.
Result<PackedTable> decode_packed(std::span<const std::byte> bytes, uint64_t file_bytes);

}  // namespace whippet
