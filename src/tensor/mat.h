// Row-major 2-D views: they own nothing and are passed by value. Mat can be written through, ConstMat not.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "tensor/dtype.h"

namespace whippet {

struct Mat {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int32_t rows = 0;
  int32_t cols = 0;
  int64_t stride = 0;  // elements from one row to the next, >= cols

  template <class T>
  T* row(int64_t r) const {
    return static_cast<T*>(data) + r * stride;
  }
  // Columns [begin, begin + count) of every row.
  Mat columns(int32_t begin, int32_t count) const {
    WH_CHECK(begin >= 0 && count >= 0 && begin + count <= cols, "{} + {} of {}", begin, count, cols);
    return {static_cast<char*>(data) + begin * static_cast<int64_t>(dtype_size(dtype)), dtype, rows, count,
            stride};
  }
  Mat first_rows(int32_t count) const {
    WH_CHECK(count >= 0 && count <= rows, "{} of {}", count, rows);
    return {data, dtype, count, cols, stride};
  }
};

struct ConstMat {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int32_t rows = 0;
  int32_t cols = 0;
  int64_t stride = 0;

  ConstMat() = default;
  ConstMat(const void* d, DType t, int32_t r, int32_t c, int64_t s)
      : data(d), dtype(t), rows(r), cols(c), stride(s) {}
  ConstMat(Mat m) : data(m.data), dtype(m.dtype), rows(m.rows), cols(m.cols), stride(m.stride) {}

  template <class T>
  const T* row(int64_t r) const {
    return static_cast<const T*>(data) + r * stride;
  }
};

}  // namespace whippet
