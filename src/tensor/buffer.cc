#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/math.h"

namespace whippet {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

void free_host(void* data, size_t) { std::free(data); }

}  // namespace

Buffer Buffer::host(size_t bytes) {
  if (bytes == 0) return {};
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : 64;
  const size_t size = align_up(bytes, alignment);
  void* data = std::aligned_alloc(alignment, size);
  WH_CHECK(data != nullptr, "out of memory: {} bytes", bytes);
  if (alignment == kHugePage) ::madvise(data, size, MADV_HUGEPAGE);  // advice: a refusal changes nothing
  std::memset(data, 0, size);
  return {data, bytes, free_host};
}

}  // namespace whippet
