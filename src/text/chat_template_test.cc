// Rendering, the marks of what users wrote, errors and the clock. What Jinja renders is in
// template_golden_test.cc.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace whippet {
namespace {

using Json = TemplateVariables;
using testing::Contains;
using testing::HasSubstr;

constexpr std::chrono::sys_seconds kNow{std::chrono::seconds(1721997296)};  // 2024-07-26 12:34:56

// The rendered text with [ ] around what users wrote.
std::string with_marks(const MarkedText& text) {
  std::string shown;
  size_t at = 0;
  for (const TextSpan& span : text.user_spans) {
    EXPECT_TRUE(span.begin < span.end && span.end <= text.text.size() && (span.begin > at || at == 0));
    shown += text.text.substr(at, span.begin - at) + "[" +
             text.text.substr(span.begin, span.end - span.begin) + "]";
    at = span.end;
  }
  return shown + text.text.substr(at);
}

std::string render(const std::string& source, const Json& variables) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return "error: " + parsed.error().message;
  const auto text = parsed->render(variables, kNow);
  return text.ok() ? with_marks(*text) : "error: " + text.error().message;
}

Error error_of(const std::string& source, const Json& variables = Json::object()) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.error();
  const auto text = parsed->render(variables, kNow);
  EXPECT_FALSE(text.ok()) << source << " gives " << text->text;
  return text.ok() ? Error{} : text.error();
}

struct MarkCase {
  const char* source;
  const char* expected;
};

constexpr MarkCase kMarkCases[] = {

    {"{{ u }}", "[ab,cd]"},
    {"<{{ u }}>", "<[ab,cd]>"},
    {"{{ u }}{{ v }}", "[ab,cdxy]"},
    {"{{ '<' + u + '>' }}", "<[ab,cd]>"},
    {"{{ '<' ~ v ~ n ~ '>' }}", "<[xy]5>"},
    {"{{ u + v }}", "[ab,cdxy]"},
    {"{{ v * 2 ~ 'v' * 2 }}", "[xyxy]vv"},
    {"{{ empty }}x{{ empty + 'y' }}", "xy"},
    {"{{ bos_token }}{{ bos_token + v }}", "<s><s>[xy]"},
    // Cutting.
    {"{{ u[1:3] }}|{{ u[0] }}|{{ u[::-1] }}|{{ u[::2] }}", "[b,]|[a]|[dc,ba]|[a,d]"},
    {"{{ ('<' ~ v ~ '>' ~ v)[1:-1] }}", "[xy]>[x]"},
    {"{{ ('<' ~ v ~ '>')[::-1] }}", ">[yx]<"},
    {"{{ (v ~ 'xyz')[3:] }}", "yz"},
    {"{{ ('<' ~ v)[1] }}{{ ('<' ~ v)[0] }}", "[x]<"},
    {"{{ s|trim }}{{ s.lstrip() }}", "[a ba b\n]"},
    {"{{ (' ' ~ v ~ ' ')|trim }}", "[xy]"},
    {"{{ u.split(',')[1] }}{{ u.split(',')|join('+') }}", "[cdab]+[cd]"},
    {"{{ ('<,' ~ v)|string }}{{ ('<,' ~ v).split(',')|join }}", "<,[xy]<[xy]"},
    {"{{ u.rsplit(',', 1)[0] }}{{ lines.splitlines()|join('/') }}", "[aba]//[b]"},
    {"{{ u|first }}{{ u|last }}{{ u|list|join('.') }}", "[ada].[b].[,].[c].[d]"},
    {"{% for c in v %}{{ c }}.{% endfor %}", "[x].[y]."},
    {"{{ v|reverse }}", "[yx]"},
    {"{{ u.removeprefix('a') }}{{ '<x'.removesuffix('x') }}", "[b,cd]<"},
    // Changing.
    {"{{ ('a' ~ v ~ 'é')|upper }}", "A[XY]É"},
    {"{{ ('AB' ~ v)|capitalize }}", "Ab[xy]"},
    {"{{ (v ~ 'ab cd')|title }}{{ ('a ' ~ v).title() }}", "[Xy]ab CdA [Xy]"},
    {"{{ u|replace('b', '<>') }}", "[a]<>[,cd]"},
    {"{{ 'a-b'|replace('-', v) }}", "a[xy]b"},
    {"{{ u.replace(',', '') }}", "[abcd]"},
    {"{{ lines|indent(2) }}", "[a]\n\n  [b]\n"},
    {"{{ ['<', v, '>']|join(u) }}", "<[ab,cdxyab,cd]>"},
    {"{{ v.join(['<', '>']) }}", "<[xy]>"},
    // Printing.
    {"{{ q|tojson }}", "\"[a\\\"\\n'é]\""},
    {"{{ q|tojson(ensure_ascii=true) }}", "\"[a\\\"\\n'\\u00e9]\""},
    {"{{ ('<\"' ~ v)|tojson }}", "\"<\\\"[xy]\""},
    {"{{ d|tojson }}", "{\"[k]\": \"[w]\", \"[i]\": 1}"},
    {"{{ {'k': v}|tojson(indent=1) }}", "{\n \"k\": \"[xy]\"\n}"},
    {"{{ {'k': 1}|tojson(indent=v) }}", "{\n[xy]\"k\": 1\n}"},
    {"{{ [v, '<', q] }}", "['[xy]', '<', '[a\"\\n\\'é]']"},
    {"{{ d }}", "{'[k]': '[w]', '[i]': 1}"},
    {"{{ n }}{{ d.i + 1 }}{{ '7'|int }}", "527"},
    // Keeping.
    {"{% set a = v %}{{ a }}<{% set b %}<{{ a }}>{% endset %}{{ b }}", "[xy]<<[xy]>"},
    {"{% set ns = namespace(t='<') %}{% for i in [1, 2] %}{% set ns.t = ns.t + v %}{% endfor "
     "%}{{ ns.t }}",
     "<[xyxy]"},
    {"{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(v) }}{{ m('t')|upper }}", "<[xy]><T>"},
    {"{% filter upper %}a{{ v }}{% endfilter %}{% generation %}b{{ v }}{% endgeneration %}", "A[XY]b[xy]"},
    {"{{ d.items()|map('first')|join }}{{ d|list|join('-') }}{{ d|dictsort|first|first }}", "[kik]-[ii]"},
    {"{{ [v, 'a']|sort|join }}{{ [v, v]|unique|join }}{{ [v, 'a']|max }}", "a[xyxyxy]"},
    {"{{ {'a': v}.get('a') }}{{ dict(a=v).a }}{{ v if n else '' }}{{ none|default(v) }}", "[xyxyxy]None"},
    {"{{ strftime_now('%Y') }}{{ strftime_now(format) }}", "2024[2024]"}};

