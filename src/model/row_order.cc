#include "model/row_order.h"

#include <cstddef>

namespace whippet {

std::vector<int32_t> interleaved_rows(int32_t num_heads, int32_t head_dim) {
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(num_heads) * static_cast<size_t>(head_dim));
  for (int32_t head = 0; head < num_heads; ++head) {
    for (int32_t half = 0; half < 2; ++half) {
      for (int32_t i = 0; i < head_dim / 2; ++i) rows.push_back(head * head_dim + 2 * i + half);
    }
  }
  return rows;
}

std::vector<int32_t> packed_qkv_rows(int32_t num_q_heads, int32_t num_kv_heads, int32_t head_dim) {
  const int32_t q_per_kv = num_q_heads / num_kv_heads;
  const int32_t heads_per_group = q_per_kv + 2;
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(num_kv_heads * heads_per_group) * static_cast<size_t>(head_dim));
  const auto append_head = [&](int32_t group, int32_t slot) {
    for (int32_t d = 0; d < head_dim; ++d) rows.push_back((group * heads_per_group + slot) * head_dim + d);
  };
  for (int32_t group = 0; group < num_kv_heads; ++group) {
    for (int32_t slot = 0; slot < q_per_kv; ++slot) append_head(group, slot);
  }
  for (const int32_t slot : {q_per_kv, q_per_kv + 1}) {
    for (int32_t group = 0; group < num_kv_heads; ++group) append_head(group, slot);
  }
  return rows;
}

}  // namespace whippet
