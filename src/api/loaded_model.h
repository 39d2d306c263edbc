// A model name made ready to serve: resolved, opened, checked, loaded, its memory planned and its engine
// started. Used by the public Engine.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/model_files.h"
#include "backend/backend.h"
#include "base/error.h"
#include "engine/engine_core.h"
#include "hub/hub.h"
#include "model/packed_cache.h"
#include "whippet/config.h"

namespace whippet {

// In the order in which the parts must outlive each other. Move it before the engine is started only.
struct LoadedModel {
  EngineConfig config;  // every default filled in
  ModelFiles files;
  ModelFacts facts;  // as the engine has them
  std::unique_ptr<Backend> backend;
  nlohmann::ordered_json info;  // describe_model's answer, and what it takes in memory
  std::unique_ptr<EngineCore> core;
};

// Fetches the model where the config allows it, fills `loaded` in place (the engine keeps pointers into it)
// and starts the engine. Logs what was chosen and why.
Status load_served_model(const EngineConfig& config, LoadedModel& loaded);

// The model of a config, on disk.
Result<ResolvedModel> find_model(const EngineConfig& config);
// Where packed weights are kept that nobody chose a place for.
std::filesystem::path packed_folder();
// Where those of a model of this config are. In the default folder small models leave nothing: they pack in
// no time.
PackedPlace packed_place(const EngineConfig& config, const ResolvedModel& source);
// EngineConfig's dtype, as check_config lets it through.
ComputeType compute_type(const std::string& dtype);

}  // namespace whippet
