// Filters: value | name(arguments). One table for each kind of value that they are about.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "text/template_call.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Filter {
  std::string_view name;
  Parameters parameters;
  size_t required;
  Result<Value> (*apply)(Runtime& runtime, const Value& value, const Arguments& arguments);
  // Instead of apply, for filters that hand their arguments on to others.
  Result<Value> (*forward)(Runtime& runtime, const Value& value, const CallArguments& call) = nullptr;
};

const Filter* find_filter(std::string_view name);  // null: there is none
Result<Value> apply_filter(Runtime& runtime, const Filter& filter, const Value& value,
                           const CallArguments& call);

std::span<const Filter> text_filters();
std::span<const Filter> list_filters();
std::span<const Filter> order_filters();
std::span<const Filter> select_filters();
std::span<const Filter> number_filters();

}  // namespace whippet::jinja
