// Methods of lists, tuples and dicts that leave them as they are.
#include "text/template_compare.h"
#include "text/template_methods.h"

namespace whippet::jinja {
namespace {

Result<Value> list_count(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  Integer count = 0;
  for (const Value& item : as_sequence(receiver)->items) {
    WH_ASSIGN(const bool same, equal(runtime, item, arguments[0]));
    count += same ? 1 : 0;
  }
  return Value(count);
}

Result<Value> list_index(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const auto items = as_sequence(receiver)->items;
  for (size_t i = 0; i < items.size(); ++i) {
    WH_ASSIGN(const bool same, equal(runtime, items[i], arguments[0]));
    if (same) return Value(static_cast<Integer>(i));
  }
  return type_error("index(): the value is not in the list");
}

Result<Value> same_again(Runtime&, const Value& receiver, const Arguments&) { return receiver; }

Result<Value> dict_get(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  WH_ASSIGN(const Value* found, find(runtime, *as_dict(receiver), arguments[0]));
  if (found != nullptr) return *found;
  return is_absent(arguments[1]) ? Value(None{}) : arguments[1];
}

Result<Value> dict_items(Runtime& runtime, const Value& receiver, const Arguments&) {
  ListBuilder items(runtime);
  for (const DictEntry& entry : as_dict(receiver)->entries) {
    const Value pair[] = {entry.key, entry.value};
    WH_ASSIGN(const Value item, runtime.sequence(SequenceType::kTuple, pair, "tuple"));
    WH_TRY(items.add(item));
  }
  return items.finish(SequenceType::kView, "dict_items");
}

Result<Value> dict_keys(Runtime& runtime, const Value& receiver, const Arguments&) {
  ListBuilder items(runtime);
  for (const DictEntry& entry : as_dict(receiver)->entries) WH_TRY(items.add(entry.key));
  return items.finish(SequenceType::kView, "dict_keys");
}

Result<Value> dict_values(Runtime& runtime, const Value& receiver, const Arguments&) {
  ListBuilder items(runtime);
  for (const DictEntry& entry : as_dict(receiver)->entries) WH_TRY(items.add(entry.value));
  return items.finish(SequenceType::kView, "dict_values");
}

constexpr MethodEntry kListMethods[] = {
    {"copy", {}, 0, same_again},  // nothing can change either of them
    {"count", {"value"}, 1, list_count},
    {"index", {"value"}, 1, list_index},
};
constexpr MethodEntry kDictMethods[] = {
    {"copy", {}, 0, same_again}, {"get", {"key", "default"}, 1, dict_get}, {"items", {}, 0, dict_items},
    {"keys", {}, 0, dict_keys},  {"values", {}, 0, dict_values},
};

}  // namespace

std::span<const MethodEntry> collection_methods(const Value& receiver) {
  if (as_dict(receiver) != nullptr) return kDictMethods;
  const Sequence* sequence = as_sequence(receiver);
  if (sequence == nullptr) return {};
  if (sequence->type == SequenceType::kList) return kListMethods;
  if (sequence->type == SequenceType::kTuple) return std::span(kListMethods).subspan(1);
  return {};
}

}  // namespace whippet::jinja
