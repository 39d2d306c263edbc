// Packed weights kept on disk from one start to the next, so that a start neither reads the checkpoint's
// tensors nor rounds nor packs. Whatever is wrong with a file or its folder costs one line in the log and
// packing in memory, never the start. Several processes may share a folder: files appear whole, by a rename.
// Used by the loader; list and rm look at the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

struct PackedPlace {
  std::filesystem::path folder;            // empty: nothing is kept
  std::string model;                       // how people name the model
  uint64_t least_bytes = 0;                // fewer packed bytes are not worth a file
  uint64_t keep_free = uint64_t{1} << 30;  // bytes of the disk that stay free
};

class PackedCache {
 public:
  // Reads the whole file where there is one for this checkpoint in its present state (path, size and time of
  // each file), this device and `setting` (all else that the weights follow from); a file for the same
  // setting of an earlier state is replaced later. The bytes are copied into the host buffers that packing
  // would make, with huge pages: in a mapping's pages of 4 KiB every step would miss the TLB.
  PackedCache(const PackedPlace& place, const Checkpoint& checkpoint, Backend& backend,
              const std::string& setting);

  // The weight by the name of its first tensor, adopted by the backend; nullopt where it must be packed. Each
  // weight is asked for once.
  std::optional<LinearWeight> take(const std::string& tensor, int32_t out, int32_t in);
  // All weights of the model, in the order in which they were asked for: writes them where any was not here.
  void keep(const std::vector<const LinearWeight*>& weights);

 private:
  void read();
  Status write(const std::vector<const LinearWeight*>& weights) const;

  PackedPlace place_;
  Backend& backend_;
  std::string checkpoint_, key_;
  std::filesystem::path path_;  // empty: nothing is kept
  std::unordered_map<std::string, LinearWeight> weights_;
  std::vector<std::string> asked_;
  uint64_t read_bytes_ = 0;
  bool complete_ = true;  // every weight asked for was here
};

struct PackedFile {
  std::filesystem::path path;
  std::filesystem::path checkpoint;  // empty: the file cannot be read
  std::string model;
  uint64_t bytes = 0;
};

// The files of packed weights in a folder, sorted by name. A folder that is not there is empty.
std::vector<PackedFile> list_packed(const std::filesystem::path& folder);

}  // namespace whippet
