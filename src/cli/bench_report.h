// The figures of `whippet bench serve`, from what each request was answered; the times, and where figures are
// saved, also of `bench throughput`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/bench_answer.h"

namespace whippet {

// The value below which a share `p` (0 to 1) of `values` lies, between two of them on the line through both;
// 0 where there is none. Sorts them.
double percentile(std::vector<double>& values, double p);

// `seconds`: from the first request to the end of the last answer. Keys are those of vLLM's benchmark where
// they mean the same: duration, completed, failed, request_throughput, mean_ttft_ms, p99_itl_ms, ...; times
// are those of complete answers.
nlohmann::ordered_json bench_report(const std::vector<BenchAnswer>& answers, double seconds);
// As a person reads it.
std::string bench_table(const nlohmann::ordered_json& report);

// mean_ttft_ms and the like, of complete answers; and their part of the table.
nlohmann::ordered_json answer_times(const std::vector<BenchAnswer>& answers);
std::string answer_times_table(const nlohmann::ordered_json& report);

// Writes the object to a file.
Status save_report(const std::string& path, const nlohmann::ordered_json& report);

}  // namespace whippet
