// Filters about lists and dicts as wholes: length, first, join, items, default and the like.
#include "text/template_access.h"
#include "text/template_compare.h"
#include "text/template_filters.h"
#include "text/template_format.h"
#include "text/template_methods.h"
#include "text/template_text.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

Result<Value> length(Runtime& runtime, const Value& value, const Arguments&) {
  if (const String* string = as_string(value)) {
    WH_ASSIGN(const int64_t characters, length_of(runtime, *string));
    return Value(Integer{characters});
  }
  if (const Dict* dict = as_dict(value)) return Value(static_cast<Integer>(dict->entries.size()));
  const Sequence* sequence = as_sequence(value);
  if (sequence != nullptr && sequence->type != SequenceType::kIterator) {
    return Value(static_cast<Integer>(sequence->items.size()));
  }
  if (is_undefined(value)) return Value(Integer{0});
  return type_error("{} has no length", type_name(value));
}

Result<Value> first(Runtime& runtime, const Value& value, const Arguments&) {
  const Sequence* sequence = as_sequence(value);
  if (sequence != nullptr && sequence->type == SequenceType::kIterator) {
    if (sequence->taken == sequence->items.size()) return runtime.undefined(sequence->name, "first item");
    return sequence->items[sequence->taken++];
  }
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  return items.empty() ? runtime.undefined(type_name(value), "first item") : items.front();
}

Result<Value> last(Runtime& runtime, const Value& value, const Arguments&) {
  const Sequence* sequence = as_sequence(value);
  if (sequence != nullptr && sequence->type == SequenceType::kIterator) {
    return type_error("{} has no last item", type_name(value));
  }
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  return items.empty() ? runtime.undefined(type_name(value), "last item") : items.back();
}

Result<Value> list(Runtime& runtime, const Value& value, const Arguments&) {
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  return runtime.list(items);
}

Result<Value> items_of_dict(Runtime& runtime, const Value& value, const Arguments&) {
  ListBuilder items(runtime);
  if (as_dict(value) != nullptr) {
    WH_ASSIGN(const Value view, call_method(runtime, Method{value, "items"}, {}));
    for (const Value& item : as_sequence(view)->items) WH_TRY(items.add(item));
  } else if (!is_undefined(value)) {
    return type_error("items needs a dict, not {}", type_name(value));
  }
  return items.finish(SequenceType::kIterator, "iterator");
}

Result<Value> join_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(std::span<const Value> items, iterate(runtime, value));
  WH_ASSIGN(const String* separator, to_string(runtime, arguments[0]));
  if (is_absent(arguments[1]) || is_none(arguments[1])) return join(runtime, *separator, items);
  ListBuilder attributes(runtime);
  for (const Value& item : items) {
    WH_ASSIGN(const Value found, follow_path(runtime, item, arguments[1]));
    WH_TRY(attributes.add(found));
  }
  return join(runtime, *separator, attributes.items());
}

Result<Value> reverse(Runtime& runtime, const Value& value, const Arguments&) {
  if (as_string(value) != nullptr) {
    return slice_of(runtime, value, {Value(None{}), Value(None{}), Value(Integer{-1})});
  }
  ListBuilder reversed(runtime);
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  for (const Value& item : items) WH_TRY(reversed.add(item));
  reversed.reverse();
  return reversed.finish(SequenceType::kIterator, "iterator");
}

Result<Value> default_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const bool replaced = is_undefined(value) || (is_true(arguments[1]) && !is_true(value));
  if (!replaced) return value;
  return is_absent(arguments[0]) ? runtime.view({}, false) : arguments[0];
}

constexpr Filter kFilters[] = {
    {"count", {}, 0, length},
    {"d", {"default_value", "boolean"}, 0, default_filter},
    {"default", {"default_value", "boolean"}, 0, default_filter},
    {"first", {}, 0, first},
    {"items", {}, 0, items_of_dict},
    {"join", {"d", "attribute"}, 0, join_filter},
    {"last", {}, 0, last},
    {"length", {}, 0, length},
    {"list", {}, 0, list},
    {"reverse", {}, 0, reverse},
};

}  // namespace

std::span<const Filter> list_filters() { return kFilters; }

}  // namespace whippet::jinja
