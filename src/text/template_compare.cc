#include "text/template_compare.h"

#include <algorithm>
#include <type_traits>

#include "text/template_text.h"

namespace whippet::jinja {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

bool is_list_like(const Sequence& sequence) {
  return sequence.type == SequenceType::kList || sequence.type == SequenceType::kTuple;
}

// nullopt: not two numbers.
std::optional<bool> equal_numbers(const Value& a, const Value& b) {
  const auto x = as_integer(a);
  const auto y = as_integer(b);
  if (x && y) return *x == *y;
  const auto p = as_number(a);
  const auto q = as_number(b);
  if (p && q) return *p == *q;
  return std::nullopt;
}

Result<bool> equal_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (a.type != b.type || !is_list_like(a) || a.items.size() != b.items.size()) return false;
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  for (size_t i = 0; i < a.items.size(); ++i) {
    WH_ASSIGN(const bool same, equal(runtime, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.entries.size() != b.entries.size()) return false;
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  for (const DictEntry& entry : a.entries) {
    WH_ASSIGN(const Value* other, find(runtime, b, entry.key));
    if (other == nullptr) return false;
    WH_ASSIGN(const bool same, equal(runtime, entry.value, *other));
    if (!same) return false;
  }
  return true;
}

int sign(int order) { return order < 0 ? -1 : (order > 0 ? 1 : 0); }

template <class T>
int order_of(T a, T b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

Result<int> compare_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    WH_ASSIGN(const bool same, equal(runtime, a.items[i], b.items[i]));
    if (!same) return compare(runtime, a.items[i], b.items[i]);
  }
  return order_of(a.items.size(), b.items.size());
}

}  // namespace

const char* type_name(const Value& value) {
  return std::visit(Overloaded{
                        [](const Undefined&) { return "undefined"; },
                        [](const None&) { return "none"; },
                        [](bool) { return "bool"; },
                        [](Integer) { return "int"; },
                        [](double) { return "float"; },
                        [](const String*) { return "str"; },
                        [](const Sequence* s) { return s->type == SequenceType::kTuple ? "tuple" : s->name; },
                        [](const Dict*) { return "dict"; },
                        [](const Namespace*) { return "namespace"; },
                        [](const Loop*) { return "loop"; },
                        [](const Macro*) { return "macro"; },
                        [](const Method*) { return "method"; },
                        [](Builtin) { return "function"; },
                    },
                    value);
}

std::string describe(const Undefined& undefined) {
  if (undefined.missing == nullptr) return "an argument is missing";
  if (undefined.missing->owner == nullptr) return fmt::format("'{}' is undefined", undefined.missing->name);
  return fmt::format("{} has no '{}'", undefined.missing->owner, undefined.missing->name);
}

std::optional<Integer> as_integer(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  if (const auto* integer = std::get_if<Integer>(&value)) return *integer;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

bool is_true(const Value& value) {
  return std::visit(
      Overloaded{
          [](const Undefined&) { return false; },
          [](const None&) { return false; },
          [](bool b) { return b; },
          [](Integer i) { return i != 0; },
          [](double d) { return d != 0; },
          [](const String* s) { return !s->text.empty(); },
          [](const Sequence* s) { return s->type == SequenceType::kIterator || !s->items.empty(); },
          [](const Dict* d) { return !d->entries.empty(); },
          [](const auto&) { return true; },
      },
      value);
}

Result<bool> equal(Runtime& runtime, const Value& a, const Value& b) {
  WH_TRY(runtime.step());
  if (const auto same = equal_numbers(a, b)) return *same;
  if (a.index() != b.index()) return false;
  if (is_undefined(a) || is_none(a)) return true;
  if (const String* x = as_string(a)) {
    const String* y = as_string(b);
    if (x->text.size() != y->text.size()) return false;
    WH_TRY(runtime.scan(x->text.size()));
    return x->text == y->text;
  }
  if (const Sequence* x = as_sequence(a)) return equal_sequences(runtime, *x, *as_sequence(b));
  if (const Dict* x = as_dict(a)) return equal_dicts(runtime, *x, *as_dict(b));
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_pointer_v<T> || std::is_same_v<T, Builtin>) return x == std::get<T>(b);
        return false;
      },
      a);
}

