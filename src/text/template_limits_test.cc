// Whatever a template or its data does, rendering ends with an error and bounded cost.
#include "text/template_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace whippet {
namespace {

using Json = TemplateVariables;

std::string repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

Result<MarkedText> render(const std::string& source, const Json& variables = Json::object(),
                          const TemplateLimits& limits = {}) {
  auto parsed = ChatTemplate::parse(source, limits);
  if (!parsed.ok()) return parsed.error();
  return parsed->render(variables, {});
}

void expect_exhausted(const std::string& source, const Json& variables = Json::object(),
                      const TemplateLimits& limits = {}) {
  const auto text = render(source, variables, limits);
  ASSERT_FALSE(text.ok()) << source.substr(0, 200);
  EXPECT_EQ(text.error().code, Code::kResourceExhausted) << text.error().message << "\n"
                                                         << source.substr(0, 200);
  EXPECT_THAT(text.error().message, testing::HasSubstr("chat template, "));
}

TEST(TemplateLimits, DeepSourceIsAnError) {
  const std::pair<const char*, const char*> brackets[] = {
      {"(", ")"},           {"[", "]"},         {"{1:", "}"},  {"f(", ")"}, {"a[", "]"},
      {"(a,", ")"},         {"- not (", ")"},   {"not ", ""},  {"-", ""},   {"a if ", ""},
      {"a if b else ", ""}, {"1 is in [", "]"}, {"{1:(", ")}"}};
  for (const auto& [open, close] : brackets) {
    expect_exhausted("{{ " + repeat(open, 10'000) + "1" + repeat(close, 10'000) + " }}");
  }
  for (const char* part : {".a", "[0]", "|upper", "()", "|default(1)", " if a"}) {
    expect_exhausted("{{ a" + repeat(part, 20'000) + " }}");
  }
  // Chains inside of brackets inside of chains: none of them is long alone.
  std::string chained = "a";
  for (int i = 0; i < 100; ++i) chained = "(" + chained + ")" + repeat(".b", 100);
  expect_exhausted("{{ " + chained + " }}");
  for (const char* part : {"{% if a %}", "{% for a in b %}", "{% macro f() %}", "{% set a %}", "{% with %}",
                           "{% filter upper %}", "{% if a %}{% else %}{% if b %}"}) {
    expect_exhausted(repeat(part, 5'000));
  }
}

TEST(TemplateLimits, AChainOfManyLinksIsNoDepth) {
  EXPECT_EQ(render("{{ 0" + repeat(" + 1", 20'000) + " }}")->text, "20000");
  EXPECT_EQ(render("{{ ''" + repeat(" ~ 1", 5'000) + " }}")->text, repeat("1", 5'000));
  EXPECT_EQ(render("{{ 1" + repeat(" and 1", 20'000) + " }}{{ 0" + repeat(" or 0", 10'000) + " }}")->text,
            "10");
  EXPECT_EQ(render("{{ 1" + repeat(" == 1", 20'000) + " }}")->text, "True");
  EXPECT_EQ(render("{% if 0 %}" + repeat("{% elif 0 %}", 10'000) + "{% else %}x{% endif %}")->text, "x");
  EXPECT_EQ(render("{{ [" + repeat("1, ", 20'000) + "]|length }}")->text, "20000");
}

TEST(TemplateLimits, EndlessRecursionIsAnError) {
  expect_exhausted("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
  expect_exhausted(
      "{% macro f(a) %}{% for i in [1] %}{% set b %}{{ g(a) }}{% endset %}{% endfor %}{% endmacro %}"
      "{% macro g(a) %}{{ [f(a)|upper] }}{% endmacro %}{{ f(1) }}");
}

TEST(TemplateLimits, DeepDataIsAnError) {
  Json lists = 1;
  Json objects = 1;
  for (int i = 0; i < 100'000; ++i) {
    Json list = Json::array();
    list.push_back(std::move(lists));
    lists = std::move(list);
    Json outer = Json::object();
    outer["a"] = std::move(objects);
    objects = std::move(outer);
  }
  Json variables = {{"lists", nullptr}, {"objects", nullptr}};  // growing it later would copy what is deep
  variables["lists"] = std::move(lists);
  variables["objects"] = std::move(objects);
  EXPECT_EQ(render("x", variables)->text, "x");
  for (const char* name : {"lists", "objects"}) {
    const auto text = render(std::string("{{ ") + name + " }}", variables);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().code, Code::kResourceExhausted);
  }
}

TEST(TemplateLimits, DataThatATemplateNestsIsAnError) {
  const std::string nest =
      "{% set ns = namespace(x=1, y=1) %}{% for i in range(50000) %}"
      "{% set ns.x = [ns.x] %}{% set ns.y = {'a': ns.y} %}{% endfor %}";
  EXPECT_EQ(render(nest + "done")->text, "done");
  for (const char* use : {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.y }}", "{{ ns.y|tojson }}"}) {
    expect_exhausted(nest + use);
  }
  const std::string twice =
      "{% set ns = namespace(x=1, y=1) %}{% for i in range(50000) %}"
      "{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}";
  expect_exhausted(twice + "{{ ns.x == ns.y }}");
  expect_exhausted(twice + "{{ ns.x < ns.y }}");
  expect_exhausted(twice + "{{ ns.x in [ns.y] }}");
  // Each level holds the one below twice: 2^60 numbers to print, compare or write.
  const std::string wide =
      "{% set ns = namespace(x=1, y=1) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  for (const char* use : {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x == ns.y }}", "{{ ns.x < ns.y }}"}) {
    expect_exhausted(wide + use);
  }
}

TEST(TemplateLimits, ANamespaceInItselfCannotBePrintedAndDoesNoHarm) {
  const std::string knot = "{% set ns = namespace() %}{% set ns.x = [ns] %}";
  EXPECT_EQ(render(knot + "{{ ns.x[0].x[0].x|length }}")->text, "1");
  EXPECT_FALSE(render(knot + "{{ ns.x }}").ok());
  EXPECT_FALSE(render(knot + "{{ ns.x|tojson }}").ok());
}

TEST(TemplateLimits, HugeValuesAreErrors) {
  for (const char* source :
       {"{{ range(10**9) }}", "{% for i in range(10**9) %}{% endfor %}", "{{ range(0, -10**15, -1)|length }}",
        "{{ 'a' * 10**9 }}", "{{ 10**18 * 'ab' }}", "{{ ([0] * 10**9)|length }}",
        "{{ ([0] * 10**18)|length }}", "{{ 'a'|indent(10**12, true) }}", "{{ 'a\nb'|indent(10**18) }}",
        "{{ [1]|tojson(indent=10**9) }}"}) {
    expect_exhausted(source);
  }
}

TEST(TemplateLimits, ValuesThatDoubleAreErrors) {
  for (const char* next :
       {"s + s", "s ~ s", "s.replace('a', 'aa')", "[s, s]|join", "s|tojson|tojson + s", "s * 2",
        "s.split('b') + s.split('b')", "[s, s]|string", "dict(a=s, b=s)|tojson"}) {
    expect_exhausted(
        fmt::format("{{% set ns = namespace(s='a') %}}{{% for i in range(100) %}}{{% set s = ns.s|string %}}"
                    "{{% set ns.s = {} %}}{{% endfor %}}",
                    next));
  }
  expect_exhausted(
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(s='a') %}{% for i in range(100) %}"
      "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}");
}

TEST(TemplateLimits, WorkThatAddsUpIsAnError) {
  const TemplateLimits limits{.max_steps = 100'000, .max_output = 1 << 20, .max_memory = 16 << 20};
  for (const char* work : {"{{ 'a' * 1000 }}",
                           "{% set x = 'a' * 10000 %}",
                           "{% for j in range(100000) %}{% endfor %}",
                           "{% set x = range(10000) %}",
                           "{% set x = 'b' in s %}",
                           "{% set x = t[i % 900000] %}",
                           "{% set x = s.count('b') %}",
                           "{% set x = w|trim %}",
                           "{% set x = w.strip(' x') %}",
                           "{% set x = s == s ~ '' %}",
                           "{% set x = s.split('a') %}",
                           "{% set x = s|upper %}",
                           "{% set x = s|tojson %}",
                           "{% set x = s|list %}",
                           "{% set x = s[::-1] %}",
                           "{% set x = s.rfind('b') %}",
                           "{% set x = w.rsplit('b') %}",
                           "{% set x = w.isspace() %}",
                           "{% set x = s is lower %}",
                           "{% set x = t|length %}",
                           "{% set x = s < s ~ 'a' %}"}) {
    expect_exhausted(
        "{% set s = 'a' * 900000 %}{% set w = ' ' * 900000 %}{% set t = 'é' * 450000 %}"
        "{% for i in range(90000) %}" +
            std::string(work) + "{% endfor %}",
        Json::object(), limits);
  }
}

TEST(TemplateLimits, ManyVariablesCostNoMoreThanTheSteps) {
  std::string source;
  for (int i = 0; i < 1'000; ++i) source += fmt::format("{{% set v{} = 1 %}}", i);
  const TemplateLimits limits{.max_steps = 100'000};
  expect_exhausted("{% for i in range(2) %}" + source + "{% endfor %}", Json::object(), limits);
  expect_exhausted("{% set u = 1 %}{% for i in [1] %}" + source +
                       "{% for j in range(900) %}{{ u }}{% endfor %}{% endfor %}",
                   Json::object(), limits);
}

TEST(TemplateLimits, AreTheCallers) {
  const Json variables = {{"x", std::string(1000, 'a')}, {"nested", {{{{1}}}}}};
  EXPECT_TRUE(render("{{ x }}", variables, {.max_output = 1000}).ok());
  expect_exhausted("{{ x }}.", variables, {.max_output = 1000});
  EXPECT_TRUE(render("{% for i in range(90) %}{% endfor %}", variables, {.max_steps = 1000}).ok());
  expect_exhausted("{% for i in range(900) %}{% endfor %}", variables, {.max_steps = 1000});
  EXPECT_TRUE(render("{{ range(1000)|length }}", variables, {.max_memory = 100'000}).ok());
  expect_exhausted("{{ range(9000)|length }}", variables, {.max_memory = 100'000});
  EXPECT_TRUE(render("{{ ((((1)))) }}{{ nested }}", variables, {.max_depth = 10}).ok());
  expect_exhausted("{{ ((((((((((1)))))))))) }}", variables, {.max_depth = 10});
}

TEST(TemplateLimits, ALongTemplateIsAnError) {
  EXPECT_TRUE(render(std::string(200'000, 'x')).ok());
  EXPECT_EQ(render(std::string(300'000, 'x')).error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace whippet
