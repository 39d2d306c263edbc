#include "text/template_json.h"

#include <vector>

namespace whippet::jinja {

Result<Value> from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool user) {
  using Type = nlohmann::ordered_json::value_t;
  WH_TRY(runtime.step());
  switch (json.type()) {
    case Type::null:
      return Value(None{});
    case Type::boolean:
      return Value(json.get<bool>());
    case Type::number_integer:
      return Value(Integer{json.get<int64_t>()});
    case Type::number_unsigned:
      return Value(Integer{json.get<uint64_t>()});
    case Type::number_float:
      return Value(json.get<double>());
    case Type::string:
      return runtime.view(json.get_ref<const std::string&>(), user);
    case Type::array:
    case Type::object:
      break;
    default:
      return make_error(Code::kInvalidArgument, "a variable holds what is no JSON");
  }
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  if (json.is_array()) {
    ListBuilder items(runtime);
    for (const auto& element : json) {
      WH_ASSIGN(const Value item, from_json(runtime, element, user));
      WH_TRY(items.add(item));
    }
    return items.finish();
  }
  std::vector<DictEntry> entries;
  for (const auto& [key, element] : json.items()) {
    WH_ASSIGN(const Value value, from_json(runtime, element, user));
    entries.push_back({runtime.view(key, user), value});
  }
  return runtime.dict(entries);
}

}  // namespace whippet::jinja
