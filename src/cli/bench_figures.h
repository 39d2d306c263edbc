// What `whippet bench latency` measured, and how it is printed: for bench_latency. bench_rates has the
// subject from here.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backend/cpu/probe.h"
#include "base/error.h"
#include "model/spec.h"
#include "tensor/dtype.h"

namespace whippet {

struct LatencyWork {
  int32_t prompt_len = 512;
  int32_t output_len = 64;
  int32_t batch = 1;
};

struct LatencyRun {
  double ttft = 0;     // seconds to the first token, the middle one of the requests
  double prefill = 0;  // seconds until every request had its first token
  double decode = 0;   // tokens per second of all requests together, from then on
};

// What is measured, for every benchmark of a model.
struct BenchSubject {
  std::string model, device, dtype, quantization;
  ModelSpec spec;           // its sizes
  double weight_bytes = 0;  // that one step reads
  double peak_gops = 0;     // of the machine, of the kind of products that the weights take; 0: not known
};

// "1,4,16": at least one number, each from 1 to most. kInvalidArgument names the flag.
Result<std::vector<int32_t>> parse_counts(const std::string& flag, const std::string& text, int32_t most);

// Every prompt length with every answer length and every batch.
std::vector<LatencyWork> combine(const std::vector<int32_t>& prompts, const std::vector<int32_t>& outputs,
                                 const std::vector<int32_t>& batches);

// The machine's peak of products whose inputs are rounded to a type.
double peak_of(DType inputs, const cpu::MachineSpeed& machine);

double median(std::vector<double> values);  // of at least one

// One object: the medians of the runs.
nlohmann::ordered_json latency_report(const BenchSubject& subject, const LatencyWork& work,
                                      const std::vector<LatencyRun>& runs, const cpu::MachineSpeed& machine);
std::string latency_table(const nlohmann::ordered_json& report);

}  // namespace whippet
