// Puts a step's SampleRows and their lists on the device and runs the sampling kernels.
#pragma once

#include "backend/cuda/device.h"

namespace whippet::cuda {

class Sampler {
 public:
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  ~Sampler();

  void run(Device& device, const SampleArgs& args);

 private:
  void make_room(int32_t rows, size_t bytes, size_t saved);
  void make_chunks(int32_t rows, int32_t chunks);
  size_t lay_out(const SampleArgs& args, size_t& saved) const;
  void fill(const SampleArgs& args);

  Buffer best_, counters_;  // of greedy rows
  int32_t max_rows_ = 0;
  Buffer chunk_best_, chunk_mass_, wide_;
  Buffer host_, rows_, saved_;    // pinned; its copy on the device; what lists overwrite
  cudaEvent_t copied_ = nullptr;  // host_ may be written again
};

}  // namespace whippet::cuda
