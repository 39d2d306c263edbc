// The spellings of all tokens as bytes, by id, and the way back from bytes to id.
// Immutable once the tokenizer is built.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace whippet {

class TokenTable {
 public:
  TokenTable() = default;
  explicit TokenTable(size_t num_tokens);

  // Gives the next id, in order from 0, its bytes; empty for a hole in the vocabulary.
  void append(std::string_view bytes);
  // Makes find() know this id by its bytes. Returns the id that already has them, if any: nothing changes
  // then.
  std::optional<int32_t> index(int32_t id);

  std::string_view bytes(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) + 1 >= offsets_.size()) return {};
    const auto i = static_cast<size_t>(id);
    return std::string_view(bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  // -1 when no indexed token has these bytes.
  int32_t find(std::string_view bytes) const;

  size_t size() const { return offsets_.size() - 1; }

 private:
  struct Slot {
    uint32_t tag = 0;  // the half of the hash that does not choose the slot
    int32_t id = -1;
  };

  std::vector<char> bytes_;
  std::vector<uint32_t> offsets_ = {0};  // [tokens + 1]
  std::vector<Slot> slots_;              // a power of two, at most half full, linear probing
  size_t longest_indexed_ = 0;
};

}  // namespace whippet
