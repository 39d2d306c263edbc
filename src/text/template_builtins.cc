#include "text/template_builtins.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "text/template_compare.h"
#include "text/template_format.h"

namespace whippet::jinja {
namespace {

constexpr Integer kLongestRange = 100'000;  // the limit of Jinja's sandbox

Result<Value> range(Runtime& runtime, const CallArguments& call) {
  WH_ASSIGN(const Arguments arguments, bind("range", {"start", "stop", "step"}, 1, call));
  WH_ASSIGN(const int64_t first, integer_argument(arguments[0], "start", 0));
  WH_ASSIGN(const int64_t second, integer_argument(arguments[1], "stop", 0));
  WH_ASSIGN(const int64_t step, integer_argument(arguments[2], "step", 1));
  if (step == 0) return type_error("range() cannot have step 0");
  const bool one = is_absent(arguments[1]);
  const Integer start = one ? 0 : first;
  const Integer stop = one ? first : second;
  const Integer distance = step > 0 ? stop - start : start - stop;
  const Integer stride = step > 0 ? Integer{step} : -Integer{step};
  const Integer count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  if (count > kLongestRange) {
    return make_error(Code::kResourceExhausted, "range() of {} numbers, more than {}", to_decimal(count),
                      to_decimal(kLongestRange));
  }
  ListBuilder numbers(runtime);
  for (Integer i = 0; i < count; ++i) WH_TRY(numbers.add(Value(start + i * step)));
  return numbers.finish(SequenceType::kView, "range");
}

// dict(a=1) and namespace(a=1) take a dict to begin with, too.
Result<std::vector<DictEntry>> named_values(Runtime& runtime, const char* callee, const CallArguments& call) {
  std::vector<DictEntry> entries;
  if (call.positional.size() > 1) return type_error("{}() takes one dict and named values", callee);
  if (!call.positional.empty()) {
    const Dict* dict = as_dict(call.positional.front());
    if (dict == nullptr)
      return type_error("{}() takes a dict, not {}", callee, type_name(call.positional.front()));
    WH_TRY(runtime.charge(dict->entries.size_bytes()));
    entries.assign(dict->entries.begin(), dict->entries.end());
  }
  for (const auto& [name, value] : call.keywords) entries.push_back({runtime.view(name, false), value});
  return entries;
}

Result<Value> make_namespace(Runtime& runtime, const CallArguments& call) {
  WH_ASSIGN(const std::vector<DictEntry> entries, named_values(runtime, "namespace", call));
  auto* space = runtime.make(Namespace{});
  for (const DictEntry& entry : entries) {
    const String* name = as_string(entry.key);
    if (name == nullptr) return type_error("namespace() needs names, not {}", type_name(entry.key));
    WH_TRY(set_attribute(runtime, *space, name->text, entry.value));
  }
  return Value(space);
}

Result<Value> raise_exception(Runtime& runtime, const CallArguments& call) {
  WH_ASSIGN(const Arguments arguments, bind("raise_exception", {"message"}, 1, call));
  WH_ASSIGN(const String* message, to_string(runtime, arguments[0]));
  return type_error("{}", message->text);
}

Result<Value> strftime_now(Runtime& runtime, const CallArguments& call) {
  WH_ASSIGN(const Arguments arguments, bind("strftime_now", {"format"}, 1, call));
  WH_ASSIGN(const String* format, string_argument(arguments[0], "format"));
  if (format == nullptr) return type_error("strftime_now() needs a format");
  WH_TRY(runtime.scan(64 * format->text.size()));
  WH_ASSIGN(const std::string text, format_time(runtime.now(), format->text));
  return runtime.string(text, !format->marks.empty());
}

std::tm civil(std::chrono::sys_seconds time) {
  using namespace std::chrono;
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::tm result{};
  result.tm_year = static_cast<int>(date.year()) - 1900;
  result.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  result.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  result.tm_hour = static_cast<int>(clock.hours().count());
  result.tm_min = static_cast<int>(clock.minutes().count());
  result.tm_sec = static_cast<int>(clock.seconds().count());
  result.tm_wday = static_cast<int>(weekday(day).c_encoding());
  result.tm_yday = static_cast<int>((day - sys_days(date.year() / January / 1)).count());
  return result;
}

}  // namespace

std::optional<Builtin> find_builtin(std::string_view name) {
  if (name == "range") return Builtin::kRange;
  if (name == "namespace") return Builtin::kNamespace;
  if (name == "dict") return Builtin::kDict;
  if (name == "raise_exception") return Builtin::kRaiseException;
  if (name == "strftime_now") return Builtin::kStrftimeNow;
  return std::nullopt;
}

bool is_other_builtin(std::string_view name) {
  return name == "cycler" || name == "joiner" || name == "lipsum" || name == "super" || name == "caller";
}

Result<Value> call_builtin(Runtime& runtime, Builtin builtin, const CallArguments& call) {
  switch (builtin) {
    case Builtin::kRange:
      return range(runtime, call);
    case Builtin::kNamespace:
      return make_namespace(runtime, call);
    case Builtin::kDict: {
      WH_ASSIGN(const std::vector<DictEntry> entries, named_values(runtime, "dict", call));
      return runtime.dict(entries);
    }
    case Builtin::kRaiseException:
      return raise_exception(runtime, call);
    case Builtin::kStrftimeNow:
      return strftime_now(runtime, call);
  }
  return type_error("no such function");
}

Status set_attribute(Runtime& runtime, Namespace& space, std::string_view name, const Value& value) {
  for (Binding* binding = space.first; binding != nullptr; binding = binding->next) {
    WH_TRY(runtime.step());
    if (binding->name != name) continue;
    binding->value = value;
    return {};
  }
  space.first = runtime.make(Binding{name, value, space.first});
  return {};
}

Result<std::string> format_time(std::chrono::sys_seconds time, std::string_view format) {
  static constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
  const std::tm moment = civil(time);
  std::string text;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      text += format[at];
      continue;
    }
    std::string directive = "%";
    if (at + 1 < format.size() && format[at + 1] == '-') directive += format[++at];  // glibc: no padding
    if (++at == format.size() || kDirectives.find(format[at]) == std::string_view::npos) {
      return make_error(Code::kUnsupported, "strftime_now(): the directive after '{}' is not supported",
                        text);
    }
    // A time without a zone, as Python's datetime.now() is, shows none.
    if (format[at] == 'z' || format[at] == 'Z') continue;
    directive += format[at];
    std::array<char, 64> buffer;
    text.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), directive.c_str(), &moment));
  }
  return text;
}

}  // namespace whippet::jinja
