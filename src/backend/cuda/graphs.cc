#include "backend/cuda/graphs.h"

#include "backend/cuda/device.h"
#include "base/log.h"

namespace whippet::cuda {
namespace {

constexpr size_t kMaxGraphs = 512;  // about 200 kB of device memory each

cudaGraphExec_t record(cudaStream_t stream, const std::function<void()>& body) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  WH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  body();
  WH_CUDA(cudaStreamEndCapture(stream, &graph));
  WH_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  WH_CUDA(cudaGraphDestroy(graph));
  return executable;
}

}  // namespace

Graphs::~Graphs() { clear(); }

void Graphs::clear() {
  for (const auto& [key, graph] : graphs_)
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

void Graphs::run(cudaStream_t stream, uint64_t key, const std::function<void()>& body) {
  if (key == 0) return body();
  if (graphs_.size() >= kMaxGraphs && !graphs_.contains(key)) {
    WH_CUDA(cudaStreamSynchronize(stream));
    clear();
  }
  const auto [place, first_time] = graphs_.try_emplace(key, nullptr);
  if (first_time) return body();  // what is done once only, as loading kernels, cannot be recorded
  if (place->second == nullptr) {
    place->second = record(stream, body);
    log_debug("step {:x} is recorded; {} known", key, graphs_.size());
  }
  WH_CUDA(cudaGraphLaunch(place->second, stream));
}

Marks::~Marks() {
  for (cudaEvent_t event : events_)
    if (event != nullptr) cudaEventDestroy(event);
}

uint64_t Marks::record(cudaStream_t stream) {
  cudaEvent_t& event = events_[++last_ % kKnown];
  if (event == nullptr) WH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  WH_CUDA(cudaEventRecord(event, stream));
  return last_;
}

void Marks::wait(uint64_t mark) {
  if (mark == 0) return;
  WH_CHECK(mark <= last_ && mark + kKnown > last_, "mark {} of {}", mark, last_);
  WH_CUDA(cudaEventSynchronize(events_[mark % kKnown]));
}

}  // namespace whippet::cuda
