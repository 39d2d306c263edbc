#include "text/template_methods.h"

#include <algorithm>
#include <array>

#include "text/template_compare.h"

namespace whippet::jinja {
namespace {

// What Python has besides, so that using it is told apart from asking for a key that is not there.
constexpr std::string_view kOtherStringMethods[] = {
    "casefold", "center",       "encode",     "expandtabs",  "format",    "format_map", "isdecimal",
    "istitle",  "isidentifier", "isnumeric",  "isprintable", "ljust",     "maketrans",  "partition",
    "rindex",   "rjust",        "rpartition", "swapcase",    "translate", "zfill",      "isascii"};
// These change their object, which templates may not do.
constexpr std::string_view kListChanges[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kDictChanges[] = {"clear", "fromkeys", "pop", "popitem", "setdefault", "update"};

std::span<const MethodEntry> methods_of(const Value& receiver) {
  return as_string(receiver) != nullptr ? string_methods() : collection_methods(receiver);
}

std::span<const std::string_view> others_of(const Value& receiver) {
  if (as_string(receiver) != nullptr) return kOtherStringMethods;
  if (as_dict(receiver) != nullptr) return kDictChanges;
  const Sequence* sequence = as_sequence(receiver);
  if (sequence != nullptr && sequence->type == SequenceType::kList) return kListChanges;
  return {};
}

const MethodEntry* find_method(const Value& receiver, std::string_view name) {
  const auto methods = methods_of(receiver);
  const auto found =
      std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.name == name; });
  return found != methods.end() ? &*found : nullptr;
}

// loop.cycle('odd', 'even'), loop.changed(value): any number of arguments.
Result<Value> call_loop(Runtime& runtime, Loop& loop, std::string_view name, const CallArguments& call) {
  if (!call.keywords.empty()) return type_error("loop.{}() has no named parameters", name);
  if (name == "cycle") {
    if (call.positional.empty()) return type_error("loop.cycle() needs something to go through");
    return call.positional[loop.index % call.positional.size()];
  }
  WH_ASSIGN(const Value seen, runtime.sequence(SequenceType::kTuple, call.positional, "tuple"));
  WH_ASSIGN(const bool same, equal(runtime, loop.last_seen, seen));
  loop.last_seen = seen;
  return Value(!same);
}

}  // namespace

bool has_method(const Value& receiver, std::string_view name) {
  if (std::holds_alternative<Loop*>(receiver)) return name == "cycle" || name == "changed";
  const auto others = others_of(receiver);
  return find_method(receiver, name) != nullptr ||
         std::find(others.begin(), others.end(), name) != others.end();
}

Result<Value> call_method(Runtime& runtime, const Method& method, const CallArguments& call) {
  if (const auto* loop = std::get_if<Loop*>(&method.receiver)) {
    return call_loop(runtime, **loop, method.name, call);
  }
  const MethodEntry* entry = find_method(method.receiver, method.name);
  if (entry == nullptr) {
    const bool text = as_string(method.receiver) != nullptr;
    return make_error(Code::kUnsupported, "{}.{}() is not supported{}", type_name(method.receiver),
                      method.name, text ? "" : ": a template may not change its values");
  }
  WH_ASSIGN(const Arguments arguments, bind(method.name, entry->parameters, entry->required, call));
  return entry->call(runtime, method.receiver, arguments);
}

}  // namespace whippet::jinja
