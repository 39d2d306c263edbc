// The memory and the budget of one render: everything a template makes is allocated and counted here, and all
// of it goes when the render ends. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory_resource>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "text/template_limits.h"
#include "text/template_value.h"

namespace whippet::jinja {

class Runtime {
 public:
  Runtime(const TemplateLimits& limits, std::chrono::sys_seconds now) : limits_(limits), now_(now) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const TemplateLimits& limits() const { return limits_; }
  std::chrono::sys_seconds now() const { return now_; }

  // kResourceExhausted when the work or the memory of this render is used up.
  Status step(int64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.max_steps || used_ > limits_.max_memory) [[unlikely]]
      return limit_error();
    return {};
  }
  // The step for an operation that reads this many bytes.
  Status scan(size_t bytes) { return step(1 + static_cast<int64_t>(bytes / 256)); }
  // To be called before anything whose size a template or its data decides is allocated.
  Status charge(size_t bytes) {
    used_ += bytes;
    return step();
  }

  // Objects of a fixed size: allocated at once, the next step() notices what they cost.
  template <class T>
  T* make(T value) {
    static_assert(std::is_trivially_destructible_v<T>);
    used_ += sizeof(T);
    return new (memory_.allocate(sizeof(T), alignof(T))) T(std::move(value));
  }
  // An uninitialised copy target for n objects; not counted: charge() first.
  template <class T>
  std::span<T> array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(memory_.allocate(n * sizeof(T), alignof(T))), n};
  }

  Value undefined(const char* owner, std::string_view name) { return Undefined{make(Missing{owner, name})}; }
  // A string over text that outlives the render.
  Value view(std::string_view text, bool user);
  // A copy of the text.
  Result<Value> string(std::string_view text, bool user = false);
  Result<Value> sequence(SequenceType type, std::span<const Value> items, const char* name = "list");
  Result<Value> list(std::span<const Value> items) { return sequence(SequenceType::kList, items); }
  // Later entries replace earlier ones of the same key.
  Result<Value> dict(std::span<const DictEntry> entries);

 private:
  friend class Nesting;
  Error limit_error() const;

  const TemplateLimits& limits_;
  std::chrono::sys_seconds now_;
  std::pmr::monotonic_buffer_resource memory_;
  int64_t steps_ = 0;
  size_t used_ = 0;
  int depth_ = 0;
};

// One level of recursion, over a template or over data. Ask status() before going on.
class Nesting {
 public:
  explicit Nesting(Runtime& runtime) : runtime_(runtime) { ++runtime_.depth_; }
  ~Nesting() { --runtime_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  Status status() const;

 private:
  Runtime& runtime_;
};

// A list under construction, whose growth is counted.
class ListBuilder {
 public:
  explicit ListBuilder(Runtime& runtime) : runtime_(runtime) {}
  Status add(Value value) {
    items_.push_back(value);
    return runtime_.charge(sizeof(Value));
  }
  void reverse() { std::reverse(items_.begin(), items_.end()); }
  std::vector<Value>& items() { return items_; }
  Result<Value> finish(SequenceType type = SequenceType::kList, const char* name = "list");

 private:
  Runtime& runtime_;
  std::vector<Value> items_;
};

}  // namespace whippet::jinja
