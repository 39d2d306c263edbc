#include "backend/cuda/device.h"

#include <cstring>
#include <utility>

#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr size_t kHalfBytes = size_t{4} << 20;
double to_mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

constexpr int kOldest = 80;  // compute capability 8.0: the oldest that kernels are built for

}  // namespace

Result<Device> Device::open() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    return make_error(Code::kUnsupported, "no CUDA device can be used ({}): use the device cpu",
                      cudaGetErrorString(error));
  if (count == 0)
    return make_error(Code::kUnsupported, "this machine has no CUDA device: use the device cpu");
  cudaDeviceProp properties;
  error = cudaSetDevice(0);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess)
    return make_error(Code::kUnavailable, "the CUDA device does not start: {}", cudaGetErrorString(error));
  const int capability = properties.major * 10 + properties.minor;
  if (capability < kOldest)
    return make_error(
        Code::kUnsupported,
        "{} has compute capability {}.{}, but 8.0 (Ampere) or newer is needed: use the device cpu",
        properties.name, properties.major, properties.minor);
  Device device;
  device.name_ = properties.name;
  device.queue_.num_sms = properties.multiProcessorCount;
  device.queue_.shared_bytes = static_cast<int32_t>(properties.sharedMemPerBlockOptin);
  device.queue_.early_start = capability >= 90;
  WH_CUDA(cudaStreamCreateWithFlags(&device.queue_.stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : device.done_) WH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  device.staging_ = allocate_pinned(2 * kHalfBytes);
  return device;
}

Device::Device(Device&& other) noexcept
    : queue_(std::exchange(other.queue_, {})),
      name_(std::move(other.name_)),
      staging_(std::move(other.staging_)),
      staged_(other.staged_),
      half_(other.half_) {
  for (int i = 0; i < 2; ++i) done_[i] = std::exchange(other.done_[i], nullptr);
}

Device::~Device() {
  if (queue_.stream == nullptr) return;
  cudaStreamSynchronize(queue_.stream);
  for (cudaEvent_t event : done_) cudaEventDestroy(event);
  cudaStreamDestroy(queue_.stream);
}

Buffer Device::allocate(size_t bytes) {
  Result<Buffer> made = try_allocate(bytes);
  WH_CHECK(made.ok(), "{}", made.error().message);
  return std::move(made).value();
}

Result<Buffer> Device::try_allocate(size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* data = nullptr;
  if (const cudaError_t error = cudaMalloc(&data, bytes); error != cudaSuccess) {
    cudaGetLastError();  // the next call is none of its business
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    return make_error(
        Code::kUnavailable,
        "the GPU has no room for {:.1f} MiB more: {:.1f} of {:.1f} MiB are free ({}): stop what else "
        "runs on it, or take a smaller model or --quantization int4",
        to_mib(bytes), to_mib(available), to_mib(total), cudaGetErrorString(error));
  }
  WH_CUDA(cudaMemset(data, 0, bytes));
  WH_CUDA(cudaStreamSynchronize(cudaStreamLegacy));  // our stream does not wait for that one
  return Buffer(data, bytes, [](void* at, size_t) { cudaFree(at); });
}

Buffer Device::allocate_pinned(size_t bytes) {
  void* data = nullptr;
  WH_CUDA(cudaHostAlloc(&data, bytes, cudaHostAllocDefault));
  std::memset(data, 0, bytes);
  return Buffer(data, bytes, [](void* at, size_t) { cudaFreeHost(at); });
}

void Device::copy_in(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (bytes > kHalfBytes) {  // from pageable memory: CUDA has read it when the call returns
    WH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()));
    return;
  }
  if (staged_ + bytes > kHalfBytes) {
    WH_CUDA(cudaEventRecord(done_[half_], stream()));
    half_ = 1 - half_;
    staged_ = 0;
    WH_CUDA(cudaEventSynchronize(done_[half_]));
  }
  char* at = staging_.as<char>() + static_cast<size_t>(half_) * kHalfBytes + staged_;
  std::memcpy(at, from, bytes);
  staged_ = align_up(staged_ + bytes, size_t{64});
  WH_CUDA(cudaMemcpyAsync(to, at, bytes, cudaMemcpyHostToDevice, stream()));
}

void Device::copy_out(void* to, const void* from, size_t bytes) {
  if (bytes > 0) WH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()));
  WH_CUDA(cudaStreamSynchronize(stream()));
}

}  // namespace whippet::cuda
