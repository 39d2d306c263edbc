#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/math.h"

namespace whippet {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

void free_small(void* data, size_t) { std::free(data); }

// Fresh pages, which the system zeroes when they are first touched: a large cache costs nothing until it
// fills.
void* map_pages(size_t size) {
  // One huge page more than asked for, so that the aligned part can be cut out of the middle.
  void* mapped =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = align_up(begin, uintptr_t{kHugePage});
  if (aligned > begin) ::munmap(mapped, aligned - begin);
  if (const size_t rest = begin + kHugePage - aligned; rest > 0)
    ::munmap(reinterpret_cast<void*>(aligned + size), rest);
  void* data = reinterpret_cast<void*>(aligned);
  ::madvise(data, size, MADV_HUGEPAGE);  // advice: a refusal changes nothing
  return data;
}

void free_pages(void* data, size_t bytes) { ::munmap(data, align_up(bytes, kHugePage)); }

}  // namespace

Buffer Buffer::host(size_t bytes) {
  if (bytes == 0) return {};
  if (bytes >= 2 * kHugePage) {
    void* data = map_pages(align_up(bytes, kHugePage));
    WH_CHECK(data != nullptr, "out of memory: {} bytes", bytes);
    return {data, bytes, free_pages};
  }
  const size_t size = align_up(bytes, kCacheLine);
  void* data = std::aligned_alloc(kCacheLine, size);
  WH_CHECK(data != nullptr, "out of memory: {} bytes", bytes);
  std::memset(data, 0, size);
  return {data, bytes, free_small};
}

}  // namespace whippet
