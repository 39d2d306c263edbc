// From an opened checkpoint to a model that the Decoder runs: checks every tensor, decodes its format into
// CanonicalLinear, fuses, and lets the backend pack it. Draws a progress bar on a terminal.
#pragma once

#include "backend/backend.h"
#include "base/error.h"
#include "model/checkpoint.h"
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
Result<Model> load_model(const Checkpoint& checkpoint, Backend& backend, ComputeType compute,
                         OnLoad on_load = OnLoad::kKeep);

}  // namespace whippet
