// Reads little-endian values from bytes that nobody has checked yet: past the end it returns zeros and
// remembers the failure, so that a parser can read on and ask once. Used by gguf.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace whippet {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T read() {
    T value{};
    if (sizeof(T) > left()) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // A view into the bytes; empty where fewer than `size` are left.
  std::string_view read_string(uint64_t size) {
    if (size > left()) {
      fail();
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }

  bool failed() const { return failed_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

 private:
  void fail() {
    failed_ = true;
    at_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  bool failed_ = false;
};

}  // namespace whippet
