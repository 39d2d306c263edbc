// How templates reach into values: obj.name, obj[key], obj[a:b:c], and the paths that filters take.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

// A method, a key of a dict, an attribute of a loop or a namespace; undefined when there is none.
Result<Value> attribute(Runtime& runtime, const Value& object, std::string_view name);
// A key or an index, and attributes where there is no such key.
Result<Value> subscript(Runtime& runtime, const Value& object, const Value& key);
// "function.name" or an index, one subscript after the other.
Result<Value> follow_path(Runtime& runtime, const Value& object, const Value& path);

// Bounds are absent, none or integers.
struct SliceBounds {
  Value start, stop, step;
};
Result<Value> slice_of(Runtime& runtime, const Value& object, const SliceBounds& bounds);

}  // namespace whippet::jinja
