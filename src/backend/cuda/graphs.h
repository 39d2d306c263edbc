// Steps that come again: what they put on the stream is recorded the second time that their key is seen and
// from then on repeated by one launch. And marks between steps. Engine thread only.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>

namespace whippet::cuda {

class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  ~Graphs();

  // Does what `body` puts on the stream. Key 0: never recorded.
  void run(cudaStream_t stream, uint64_t key, const std::function<void()>& body);
  // Forgets every recording; nothing may be running.
  void clear();

 private:
  std::unordered_map<uint64_t, cudaGraphExec_t> graphs_;  // nullptr: seen once
};

class Marks {
 public:
  Marks() = default;
  Marks(const Marks&) = delete;
  ~Marks();

  uint64_t record(cudaStream_t stream);
  void wait(uint64_t mark);

 private:
  static constexpr uint64_t kKnown = 8;
  std::array<cudaEvent_t, kKnown> events_{};
  uint64_t last_ = 0;
};

}  // namespace whippet::cuda
