// The RoPE part of a config: rope_theta with rope_scaling, or the newer rope_parameters. Used by common.
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"

namespace whippet {

// spec must have head_dim and max_position. Problems stay in `config`.
RopeSpec read_rope(ConfigReader& config, const ModelSpec& spec);

}  // namespace whippet