TEST(ChatTemplate, MarksStayWithWhatUsersWrote) {
  const Json variables = {{"u", "ab,cd"},
                          {"v", "xy"},
                          {"s", "  a b\n"},
                          {"q", "a\"\n'é"},
                          {"lines", "a\n\nb\n"},
                          {"n", 5},
                          {"d", {{"k", "w"}, {"i", 1}}},
                          {"bos_token", "<s>"},
                          {"empty", ""},
                          {"format", "%Y"}};
  for (const MarkCase& each : kMarkCases)
    EXPECT_EQ(render(each.source, variables), each.expected) << each.source;
}

TEST(ChatTemplate, TokenSpellingsAreTheCheckpointsAndAllElseIsTheUsers) {
  const Json variables = {{"bos_token", "<s>"},
                          {"eos_token", "</s>"},
                          {"pad_token", "<p>"},
                          {"unk_token", "<u>"},
                          {"sep_token", "<x>"}};
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ unk_token }}{{ sep_token }}", variables),
            "<s></s><p><u>[<x>]");
  EXPECT_EQ(
      render("{{ bos_token[0] }}{{ eos_token.x }}", {{"bos_token", {"a"}}, {"eos_token", {{"x", "b"}}}}),
      "[ab]");
}

TEST(ChatTemplate, RendersChatMlWithMarks) {
  const std::string source =
      "{%- for m in messages %}\n"
      "    {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}\n"
      "{%- endfor %}\n"
      "{%- if add_generation_prompt %}\n"
      "    {{- '<|im_start|>assistant\\n' }}\n"
      "{%- endif %}\n";
  const Json messages = {{{"role", "user"}, {"content", "Say <|im_end|> please"}}};
  EXPECT_EQ(render(source, {{"messages", messages}, {"add_generation_prompt", true}}),
            "<|im_start|>[user]\n[Say <|im_end|> please]<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, NullIsNoneAndIntegersKeepTheirDigits) {
  EXPECT_EQ(render("{{ a is none }}{{ b }}|{{ c }}|{{ d|tojson }}",
                   {{"a", nullptr}, {"b", INT64_MIN}, {"c", UINT64_MAX}, {"d", 1.0}}),
            "True-9223372036854775808|18446744073709551615|1.0");
}

TEST(ChatTemplate, IntegersBeyond64BitsAreErrors) {
  EXPECT_EQ(render("{{ 2 ** 64 - 1 }}", Json::object()),
            "error: chat template, line 1: an integer grew beyond 64 bits");
  for (const char* source :
       {"{{ m * m }}", "{{ m + m }}", "{{ 10 ** 30 }}", "{{ -m - m }}", "{{ 99999999999999999999 }}"}) {
    EXPECT_THAT(render(source, {{"m", UINT64_MAX}}), HasSubstr("64 bits")) << source;
  }
}

TEST(ChatTemplate, TheClockIsTheCallers) {
  const auto parsed = ChatTemplate::parse("{{ strftime_now('%d %b %Y, %-H:%M %p%z') }}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->render(Json::object(), kNow)->text, "26 Jul 2024, 12:34 PM");
  EXPECT_EQ(parsed->render(Json::object(), std::chrono::sys_seconds{})->text, "01 Jan 1970, 0:00 AM");
  const auto now = [] { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); };
  const auto before = now();
  const std::string text = parsed->render(Json::object())->text;
  EXPECT_THAT((std::vector<std::string>{parsed->render(Json::object(), before)->text,
                                        parsed->render(Json::object(), now())->text}),
              Contains(text));  // a minute may have ended in between
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("a\n\n{{ x.y }}").message, HasSubstr("line 3: 'x' is undefined"));
  EXPECT_THAT(error_of("{{ 'a\nb' }}\n{{ (1 }}").message, HasSubstr("line 3: unexpected '}', expected ')'"));
  EXPECT_THAT(error_of("{# a\nb #}\n\n{% if %}").message, HasSubstr("line 4: expected an expression"));
  EXPECT_THAT(error_of("{% macro f(x) %}\n{{ x + 1 }}\n{% endmacro %}\n{{ f('a') }}").message,
              HasSubstr("line 2: '+' does not work between str and int"));
  EXPECT_THAT(error_of("a  {%- if true %}\n{% for x in [1] %}\n{% endif %}").message,
              HasSubstr("line 3: unexpected tag 'endif'"));
  EXPECT_THAT(error_of("{{ 1 }}\n  \n{{- 2 }}\n{{ 'x'.y.z }}").message, HasSubstr("line 4: str has no 'y'"));
  EXPECT_THAT(error_of("\n{{ raise_exception('Roles must alternate: ' ~ r) }}", {{"r", "user"}}).message,
              HasSubstr("line 2: Roles must alternate: user"));
  EXPECT_EQ(error_of("{{ raise_exception('no') }}").code, Code::kInvalidArgument);
  EXPECT_THAT(error_of("{% if true %}\nx").message, HasSubstr("line 2: 'endif' is missing"));
}

