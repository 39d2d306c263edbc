// From an opened checkpoint to a model that the Decoder runs: checks every tensor, decodes its format into
// CanonicalLinear, fuses, and lets the backend pack it. Draws a progress bar on a terminal.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "model/linear_loader.h"
#include "model/packed_cache.h"
#include "model/spec.h"
#include "model/weights.h"

namespace whippet {

// What becomes of layers that the checkpoint stores dense; layers in codes keep theirs. The embedding and the
// head become int8 in either case.
enum class OnLoad : uint8_t {
  kKeep,
  kInt8,  // one scale a row
  kInt4,  // groups of 64, each with a scale and a minimum
};

struct Model {
  ModelSpec spec;
  Weights weights;
};

// The spec alone (inspect): reads no weights.
Result<ModelSpec> read_spec(const Checkpoint& checkpoint);
// packed: where the packed weights of an earlier start may be, and are left for the next.
Result<Model> load_model(const Checkpoint& checkpoint, Backend& backend, ComputeType compute,
                         OnLoad on_load = OnLoad::kKeep, const PackedPlace& packed = {});

// The parts of a model alone, for the quantizer. `spec` is read_spec's.
struct LayerSources {
  std::vector<LinearSource> qkv, o, gate_up, down;  // what each projection is made of, in order
};
Result<LayerSources> layer_sources(const Checkpoint& checkpoint, const ModelSpec& spec, int32_t layer);
Result<LayerWeights> load_layer(const Checkpoint& checkpoint, const ModelSpec& spec, int32_t layer,
                                Backend& backend, ComputeType compute);
Result<LinearWeight> load_embedding(const Checkpoint& checkpoint, const ModelSpec& spec, Backend& backend,
                                    ComputeType compute);

}  // namespace whippet
