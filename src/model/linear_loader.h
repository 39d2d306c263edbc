// Loads linear layers: finds each one's format, checks its shape, decodes layers that read the same input
// into one weight where their formats agree, and lets the backend pack it. One weight at a time is unpacked.
// Used by the loader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "model/code_grid.h"
#include "model/formats/format.h"
#include "model/packed_cache.h"
#include "model/weights.h"

namespace whippet {

constexpr CodeGrid kTableGrid = {.bits = 8, .group = 0, .symmetric = true};

// One linear layer of a checkpoint and what it must be.
struct LinearSource {
  std::string layer;  // the tensor name without ".weight"
  int32_t out = 0;
  int32_t in = 0;
  std::vector<int32_t> rows = {};  // [out] the layer's row that belongs at each place; empty: as they are
  bool bias = false;  // layer.bias must exist. In GGUF, which has no switch for it, it is optional.
};

// The fp32 values of an F32, F16 or BF16 tensor of shape [size].
Result<std::vector<float>> read_vector(const Checkpoint& checkpoint, const std::string& name, int32_t size);

class LinearLoader {
 public:
  // grid: what dense layers are rounded to, where they are. Tables are rounded to kTableGrid then. cache:
  // where to look for packed weights first; may be nullptr.
  LinearLoader(const Checkpoint& checkpoint, Backend& backend, ComputeType compute,
               std::optional<CodeGrid> grid, PackedCache* cache)
      : checkpoint_(checkpoint), backend_(backend), compute_(compute), grid_(grid), cache_(cache) {}

  // Layers side by side: their outputs follow each other in the projection's columns.
  Result<Projection> load_projection(const std::vector<LinearSource>& sources);
  // The embedding or the head.
  Result<LinearWeight> load_table(const LinearSource& source);
  Result<std::vector<float>> load_vector(const std::string& name, int32_t size);

  // Whether a tensor has been loaded as, or as part of, something.
  bool used(const std::string& tensor) const;

 private:
  struct Found {
    const LinearSource* source;
    const Format* format;
    LinearLayout layout;
  };
  Result<Found> find(const LinearSource& source);
  Result<LinearWeight> pack(std::span<const Found> run, const std::optional<CodeGrid>& grid);
  void decode(std::span<const Found> run, CanonicalLinear& weight) const;
  Status load_bias(std::span<const Found> run, CanonicalLinear& weight);

  const Checkpoint& checkpoint_;
  Backend& backend_;
  ComputeType compute_;
  std::optional<CodeGrid> grid_;
  PackedCache* cache_;
  std::unordered_set<std::string> used_;  // layers and vectors, without their last part
};

}  // namespace whippet
