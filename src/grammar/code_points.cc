#include "grammar/code_points.h"

#include <algorithm>

namespace whippet::grammar {

CodePoints::CodePoints(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) : ranges_(ranges) {
  normalize();
}

void CodePoints::add(uint32_t first, uint32_t last) {
  ranges_.emplace_back(first, last);
  normalize();
}

void CodePoints::add(const CodePoints& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

CodePoints CodePoints::complement() const {
  CodePoints taken = *this;
  taken.ranges_.emplace_back(0, 0);
  taken.ranges_.emplace_back(0xD800, 0xDFFF);
  taken.normalize();
  CodePoints result;
  uint32_t next = 0;
  for (const auto& [first, last] : taken.ranges_) {
    if (next < first) result.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCodePoint) result.ranges_.emplace_back(next, kLastCodePoint);
  return result;
}

CodePoints CodePoints::minus(const CodePoints& other) const {
  CodePoints rest = complement();
  rest.add(other);
  return rest.complement();
}

bool CodePoints::contains(uint32_t point) const {
  return std::ranges::any_of(
      ranges_, [&](const auto& range) { return range.first <= point && point <= range.second; });
}

uint32_t CodePoints::only() const {
  return ranges_.size() == 1 && ranges_[0].first == ranges_[0].second ? ranges_[0].first : 0;
}

void CodePoints::normalize() {
  std::ranges::sort(ranges_);
  std::vector<std::pair<uint32_t, uint32_t>> merged;
  for (const auto& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

}  // namespace whippet::grammar
