// For tests: the small checkpoints of tests/data, and changed copies of them in a temporary folder.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/checkpoint.h"

namespace whippet {

std::filesystem::path test_data(const std::string& name);

// A folder that goes away with its owner.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

// A checkpoint whose config and tensors can be changed before it is written anew.
struct EditableCheckpoint {
  struct Tensor {
    StorageType type;
    std::vector<int64_t> shape;
    std::vector<std::byte> data;
  };
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;

  // A copy of a folder of tests/data.
  explicit EditableCheckpoint(const std::string& name);
  // The tensor as fp32 values (F32, F16 or BF16), and back to F32.
  std::vector<float> values(const std::string& name) const;
  void set_values(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values);

  // config.json and the tensors in `shards` files, with an index where there are several.
  void write(const TempFolder& folder, int shards = 1) const;
};

}  // namespace whippet
