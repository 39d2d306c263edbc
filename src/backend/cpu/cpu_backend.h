// The CPU backend: fp32 activations, weights as they came, vectorised for what the machine has. Ops split
// their work over a thread pool in ways that change no result: an element is computed by one worker, in one
// order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cpu/worker_scratch.h"

namespace whippet::cpu {

// num_threads counts the caller's (0: one a physical core that this process may use). isa: one of
// supported_kernels() by name, empty for the best; kInvalidArgument lists them.
Result<std::unique_ptr<Backend>> make_cpu_backend(int32_t num_threads, const std::string& isa);

class CpuBackend : public Backend {
 public:
  CpuBackend(const Kernels& kernels, int32_t num_threads, bool spin);

  std::string description() const override;
  DType activation_type() const override { return DType::kF32; }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override;
  void copy_to_host(void* to, const void* from, size_t bytes) override;
  // Also makes room for what ops on this weight need, so that they allocate nothing.
  Result<LinearWeight> pack(const CanonicalLinear& weight, ComputeType compute) override;
  std::string packed_form() const override;
  Status adopt(const LinearWeight& weight) override;

  void fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) override;
  void embed(const int32_t* ids, const LinearWeight& table, Mat out) override;
  void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) override;
  void linear(ConstMat x, const LinearWeight& w, Mat out) override;
  void rope_angles(const BatchView& batch, Mat cos_sin) override;
  void rope(Mat x, int32_t head_dim, ConstMat cos_sin) override;
  void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) override;
  void attention(const BatchView& batch, const AttentionArgs& args) override;
  void silu_mul(ConstMat gate_up, Mat out) override;
  void add(ConstMat y, Mat x) override;
  void gather_rows(ConstMat x, const int32_t* rows, Mat out) override;
  // The rows must be no longer than the largest `out` that was packed.
  void sample(const SampleArgs& args) override;

 private:
  // body(first row, end row) over all rows, in parallel where elements a row make it worthwhile.
  template <class Body>
  void for_rows(int32_t rows, int64_t elements_per_row, const Body& body);
  void product(ConstMat x, const LinearWeight& w, Mat out);
  template <class Body>
  void for_pieces(const LinearWeight& w, int32_t rows, int32_t tile_panels, const Body& body);
  void product_of_codes(ConstMat x, const LinearWeight& w, Mat out);
  void product_of_pairs(ConstMat x, const LinearWeight& w, Mat out);
  void product_of_few(const LinearWeight& w, const LinearTask& whole);
  void product_of_many(const LinearWeight& w, const LinearTask& whole);
  bool attend_split(const BatchView& batch, const AttentionArgs& args, int32_t num_runs, int32_t longest_run);
  void make_room(const LinearWeight& w);
  void make_room_for_sampling(int32_t vocab);

  const Kernels& kernels_;
  ThreadPool pool_;
  std::vector<WorkerScratch> scratch_;  // [num_threads]
  Buffer gathered_;                     // fp32 inputs of act-order weights, some rows at a time
  int32_t gathered_columns_ = 0;
  Buffer rounded_;       // inputs rounded to integers or bf16, some rows at a time
  Buffer input_groups_;  // InputGroup of each group of these rows
  Buffer split_states_;  // fp32 attention states of decode steps whose keys are split
  int32_t max_vocab_ = 0;
};

}  // namespace whippet::cpu
