// The GPU and what the backend holds of it: stream, memory, copies through pinned memory. Engine thread only.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "tensor/buffer.h"

// For calls that fail only where the device is lost or a kernel is wrong.
#define WH_CUDA(call)                                                                                      \
  do {                                                                                                     \
    const cudaError_t wh_error = (call);                                                                   \
    WH_CHECK(wh_error == cudaSuccess, "{}: {}", cudaGetErrorName(wh_error), cudaGetErrorString(wh_error)); \
  } while (false)

namespace whippet::cuda {

class Device {
 public:
  // The first device that CUDA shows (CUDA_VISIBLE_DEVICES chooses). kUnsupported says why there is none.
  static Result<Device> open();
  Device(Device&& other) noexcept;
  Device& operator=(Device&&) = delete;
  ~Device();

  const Queue& queue() const { return queue_; }
  cudaStream_t stream() const { return queue_.stream; }
  const std::string& name() const { return name_; }

  // Zeroed. kUnavailable says how much was asked for and how much is free.
  static Result<Buffer> try_allocate(size_t bytes);
  // The same of what the plan of memory has room for.
  static Buffer allocate(size_t bytes);
  // Pinned host memory.
  static Buffer allocate_pinned(size_t bytes);

  // In the order of the stream; `from` may change once it returns.
  void copy_in(void* to, const void* from, size_t bytes);
  // Waits for everything before it.
  void copy_out(void* to, const void* from, size_t bytes);

 private:
  Device() = default;

  Queue queue_;
  std::string name_;
  Buffer staging_;     // pinned; its halves take turns
  size_t staged_ = 0;  // bytes used of the half in use
  int32_t half_ = 0;
  cudaEvent_t done_[2] = {};  // the copies from each half
};

}  // namespace whippet::cuda
