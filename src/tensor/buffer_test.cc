#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace whippet {
namespace {

TEST(Buffer, IsZeroedAndAlignedAtEverySize) {
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{4095}, (size_t{4} << 20) - 1, size_t{4} << 20,
                             (size_t{4} << 20) + 1, size_t{9} << 20}) {
    const Buffer buffer = Buffer::host(bytes);
    const auto* data = buffer.as<const unsigned char>();
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % (bytes >= size_t{4} << 20 ? size_t{2} << 20 : 64), 0u)
        << bytes;
    EXPECT_TRUE(std::all_of(data, data + bytes, [](unsigned char c) { return c == 0; })) << bytes;
    buffer.as<unsigned char>()[bytes - 1] = 1;  // the last byte is ours
  }
}

TEST(Buffer, MovingHandsTheMemoryOver) {
  Buffer a = Buffer::host(size_t{5} << 20);
  void* data = a.as<void>();
  Buffer b = std::move(a);
  EXPECT_EQ(b.as<void>(), data);
  EXPECT_EQ(a.as<void>(), nullptr);
  a = std::move(b);
  EXPECT_EQ(a.as<void>(), data);
}

}  // namespace
}  // namespace whippet
