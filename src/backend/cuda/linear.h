// Chooses the kernel of a product: tiles for few rows, cuBLASLt for many, the general one for the rest.
#pragma once

#include <memory>

#include "backend/cuda/blas.h"
#include "backend/cuda/device.h"
#include "backend/cuda/tile.h"

namespace whippet::cuda {

class Linear {
 public:
  // blas may be nullptr. One order of summation for any number of rows where `deterministic`.
  Linear(std::unique_ptr<Blas> blas, DType activations, bool deterministic);

  // Makes room for what products with this weight need, so that they allocate nothing.
  void prepare(const LinearWeight& weight);
  void run(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out);
  // Whether run would use tiles for it, so that neighbours may be fused to it.
  bool uses_tiles(const Queue& queue, ConstMat x, const LinearWeight& weight) const;
  bool has_blas() const { return blas_ != nullptr; }

 private:
  bool uses_codes(const Queue& queue, ConstMat x, const LinearWeight& weight) const;
  void product(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out);
  bool product_of_many(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out);
  bool product_of_quantised(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out);

  std::unique_ptr<Blas> blas_;
  DType activations_;
  bool deterministic_;
  Buffer numbers_;   // weights of a quantised layer, some rows at a time, in the type of the activations
  Buffer gathered_;  // inputs of an act-order layer, kGatheredRows at a time
  int32_t gathered_columns_ = 0;
};

}  // namespace whippet::cuda
