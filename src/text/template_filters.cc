#include "text/template_filters.h"

#include <algorithm>

namespace whippet::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), list_filters(), order_filters(), select_filters(), number_filters()}) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const Filter& f) { return f.name == name; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

Result<Value> apply_filter(Runtime& runtime, const Filter& filter, const Value& value,
                           const CallArguments& call) {
  if (filter.forward != nullptr) return filter.forward(runtime, value, call);
  WH_ASSIGN(const Arguments arguments, bind(filter.name, filter.parameters, filter.required, call));
  return filter.apply(runtime, value, arguments);
}

}  // namespace whippet::jinja
