// The values of a template: Python's, as far as templates can tell. Small and copied freely; what they point
// to lives in the Runtime of one render (or in the Program, for literals) and is never freed before that.
// Nothing here has a destructor, so values may nest and refer to each other as they like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "text/marked_text.h"

namespace whippet::jinja {

struct Dict;
struct Loop;
struct Macro;
struct Method;
struct Namespace;
struct Sequence;
struct String;

// Holds every 64-bit integer of JSON, signed or not. Results beyond 64 bits are errors.
using Integer = __int128;

// What was looked up in vain; only for the message.
struct Missing {
  const char* owner = nullptr;  // type of the object without that attribute; null: a variable
  std::string_view name;
};
struct Undefined {
  const Missing* missing = nullptr;  // null: a parameter that was not given
};
struct None {};
enum class Builtin { kRange, kNamespace, kDict, kRaiseException, kStrftimeNow };

using Value = std::variant<Undefined, None, bool, Integer, double, const String*, const Sequence*,
                           const Dict*, Namespace*, Loop*, const Macro*, const Method*, Builtin>;

struct String {
  std::string_view text;
  std::span<const TextSpan> marks;  // what users wrote, relative to text: sorted, disjoint, never adjacent
  mutable int64_t length =
      -1;  // in characters; -1 until somebody asks. Literals, which threads share, have it
};

enum class SequenceType {
  kList,
  kTuple,
  kView,      // of a dict, or a range: has a length, is no list
  kIterator,  // what lazy filters give: always true, no length, used up by the first that reads it
};
struct Sequence {
  SequenceType type = SequenceType::kList;
  std::span<const Value> items;
  const char* name = "list";  // how str() calls a view
  mutable size_t taken = 0;   // of an iterator: items that were read
};

struct DictEntry {
  Value key;
  Value value;
};
struct Dict {
  std::span<const DictEntry> entries;  // in order of insertion
  std::span<const uint32_t> by_name;   // entries with string keys, sorted by key; empty in small dicts
};

struct Method {
  Value receiver;
  std::string_view name;
};

struct Binding {
  std::string_view name;
  Value value;
  Binding* next;
};
struct Namespace {
  Binding* first = nullptr;
};

struct Loop {
  std::span<const Value> items;
  size_t index = 0;
  Value last_seen = Undefined{};  // of loop.changed()
};

inline const String* as_string(const Value& value) {
  const auto* string = std::get_if<const String*>(&value);
  return string != nullptr ? *string : nullptr;
}
inline const Sequence* as_sequence(const Value& value) {
  const auto* sequence = std::get_if<const Sequence*>(&value);
  return sequence != nullptr ? *sequence : nullptr;
}
inline const Dict* as_dict(const Value& value) {
  const auto* dict = std::get_if<const Dict*>(&value);
  return dict != nullptr ? *dict : nullptr;
}
inline bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }
inline bool is_none(const Value& value) { return std::holds_alternative<None>(value); }
// A parameter that the caller left out, as opposed to one given as undefined.
inline bool is_absent(const Value& value) {
  const auto* undefined = std::get_if<Undefined>(&value);
  return undefined != nullptr && undefined->missing == nullptr;
}

}  // namespace whippet::jinja