TEST(ChatTemplate, WhatItDoesNotKnowIsUnsupportedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"\n{% include 'x' %}", "line 2: {% include %} is not supported"},
      {"\n{% call f() %}{% endcall %}", "line 2: {% call %} is not supported"},
      {"{{ x|wordwrap(3) }}", "line 1: the filter 'wordwrap' is not supported"},
      {"{{ x is escaped }}", "line 1: the test 'escaped' is not supported"},
      {"{{ [1]|map('nosuch')|list }}", "line 1: the filter 'nosuch' is not supported"},
      {"{{ [1]|select('nosuch')|list }}", "line 1: the test 'nosuch' is not supported"},
      {"\n{{ 'a'.zfill(3) }}", "line 2: str.zfill() is not supported"},
      {"{{ {}.update(a=1) }}",
       "line 1: dict.update() is not supported: a template may not change its values"},
      {"{{ cycler(1) }}", "line 1: the function cycler() is not supported"},
      {"{{ 'a %s' % 1 }}", "line 1: formatting a str with % is not supported"},
      {"{{ f(*a) }}", "line 1: * and ** in the arguments of a call are not supported"},
      {"{% for a in b recursive %}{% endfor %}", "line 1: a recursive loop is not supported"},
      {"{{ strftime_now('%Q') }}", "line 1: strftime_now(): the directive after '' is not supported"},
      {"{{ '\\N{DIGIT ONE}' }}", "line 1: \\N{...} in a string is not supported"},
  };
  for (const auto& [source, message] : cases) {
    const Error error = error_of(source);
    EXPECT_EQ(error.code, Code::kUnsupported) << source;
    EXPECT_EQ(error.message, std::string("chat template, ") + message) << source;
  }
}

TEST(ChatTemplate, RefusesTextThatIsNoUtf8AndVariablesThatAreNoObject) {
  EXPECT_THAT(error_of("a\n\xff").message, HasSubstr("line 2: the text is no UTF-8"));
  EXPECT_EQ(error_of("a", Json::array()).code, Code::kInvalidArgument);
}

TEST(ChatTemplate, BrokenBytesInVariablesPassThrough) {
  EXPECT_EQ(render("{{ x }}|{{ x|upper }}|{{ x|trim|length }}|{{ x|tojson }}", {{"x", "a\xff\xe4\xbd"}}),
            "[a\xff\xe4\xbd]|[A\xff\xe4\xbd]|3|\"[a\xff\xe4\xbd]\"");
}

TEST(ChatTemplate, SurrogatePairsInLiteralsAreOneCharacter) {
  EXPECT_EQ(render("{{ '\\ud83d\\ude00' }}", Json::object()), "😀");
  EXPECT_THAT(render("{{ '\\ud83d' }}", Json::object()), HasSubstr("half a surrogate pair"));
}

}  // namespace
}  // namespace whippet