Result<int> compare(Runtime& runtime, const Value& a, const Value& b) {
  WH_TRY(runtime.step());
  const auto x = as_integer(a);
  const auto y = as_integer(b);
  if (x && y) return order_of(*x, *y);
  const auto p = as_number(a);
  const auto q = as_number(b);
  // NaN comes before every number, so that sorting has an order to go by.
  if (p && q) return *p != *p || *q != *q ? order_of(*q != *q, *p != *p) : order_of(*p, *q);
  const String* s = as_string(a);
  const String* t = as_string(b);
  if (s != nullptr && t != nullptr) {
    WH_TRY(runtime.scan(std::min(s->text.size(), t->text.size())));
    return sign(s->text.compare(t->text));
  }
  const Sequence* u = as_sequence(a);
  const Sequence* v = as_sequence(b);
  if (u != nullptr && v != nullptr && is_list_like(*u) && u->type == v->type) {
    return compare_sequences(runtime, *u, *v);
  }
  for (const Value* side : {&a, &b}) {
    if (const auto* undefined = std::get_if<Undefined>(side)) return type_error("{}", describe(*undefined));
  }
  return type_error("{} and {} have no order", type_name(a), type_name(b));
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const String* string = as_string(container)) {
    const String* part = as_string(item);
    if (part == nullptr) return type_error("'in <str>' needs a str on its left, not {}", type_name(item));
    WH_TRY(runtime.scan(string->text.size()));
    return find_text(string->text, part->text) != std::string_view::npos;
  }
  if (const Dict* dict = as_dict(container)) {
    WH_TRY(as_string(item) != nullptr ? Status() : check_key(item));
    WH_ASSIGN(const Value* found, find(runtime, *dict, item));
    return found != nullptr;
  }
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, container));
  for (const Value& other : items) {
    WH_ASSIGN(const bool same, equal(runtime, other, item));
    if (same) return true;
  }
  return false;
}

Status check_key(const Value& key) {
  if (as_number(key) || is_none(key)) return {};
  return type_error("{} cannot be a key of a dict", type_name(key));
}

bool equal_keys(const Value& a, const Value& b) {
  if (is_none(a) || is_none(b)) return is_none(a) && is_none(b);
  return equal_numbers(a, b).value_or(false);
}

Result<const Value*> find(Runtime& runtime, const Dict& dict, std::string_view name) {
  if (dict.by_name.empty()) {
    WH_TRY(runtime.step(1 + static_cast<int64_t>(dict.entries.size() / 8)));
    for (const DictEntry& entry : dict.entries) {
      const String* key = as_string(entry.key);
      if (key != nullptr && key->text == name) return &entry.value;
    }
    return nullptr;
  }
  const auto key = [&](uint32_t i) { return as_string(dict.entries[i].key)->text; };
  const auto at = std::lower_bound(dict.by_name.begin(), dict.by_name.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return key(i) < wanted; });
  if (at == dict.by_name.end() || key(*at) != name) return nullptr;
  return &dict.entries[*at].value;
}

Result<const Value*> find(Runtime& runtime, const Dict& dict, const Value& key) {
  if (const String* name = as_string(key)) return find(runtime, dict, name->text);
  WH_TRY(runtime.step(1 + static_cast<int64_t>(dict.entries.size() / 8)));
  for (const DictEntry& entry : dict.entries) {
    if (equal_keys(entry.key, key)) return &entry.value;
  }
  return nullptr;
}

Result<std::span<const Value>> iterate(Runtime& runtime, const Value& value) {
  if (const Sequence* sequence = as_sequence(value)) {
    const size_t taken = sequence->taken;
    if (sequence->type == SequenceType::kIterator) sequence->taken = sequence->items.size();
    return sequence->items.subspan(taken);
  }
  if (is_undefined(value)) return std::span<const Value>();
  ListBuilder items(runtime);
  if (const Dict* dict = as_dict(value)) {
    for (const DictEntry& entry : dict->entries) WH_TRY(items.add(entry.key));
  } else if (const String* string = as_string(value)) {
    const std::string_view text = string->text;
    for (size_t at = 0, size = 0; at < text.size(); at += size) {
      size = char_at(text, at).size;
      WH_ASSIGN(const Value character, slice(runtime, *string, at, at + size));
      WH_TRY(items.add(character));
    }
  } else {
    return type_error("{} cannot be iterated over", type_name(value));
  }
  WH_ASSIGN(const Value list, items.finish());
  return as_sequence(list)->items;
}

}  // namespace whippet::jinja
