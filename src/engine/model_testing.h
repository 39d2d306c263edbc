// For tests with a real model: engines over one loaded checkpoint that are stepped by hand, under any limits.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "engine/engine_testing.h"
#include "model/checkpoint.h"
#include "model/loader.h"

namespace whippet {

struct TestModel {
  std::unique_ptr<Backend> backend;
  Model model;
  int32_t vocab_used = 0;
  DType kv_type = DType::kF32;
};

// A failed check where it cannot be loaded. window: of every layer, 0: as the model says.
TestModel load_test_model(const std::filesystem::path& path, ComputeType compute, int32_t num_threads,
                          int32_t window = 0);

// What plan_engine makes of it, with `tokens` in the KV cache.
CoreLimits test_limits(const TestModel& model, EngineConfig config, int32_t tokens);

// Runs all requests together (each added after `stagger` more steps) and collects their answers.
Answers run_together(const TestModel& model, const CoreLimits& limits,
                     const std::vector<CoreRequest>& requests, int32_t stagger,
                     uint64_t* preemptions = nullptr);
// Each for itself, nothing shared, in as few steps as possible; ids as in run_together.
Answers run_alone(const TestModel& model, const std::vector<CoreRequest>& requests);

// "" where they are equal to the bit, else what differs.
std::string difference(const Answer& a, const Answer& b);

}  // namespace whippet
