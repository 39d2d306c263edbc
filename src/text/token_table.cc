#include "text/token_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace whippet {

TokenTable::TokenTable(size_t num_tokens) : slots_(std::bit_ceil(2 * num_tokens + 2)) {
  offsets_.reserve(num_tokens + 1);
}

void TokenTable::append(std::string_view bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  WH_CHECK(bytes_.size() <= UINT32_MAX);
  offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
}

std::optional<int32_t> TokenTable::index(int32_t id) {
  const std::string_view spelling = bytes(id);
  const uint64_t hash = XXH3_64bits(spelling.data(), spelling.size());
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t slot = hash & mask;
  for (; slots_[slot].id >= 0; slot = (slot + 1) & mask) {
    if (slots_[slot].tag == tag && bytes(slots_[slot].id) == spelling) return slots_[slot].id;
  }
  slots_[slot] = {tag, id};
  longest_indexed_ = std::max(longest_indexed_, spelling.size());
  return std::nullopt;
}

int32_t TokenTable::find(std::string_view spelling) const {
  if (spelling.size() > longest_indexed_) return -1;
  const uint64_t hash = XXH3_64bits(spelling.data(), spelling.size());
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t slot = hash & mask; slots_[slot].id >= 0; slot = (slot + 1) & mask) {
    if (slots_[slot].tag == tag && bytes(slots_[slot].id) == spelling) return slots_[slot].id;
  }
  return -1;
}

}  // namespace whippet
