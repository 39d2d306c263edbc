// Filters that apply other filters and tests to every item: map, select, reject, selectattr, rejectattr.
#include "text/template_access.h"
#include "text/template_compare.h"
#include "text/template_filters.h"
#include "text/template_tests.h"

namespace whippet::jinja {
namespace {

// What Jinja goes through: for anything false, none included, no item at all.
Result<std::span<const Value>> items_of(Runtime& runtime, const Value& value) {
  return is_true(value) ? iterate(runtime, value) : std::span<const Value>();
}

CallArguments without_first(const CallArguments& call, size_t count) {
  CallArguments rest = call;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

Result<Value> map_path(Runtime& runtime, const Value& value, const CallArguments& call) {
  WH_ASSIGN(const Arguments arguments, bind("map", {"attribute", "default"}, 1, call));
  WH_ASSIGN(const std::span<const Value> items, items_of(runtime, value));
  ListBuilder mapped(runtime);
  for (const Value& item : items) {
    WH_ASSIGN(Value found, follow_path(runtime, item, arguments[0]));
    if (is_undefined(found) && !is_absent(arguments[1])) found = arguments[1];
    WH_TRY(mapped.add(found));
  }
  return mapped.finish(SequenceType::kIterator, "iterator");
}

Result<Value> map(Runtime& runtime, const Value& value, const CallArguments& call) {
  if (call.positional.empty()) return map_path(runtime, value, call);
  const String* name = as_string(call.positional.front());
  if (name == nullptr)
    return type_error("map() needs the name of a filter, not {}", type_name(call.positional[0]));
  const Filter* filter = find_filter(name->text);
  if (filter == nullptr)
    return make_error(Code::kUnsupported, "the filter '{}' is not supported", name->text);
  const CallArguments rest = without_first(call, 1);
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  WH_ASSIGN(const std::span<const Value> items, items_of(runtime, value));
  ListBuilder mapped(runtime);
  for (const Value& item : items) {
    WH_ASSIGN(const Value result, apply_filter(runtime, *filter, item, rest));
    WH_TRY(mapped.add(result));
  }
  return mapped.finish(SequenceType::kIterator, "iterator");
}

// With `of_attribute`, the first argument is a path and the test is about what it leads to.
template <bool wanted, bool of_attribute>
Result<Value> select(Runtime& runtime, const Value& value, const CallArguments& call) {
  const size_t at = of_attribute ? 1 : 0;
  if (call.positional.size() < at) return type_error("the name of an attribute is missing");
  const Test* test = nullptr;
  CallArguments rest;
  if (call.positional.size() > at) {
    const String* name = as_string(call.positional[at]);
    if (name == nullptr)
      return type_error("expected the name of a test, not {}", type_name(call.positional[at]));
    test = find_test(name->text);
    if (test == nullptr) return make_error(Code::kUnsupported, "the test '{}' is not supported", name->text);
    rest = without_first(call, at + 1);
  }
  WH_ASSIGN(const std::span<const Value> items, items_of(runtime, value));
  ListBuilder selected(runtime);
  for (const Value& item : items) {
    WH_TRY(runtime.step());
    Value subject = item;
    if (of_attribute) {
      WH_ASSIGN(subject, follow_path(runtime, item, call.positional[0]));
    }
    bool holds = is_true(subject);
    if (test != nullptr) {
      WH_ASSIGN(holds, apply_test(runtime, *test, subject, rest));
    }
    if (holds == wanted) WH_TRY(selected.add(item));
  }
  return selected.finish(SequenceType::kIterator, "iterator");
}

constexpr Filter kFilters[] = {
    {"map", {}, 0, nullptr, map},
    {"reject", {}, 0, nullptr, select<false, false>},
    {"rejectattr", {}, 0, nullptr, select<false, true>},
    {"select", {}, 0, nullptr, select<true, false>},
    {"selectattr", {}, 0, nullptr, select<true, true>},
};

}  // namespace

std::span<const Filter> select_filters() { return kFilters; }

}  // namespace whippet::jinja
