// Filters that put values in order: sort, dictsort, unique, min, max. Without case_sensitive, strings that
// differ in case alone are equal here, as in Jinja.
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "text/template_access.h"
#include "text/template_compare.h"
#include "text/template_filters.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

struct Keyed {
  Value key;
  Value value;
};

Result<Value> folded(Runtime& runtime, const Value& key, bool case_sensitive) {
  const String* string = as_string(key);
  return string != nullptr && !case_sensitive ? lower(runtime, *string) : Result<Value>(key);
}

Result<std::vector<Keyed>> with_keys(Runtime& runtime, const Value& value, bool case_sensitive,
                                     const Value& path) {
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  WH_TRY(runtime.charge(items.size() * sizeof(Keyed)));
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    WH_TRY(runtime.step());
    Value key = item;
    if (!is_absent(path) && !is_none(path)) {
      WH_ASSIGN(key, follow_path(runtime, item, path));
    }
    WH_ASSIGN(key, folded(runtime, key, case_sensitive));
    keyed.push_back({key, item});
  }
  return keyed;
}

Status sort_by_key(Runtime& runtime, std::vector<Keyed>& keyed, bool reverse) {
  std::optional<Error> error;
  const auto less = [&](const Keyed& a, const Keyed& b) {
    if (error) return false;
    const Result<int> order = reverse ? compare(runtime, b.key, a.key) : compare(runtime, a.key, b.key);
    if (!order.ok()) error = order.error();
    return order.ok() && *order < 0;
  };
  std::stable_sort(keyed.begin(), keyed.end(), less);
  if (error) return *std::move(error);
  return {};
}

Result<Value> values_of(Runtime& runtime, const std::vector<Keyed>& keyed, SequenceType type,
                        const char* name) {
  ListBuilder values(runtime);
  for (const Keyed& each : keyed) WH_TRY(values.add(each.value));
  return values.finish(type, name);
}

Result<Value> sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(std::vector<Keyed> keyed, with_keys(runtime, value, is_true(arguments[1]), arguments[2]));
  WH_TRY(sort_by_key(runtime, keyed, is_true(arguments[0])));
  return values_of(runtime, keyed, SequenceType::kList, "list");
}

Result<Value> dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Dict* dict = as_dict(value);
  if (dict == nullptr) return type_error("dictsort needs a dict, not {}", type_name(value));
  WH_ASSIGN(const String* by, string_argument(arguments[1], "by"));
  const bool by_value = by != nullptr && by->text == "value";
  if (by != nullptr && !by_value && by->text != "key") return type_error("'by' must be \"key\" or \"value\"");
  WH_TRY(runtime.charge(dict->entries.size() * sizeof(Keyed)));
  std::vector<Keyed> keyed;
  for (const DictEntry& entry : dict->entries) {
    const Value pair[] = {entry.key, entry.value};
    WH_ASSIGN(const Value item, runtime.sequence(SequenceType::kTuple, pair, "tuple"));
    WH_ASSIGN(const Value key, folded(runtime, by_value ? entry.value : entry.key, is_true(arguments[0])));
    keyed.push_back({key, item});
  }
  WH_TRY(sort_by_key(runtime, keyed, is_true(arguments[2])));
  return values_of(runtime, keyed, SequenceType::kList, "list");
}

Result<Value> unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const std::vector<Keyed> keyed, with_keys(runtime, value, is_true(arguments[0]), arguments[1]));
  std::set<std::string_view> names;
  std::vector<Value> others;
  std::vector<Keyed> kept;
  for (const Keyed& each : keyed) {
    if (const String* name = as_string(each.key)) {
      if (!names.insert(name->text).second) continue;
    } else {
      if (!is_undefined(each.key)) WH_TRY(check_key(each.key));
      WH_TRY(runtime.step(1 + static_cast<int64_t>(others.size())));
      const bool seen = std::any_of(others.begin(), others.end(), [&](const Value& other) {
        return is_undefined(each.key) ? is_undefined(other) : equal_keys(other, each.key);
      });
      if (seen) continue;
      others.push_back(each.key);
    }
    kept.push_back(each);
  }
  return values_of(runtime, kept, SequenceType::kIterator, "iterator");
}

template <bool smallest>
Result<Value> extreme(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const std::vector<Keyed> keyed, with_keys(runtime, value, is_true(arguments[0]), arguments[1]));
  if (keyed.empty()) return runtime.undefined(type_name(value), smallest ? "min" : "max");
  const Keyed* best = &keyed.front();
  for (const Keyed& each : keyed) {
    WH_ASSIGN(const int order, compare(runtime, each.key, best->key));
    if (smallest ? order < 0 : order > 0) best = &each;
  }
  return best->value;
}

constexpr Filter kFilters[] = {
    {"dictsort", {"case_sensitive", "by", "reverse"}, 0, dictsort},
    {"max", {"case_sensitive", "attribute"}, 0, extreme<false>},
    {"min", {"case_sensitive", "attribute"}, 0, extreme<true>},
    {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
    {"unique", {"case_sensitive", "attribute"}, 0, unique},
};

}  // namespace

std::span<const Filter> order_filters() { return kFilters; }

}  // namespace whippet::jinja
