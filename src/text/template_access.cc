#include "text/template_access.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/template_call.h"
#include "text/template_compare.h"
#include "text/template_methods.h"
#include "text/template_text.h"

namespace whippet::jinja {
namespace {

std::optional<Value> loop_attribute(const Loop& loop, std::string_view name) {
  const auto index = static_cast<Integer>(loop.index);
  const auto length = static_cast<Integer>(loop.items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "depth") return Value(Integer{1});  // more in recursive loops alone, which there are none of
  if (name == "depth0") return Value(Integer{0});
  if (name == "previtem" && index > 0) return loop.items[loop.index - 1];
  if (name == "nextitem" && index + 1 < length) return loop.items[loop.index + 1];
  return std::nullopt;
}

// The place of an index that may be negative; nullopt when it is outside.
std::optional<size_t> place_of(Integer index, size_t length) {
  if (index < 0) index += static_cast<Integer>(length);
  if (index < 0 || index >= static_cast<Integer>(length)) return std::nullopt;
  return static_cast<size_t>(index);
}

Result<Value> character(Runtime& runtime, const String& string, Integer index) {
  WH_ASSIGN(const int64_t length, length_of(runtime, string));
  const auto place = place_of(index, static_cast<size_t>(length));
  if (!place) return runtime.undefined("str", "that index");
  WH_TRY(runtime.scan(string.text.size() == static_cast<size_t>(length) ? 0 : string.text.size()));
  const size_t begin = offset_of(string, static_cast<int64_t>(*place));
  return slice(runtime, string, begin, begin + char_at(string.text, begin).size);
}

// What Python's slice.indices gives: the first place, the step, and how many.
struct Places {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Result<Places> places_of(const SliceBounds& bounds, int64_t length) {
  Places places;
  WH_ASSIGN(places.step, integer_argument(bounds.step, "step", 1));
  if (places.step == 0) return type_error("a slice cannot have step 0");
  const bool forward = places.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? length : length - 1;
  WH_ASSIGN(int64_t start, integer_argument(bounds.start, "start", forward ? 0 : INT64_MAX));
  WH_ASSIGN(int64_t stop, integer_argument(bounds.stop, "stop", forward ? INT64_MAX : INT64_MIN));
  // Python counts from the end what is negative, but not what was left out.
  if (start < 0) start = std::max<int64_t>(start + length, low);
  if (stop < 0) stop = stop < -length ? low : stop + length;
  start = std::min(start, high);
  stop = std::clamp(stop, low, high);
  const Integer distance = forward ? Integer{stop} - start : Integer{start} - stop;
  const Integer stride = forward ? Integer{places.step} : -Integer{places.step};
  places.first = start;
  places.count = distance <= 0 ? 0 : static_cast<int64_t>((distance + stride - 1) / stride);
  return places;
}

Result<Value> slice_string(Runtime& runtime, const String& string, const SliceBounds& bounds) {
  WH_ASSIGN(const int64_t length, length_of(runtime, string));
  WH_ASSIGN(const Places places, places_of(bounds, length));
  WH_TRY(runtime.scan(string.text.size()));
  if (places.step == 1) {
    const size_t begin = offset_of(string, places.first);
    if (places.count == 0) return slice(runtime, string, begin, begin);
    return slice(runtime, string, begin, offset_of(string, places.first + places.count));
  }
  WH_ASSIGN(const std::span<const Value> characters, iterate(runtime, &string));
  TextBuilder out(runtime);
  for (int64_t i = 0; i < places.count; ++i) {
    WH_TRY(out.append(*as_string(characters[static_cast<size_t>(places.first + i * places.step)])));
  }
  return out.finish();
}

}  // namespace

Result<Value> attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (const auto* undefined = std::get_if<Undefined>(&object)) return type_error("{}", describe(*undefined));
  if (has_method(object, name)) return Value(runtime.make(Method{object, name}));
  if (const Dict* dict = as_dict(object)) {
    WH_ASSIGN(const Value* found, find(runtime, *dict, name));
    if (found != nullptr) return *found;
  } else if (const auto* space = std::get_if<Namespace*>(&object)) {
    for (const Binding* binding = (*space)->first; binding != nullptr; binding = binding->next) {
      WH_TRY(runtime.step());
      if (binding->name == name) return binding->value;
    }
  } else if (const auto* loop = std::get_if<Loop*>(&object)) {
    if (const auto value = loop_attribute(**loop, name)) return *value;
  }
  return runtime.undefined(type_name(object), name);
}

Result<Value> subscript(Runtime& runtime, const Value& object, const Value& key) {
  if (const auto* undefined = std::get_if<Undefined>(&object)) return type_error("{}", describe(*undefined));
  const auto index = as_integer(key);
  if (const Dict* dict = as_dict(object)) {
    WH_ASSIGN(const Value* found, find(runtime, *dict, key));
    if (found != nullptr) return *found;
  } else if (const Sequence* sequence = as_sequence(object); sequence != nullptr && index) {
    const auto place = place_of(*index, sequence->items.size());
    if (place && sequence->type != SequenceType::kIterator) return sequence->items[*place];
  } else if (const String* string = as_string(object); string != nullptr && index) {
    return character(runtime, *string, *index);
  }
  if (const String* name = as_string(key)) return attribute(runtime, object, name->text);
  return runtime.undefined(type_name(object), index ? "that index" : type_name(key));
}

Result<Value> follow_path(Runtime& runtime, const Value& object, const Value& path) {
  const String* names = as_string(path);
  if (names == nullptr) return subscript(runtime, object, path);
  Value value = object;
  std::string_view rest = names->text;
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    more = dot != std::string_view::npos;
    const std::string_view name = rest.substr(0, dot);
    if (more) rest.remove_prefix(dot + 1);
    int64_t index = 0;
    const auto number = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool numeric = number.ec == std::errc() && number.ptr == name.data() + name.size();
    WH_ASSIGN(value, subscript(runtime, value, numeric ? Value(Integer{index}) : runtime.view(name, false)));
  }
  return value;
}

Result<Value> slice_of(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  if (const String* string = as_string(object)) return slice_string(runtime, *string, bounds);
  if (const auto* undefined = std::get_if<Undefined>(&object)) return type_error("{}", describe(*undefined));
  const Sequence* sequence = as_sequence(object);
  if (sequence == nullptr || sequence->type == SequenceType::kIterator) {
    return type_error("{} cannot be sliced", type_name(object));
  }
  WH_ASSIGN(const Places places, places_of(bounds, static_cast<int64_t>(sequence->items.size())));
  Sequence part = *sequence;
  if (places.step == 1) {
    part.items = part.items.subspan(static_cast<size_t>(places.first), static_cast<size_t>(places.count));
    return Value(runtime.make(part));
  }
  ListBuilder items(runtime);
  for (int64_t i = 0; i < places.count; ++i) {
    WH_TRY(items.add(sequence->items[static_cast<size_t>(places.first + i * places.step)]));
  }
  return items.finish(part.type, part.name);
}

}  // namespace whippet::jinja
