#include "text/template_runtime.h"

#include <algorithm>
#include <map>
#include <memory>

#include "text/template_compare.h"

namespace whippet::jinja {
namespace {

constexpr size_t kSmallDict = 8;  // entries that are found by looking at all of them

}  // namespace

Error Runtime::limit_error() const {
  if (used_ > limits_.max_memory) {
    return make_error(Code::kResourceExhausted, "the values take more than {} bytes", limits_.max_memory);
  }
  return make_error(Code::kResourceExhausted, "rendering takes more than {} steps", limits_.max_steps);
}

Status Nesting::status() const {
  if (runtime_.depth_ <= runtime_.limits_.max_depth) return {};
  return make_error(Code::kResourceExhausted, "nested deeper than {} levels", runtime_.limits_.max_depth);
}

Value Runtime::view(std::string_view text, bool user) {
  if (!user || text.empty()) return make(String{text, {}});
  return make(String{text, {make(TextSpan{0, text.size()}), 1}});
}

Result<Value> Runtime::string(std::string_view text, bool user) {
  if (text.size() > limits_.max_output) {
    return make_error(Code::kResourceExhausted, "a text grew beyond {} bytes", limits_.max_output);
  }
  WH_TRY(charge(text.size()));
  const std::span<char> copy = array<char>(text.size());
  std::copy(text.begin(), text.end(), copy.begin());
  return view({copy.data(), copy.size()}, user);
}

Result<Value> Runtime::sequence(SequenceType type, std::span<const Value> items, const char* name) {
  WH_TRY(charge(items.size_bytes()));
  const std::span<Value> copy = array<Value>(items.size());
  std::uninitialized_copy(items.begin(), items.end(), copy.begin());
  return Value(make(Sequence{type, copy, name}));
}

Result<Value> Runtime::dict(std::span<const DictEntry> entries) {
  WH_TRY(charge(entries.size() * (sizeof(DictEntry) + sizeof(uint32_t))));
  std::vector<DictEntry> kept;
  std::map<std::string_view, uint32_t> places;  // ordered: no choice of keys makes it slow
  for (const DictEntry& entry : entries) {
    DictEntry* same = nullptr;
    if (const String* name = as_string(entry.key)) {
      const auto [found, fresh] = places.try_emplace(name->text, static_cast<uint32_t>(kept.size()));
      if (!fresh) same = &kept[found->second];
    } else {
      WH_TRY(check_key(entry.key));
      WH_TRY(step(static_cast<int64_t>(kept.size())));
      const auto found = std::find_if(
          kept.begin(), kept.end(), [&](const DictEntry& other) { return equal_keys(other.key, entry.key); });
      if (found != kept.end()) same = &*found;
    }
    if (same != nullptr) {
      same->value = entry.value;
    } else {
      kept.push_back(entry);
    }
  }
  const std::span<DictEntry> copy = array<DictEntry>(kept.size());
  std::uninitialized_copy(kept.begin(), kept.end(), copy.begin());
  std::span<uint32_t> by_name;
  if (kept.size() > kSmallDict) {
    by_name = array<uint32_t>(places.size());
    std::transform(places.begin(), places.end(), by_name.begin(),
                   [](const auto& place) { return place.second; });
  }
  return Value(make(Dict{copy, by_name}));
}

Result<Value> ListBuilder::finish(SequenceType type, const char* name) {
  return runtime_.sequence(type, items_, name);
}

}  // namespace whippet::jinja
