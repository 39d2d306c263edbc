// One piece of memory with one owner; move-only. Who allocates it (host or a backend) says how it is freed.
#pragma once

#include <cstddef>
#include <utility>

#include "tensor/mat.h"

namespace whippet {

class Buffer {
 public:
  using Free = void (*)(void* data, size_t bytes);

  Buffer() = default;
  Buffer(void* data, size_t bytes, Free free) : data_(data), bytes_(bytes), free_(free) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        free_(other.free_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) free_(data_, bytes_);
  }

  // Zeroed host memory, aligned to 64 bytes. From 4 MiB on aligned to 2 MiB with huge pages advised, and
  // given by the system page by page as it is first touched.
  static Buffer host(size_t bytes);

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }
  // The whole buffer as a dense [rows, cols] matrix; it must be large enough.
  Mat mat(DType dtype, int32_t rows, int32_t cols) const {
    WH_CHECK_LE(static_cast<size_t>(rows) * static_cast<size_t>(cols) * dtype_size(dtype), bytes_);
    return {data_, dtype, rows, cols, cols};
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Free free_ = nullptr;
};

}  // namespace whippet
