// A snapshot of an engine as JSON: Engine::stats_json.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/metrics.h"

namespace whippet {

// Histograms as {"count", "mean", "p50", "p90", "p99"}, in the histogram's own unit.
nlohmann::ordered_json stats_to_json(const EngineStats& stats);

}  // namespace whippet
