"""The cases of make_template_goldens.py: snippets of templates, and conversations for whole ones."""

DATA = {
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
    "name": "ada", "text": "  Hello, World  ", "lines": "one\ntwo\n\nthree\n", "empty": "", "n": 7, "big": 18446744073709551615,
    "x": 2.5, "yes": True, "no": False, "nothing": None, "chinese": "你好，世界", "quotes": "it's \"so\" \\ \t\u0001 é",
    "list": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "nested": [[1, 2], [3, [4]]], "none_in": [1, None, "a"],
    "pairs": [["a", 1], ["b", 2]],
    "table": {"b": 1, "a": 2, "C": 3}, "deep": {"a": {"b": [{"c": "found"}]}}, "items": "a key",
    "schema": {"type": "object", "items": {"type": "string"}, "keys": ["k"], "get": 5},
    "people": [{"name": "Bob", "age": 30, "tags": ["x"]}, {"name": "alice", "age": 25}, {"name": "Carl", "age": 30}],
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi <b>&"},
                 {"role": "assistant", "content": "<think>\nwhy\n</think>\n\nHello"}],
}

# Expressions: each becomes {{ ... }} over DATA.
EXPRESSIONS = r"""
name
nothing
yes
no
n
x
big
big + 0
-big
missing
missing.attribute
missing['x']
missing[0]
missing + 'a'
missing ~ 'a'
missing == missing
missing == none
missing|length
missing|list
missing|default('d')
empty|default('d')
empty|default('d', true)
none|default('d')
nothing|d('d', boolean=true)
missing|default
list
words
nested
none_in
table
deep
(1,)
(1, 'a', none)
()
[]
{}
{'a': [1, 2.0, true, none, 'x']}
{1: 'a', true: 'b', 'c': 3, none: 4, 2.0: 5}
{1: 'a'}[1.0]
{'a': 1, 'a': 2}
[quotes, "it's", 'say "x"', "both ' and \""]
[chinese, "\u00a0\u200b\n"]
quotes
1 + 2
1 - 2
7 / 2
6 / 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 % 2
2 ** 10
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
10 ** 18
1 / 0
1 // 0
1 % 0
1.0 / 0
1 + true
1 + '1'
'1' + 1
'a' * 3
3 * 'ab'
'a' * -1
[1] * 3
[1] + [2]
(1,) + (2,)
[1] + (2,)
'a' + 'b' + 'c' + name
1 + 2 * 3 - 4
(1 + 2) * 3
1 ~ 2 ~ 'x' ~ none ~ true ~ 1.5
'a' ~ 1 + 2
1.0
1.5e3
1e16
1e15
123456789012345678.0
0.0001
0.00001
1e-7
1.0e300
-0.0
0.1 + 0.2
1_000_000
3 > 2
3 > 2 > 1
1 < 3 < 2
1 < 2 == 2
1 == 1.0
1 == true
'a' == 'a'
'a' < 'b'
'Z' < 'a'
'a' < 1
none < 1
[1, 2] < [1, 3]
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
table == {'C': 3, 'a': 2, 'b': 1}
1 != 2
not 1
not not ''
not 1 == 2
1 and 2
0 and 2
'' or 'b'
0 or '' or none
1 or missing.x
0 and missing.x
1 in list
5 in list
5 not in list
'a' in table
'z' not in table
'ell' in 'hello'
'' in 'hello'
1 in 'hello'
1 in missing
'x' in none
1 in 5
[3, 1] in [[3, 1]]
'a' if yes else 'b'
'a' if no else 'b'
'a' if no
'a' if no else 'b' if no else 'c'
('a' if no) is undefined
list[0]
list[-1]
list[5]
list[5] is defined
list['x'] is defined
list.0
list[0:2]
list[::-1]
list[-2:]
list[:-1]
list[5:]
list[::2]
list[2:0:-1]
list[-100:100]
list[100:-100:-1]
list[::0]
list[none:none]
name[0]
name[-1]
name[9]
name[1:]
name[::-1]
chinese[0]
chinese[1:3]
chinese[::-1]
chinese[-1]
chinese|length
'abcdef'[::2]
'abcdef'[4:1:-2]
'abc'[1:1]
'abc'[2:1]
table['a']
table.a
table.zzz
table['zzz'] is defined
table[0] is defined
deep.a.b[0].c
deep['a']['b'][0]['c']
deep.a.x.y
none.x is defined
none.x
(5).x is defined
schema.type
schema['items']
schema.items is defined
schema.items is mapping
schema['keys']
schema['get']
table['items'] is callable
table.items()
table.keys()
table.values()
table.keys()|list
table.items()|list
table.get('a')
table.get('z')
table.get('z', 'd')
table|length
table|list
table.items()|length
table.pop('a')
list.append(1)
list.index(1)
list.index(9)
list.count(3)
(1, 2, 1).count(1)
text.strip()
text.lstrip()
text.rstrip() ~ '|'
text|trim
'xxhixx'.strip('x')
'xyhixy'.strip('yx')
'xxhixx'.lstrip('x')
'xxhixx'.rstrip('x')
'xxhixx'|trim('x')
'\n\n a\n'.strip('\n')
'\u3000 a \u00a0'.strip() ~ '|'
'好a好'.strip('好')
text.upper()
text.lower()
'hello world'.title()
"it's o'neill a1b"|title
"it's o'neill a1b".title()
"foo-bar (baz) [qux] {quux} <x>"|title
'hELLO wORLD'.capitalize()
'hELLO wORLD'|capitalize
'straße'|upper
'ÀÉ'|lower
'éa'|capitalize
'ǆ'.title()
5|upper
none|upper
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.split(',', 0)
'a,b,c'.split(',', maxsplit=1)
'a,b,c'.split(sep=',')
'a,,b'.split(',')
',a,'.split(',')
''.split(',')
''.split()
'  a  b c '.split()
'  a  b c '.split(none, 1)
'  a  b c '.rsplit(none, 1)
' a b c '.rsplit(none, 2)
'aaa'.rsplit('aa', 1)
'aaa'.split('aa')
'a'.split('')
'abc'.split('</think>')
'abc'.startswith('ab')
'abc'.startswith('b')
'abc'.startswith(('x', 'a'))
'abc'.startswith(['a'])
'abc'.endswith('bc')
'abc'.endswith('')
'abc'.startswith(1)
'abc'.replace('b', 'x')
'aaaa'.replace('a', 'b', 2)
'aaaa'.replace('aa', 'b')
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
''.replace('', '-')
'好好'.replace('', '.')
'abc'|replace('b', 'x')
'aaa'|replace('a', 'b', 2)
5|replace(5, 6)
'abc'.find('c')
'abc'.find('z')
'你好世界'.find('世')
'abcabc'.rfind('b')
'abcabc'.index('b')
'abc'.index('z')
'banana'.count('an')
'aaa'.count('aa')
'abc'.count('')
','.join(['a', 'b'])
','.join('abc')
','.join([1, 2])
'abc'.isdigit()
'123'.isdigit()
''.isdigit()
'abc'.isalpha()
'a1'.isalnum()
' \n'.isspace()
'ABC'.isupper()
'aBC'.islower()
'1a'.islower()
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'x.txt'.removesuffix('.md')
'a\nb\r\nc\x0bd'.splitlines()
'a\nb\n'.splitlines(true)
''.splitlines()
'abc'.nosuchmethod()
'abc'.nosuchmethod is defined
words|join
words|join(', ')
[1, none, true, 2.5]|join('-')
people|join(', ', attribute='name')
'abc'|join('-')
table|join(',')
list|first
list|last
[]|first
[]|last
[]|first is defined
'abc'|first
'abc'|last
table|first
list|length
list|count
5|length
none|length
list|sort
list|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
words|sort(reverse=true)
people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='name')|map(attribute='name')|list
[1, 'a']|sort
[[2, 'b'], [1, 'z'], [2, 'a']]|sort
none_in|sort
list|reverse|list
'abc'|reverse
list|unique|list
words|unique|list
words|unique(case_sensitive=true)|list
[1, 1.0, true, 2]|unique|list
people|unique(attribute='age')|map(attribute='name')|list
table|dictsort
table|dictsort(true)
table|dictsort(by='value')
table|dictsort(reverse=true)
table|items|list
missing|items|list
5|items|list
list|min
list|max
words|min
words|max
[]|min
people|max(attribute='age')
list|sum
people|sum(attribute='age')
[[1], [2]]|sum(start=[])
list|map('string')|list
words|map('upper')|join(',')
words|map('replace', 'p', 'P')|list
people|map(attribute='name')|join(', ')
people|map(attribute='tags.0')|list
people|map(attribute='tags', default=[])|list
pairs|map(attribute=1)|list
pairs|map('first')|list
list|select('odd')|list
list|select('gt', 1)|list
list|select|list
[0, 1, '', 'a', none]|select|list
list|reject('odd')|list
people|selectattr('age', 'equalto', 30)|map(attribute='name')|list
people|selectattr('age', '==', 30)|list|length
people|selectattr('tags')|list
people|selectattr('tags', 'defined')|list|length
people|rejectattr('tags', 'defined')|map(attribute='name')|list
people|rejectattr('age', 'lt', 30)|map(attribute='name')|join
messages|selectattr('role', 'equalto', 'user')|list|length
messages|selectattr('role', 'in', ['user', 'system'])|list|length
(list|select('gt', 100)) is sequence
'yes' if list|select('gt', 100) else 'no'
(list|map('string'))|length
(list|map('string'))|first
(list|map('string'))|last
(list|map('string'))[0]
list|list
'abc'|list
5|list
5|string
none|string
1.0|string
true|string ~ ''
'42'|int
' 42 '|int
'42.7'|int
'x'|int
'x'|int(5)
'x'|int(default=none)
'ff'|int(base=16)
3.9|int
-3.9|int
none|int
true|int
'1.5'|float
'x'|float
'x'|float(1.5)
'1e3'|float
3|float
-5|abs
-5.5|abs
'a'|abs
2.5|round
3.5|round
-2.5|round
2.567|round(2)
2.567|round(2, 'floor')
2.561|round(2, 'ceil')
2.1|round(method='ceil')
1234|round(-2)
1234.5|round(-2)
5|round
2.675|round(2)
'a'|safe
5|safe
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent('> ')
'a'|indent
''|indent(2, true)
'a\n'|indent(2)
table|tojson
table|tojson(indent=2)
deep|tojson(indent=4)
deep|tojson(indent='\t')
[]|tojson(indent=2)
{}|tojson(indent=2)
[[]]|tojson(indent=0)
quotes|tojson
chinese|tojson
chinese|tojson(ensure_ascii=true)
'😀\u007f'|tojson(ensure_ascii=true)
'\u2028</script>&'|tojson
[1, 2.0, true, none, 'x', 1e100, 0.1]|tojson
(1, 2)|tojson
{1: 2, none: 3, true: 4, 2.5: 5}|tojson
table|tojson(sort_keys=true)
table|tojson(separators=(',', ':'))
table|tojson(separators=(',', ':'), indent=1)
missing|tojson
table.items()|tojson
big|tojson
none|tojson
name is defined
missing is defined
missing is undefined
name is not defined
nothing is none
nothing is not none
missing is none
name is string
n is string
table is mapping
list is mapping
list is sequence
name is sequence
table is sequence
n is sequence
list is iterable
name is iterable
table is iterable
n is iterable
missing is iterable
range(3) is iterable
n is number
x is number
yes is number
name is number
n is integer
yes is integer
x is integer
x is float
n is float
yes is boolean
n is boolean
yes is true
n is true
no is false
none is false
1 is true
n is odd
n is even
name is odd
n is divisibleby(7)
n is divisibleby 3
n is divisibleby 0
n is eq 7
n is equalto(7)
n is ne 7
n is gt 5
n is lessthan 5
n is ge(7)
n is in [7, 8]
n is not in [7, 8]
'a' is in 'abc'
n is sameas 7
none is sameas none
1 is sameas true
'abc' is lower
'ABC' is upper
'123' is lower
name is callable
range is callable
name is defined and n is odd
not name is defined
name is defined is string
range(5)|list
range(1, 5)|list
range(10, 0, -3)|list
range(0)|list
range(5)|length
range(5)[2]
range(100001)
range(1000000000)
range(1, 2, 0)
range(2.5)
dict(a=1, b=2)
dict({'x': 1}, y=2)
namespace(a=1).a
namespace(a=1).b is defined
namespace({'a': 1}, b=2).b
raise_exception('no')
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%A, %B %d, %Y %H:%M:%S')
strftime_now('%-d/%-m/%y %I:%M %p %j %%')
nosuchfunction()
5()
name()
'a' 'b'
'a\x41\u00e9\n\t\\\'\"\101\q'
'' ''
true and True
false or False or none or None
+5
-5
--5
- n
+'a'
-'a'
-x|abs
n|string|length
n + 1|string
(n + 1)|string
'a' + 5|string
name|upper|lower|length
name.upper().lower()[0]
'a|b'
'{{ x }}'
{'a': {'b': {}}}
{'a': {'b': 1}}['a']['b']
[1, 2, ]
{'a': 1, }
(1, 2, )
1, 2
1 if 2
a.b.c.d
messages[0].role
messages[-1]['content'].split('</think>')[-1].lstrip('\n')
messages[2].content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
messages|length - 1
messages[1:]|map(attribute='role')|list
messages[::-1][0].role
'role' in messages[0]
'tool_calls' in messages[0]
messages[0].tool_calls
messages[0].tool_calls is defined
messages|map(attribute='content')|map('length')|list
1 +
(1
[1
{'a'}
{1}
'abc
1 2
a b
)
}
1 }
a.
a.'b'
a[
a[]
a[1:2:3:4]
a[1, 2]
|upper
a|
a|nosuchfilter
a is nosuchtest
a is
upper('a')
a is defined is defined
f(a=1, 2)
f(*a)
a ? b
a; b
a = b
a := b
@
'\u12'
1.2.3
1..2
10 is divisibleby 5 and true
''.join(words) is string
words|select('string')|map('length')|sum
(words|map('lower')|unique|sort|list)[0]
loop
loop.index
caller()
""" .strip("\n").split("\n")

# Templates over DATA.
TEMPLATES = [
    "", "plain", "plain\n", "plain\n\n", "\n", "a\r\nb\rc\n", "{", "{ {", "{{", "{%", "{{}}", "{% %}", "}}", "%}",
    "a {# comment #} b", "a {#- comment -#} b", "a {# x\ny #}\nb", "{# a #}\n{# b #}\nc", "  {# a #}\nb", "{#+ a #} b",
    "a\n  {#+ c #}\nb", "a {# c +#}\nb", "{#-#}x", "{#--#} x", "{# {{ x }} {% if %} #}y", "{# unclosed",
    # White space.
    "a\n  {% if yes %}\n  b\n  {% endif %}\n  c", "a {% if yes %} b {% endif %} c", "a\n  {%- if yes %}\n  b\n  {%- endif %}\nc",
    "a\n  {% if yes -%}\n  b\n  {% endif -%}\n  c", "a\n  {%+ if yes %}\n  b\n  {%+ endif %}\nc",
    "a\n{% if yes +%}\nb\n{% endif +%}\nc", "a\n  {{ name }}\n  b", "a\n  {{- name }}\n  b", "a\n  {{ name -}}\n  b",
    "  {% if yes %}x{% endif %}", "x  {% if yes %}x{% endif %}", "\t {% if yes %}x{% endif %}\n\ny", "{{ name }}\n",
    "{{ name }}\n\n", "{% if yes %}\n\nx{% endif %}\n", "{{ name }}  {% if yes %}x{% endif %}", "{{ name -}} \n {{- name }}",
    "{%- if yes -%} \n x \n {%- endif -%} \n y", "{{+ name }}", "{{ name +}}", "{{- 5 }}", "{{-5}}", "{{ 5 -}}",
    "\u3000{% if yes %}x{% endif %}", "\u00a0\n {%- if yes %}x{% endif %}", "{% set a = 1 %}\n  {% set b = 2 %}\n{{ a }}{{ b }}",
    "{%if yes%}x{%endif%}", "{%-if yes-%}x{%-endif-%}", "{%\nif\nyes\n%}x{% endif %}", "{{\n name\n|\nupper }}",
    # raw
    "{% raw %}{{ x }} {% y %} {# z #}{% endraw %}", "a {%- raw -%} {{ x }} {%- endraw -%} b", "{% raw %}\n  a\n{% endraw %}\nb",
    "  {% raw %}\n  a\n  {% endraw %}\nb", "{% raw %}unclosed", "{% raw %}{% endraw +%}\nx", "{% raw +%}x{% endraw %}",
    # if
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if no %}a{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}", "{% if [] %}a{% elif {} %}b{% elif '' %}c{% elif 0 %}d{% elif 0.0 %}e{% else %}f{% endif %}",
    "{% if yes %}", "{% if %}a{% endif %}", "{% endif %}", "{% else %}", "{% if yes %}a{% endfor %}", "{% if yes and n > 5 %}a{% endif %}",
    "{% if yes %}{% if no %}a{% else %}b{% endif %}{% endif %}", "{% if yes %}a{% else %}b{% else %}c{% endif %}",
    "{% if not messages[0].tool_calls %}none{% endif %}",
    # for
    "{% for i in list %}{{ i }},{% endfor %}", "{% for i in [] %}x{% else %}none{% endfor %}", "{% for i in missing %}x{% else %}none{% endfor %}",
    "{% for i in list if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}", "{% for i in list if i > 9 %}x{% else %}none{% endfor %}",
    "{% for k in table %}{{ k }}{% endfor %}", "{% for k, v in table.items() %}{{ k }}={{ v }};{% endfor %}", "{% for c in name %}{{ c }}.{% endfor %}",
    "{% for k, v in table|items %}{{ k }}{{ v }}{% endfor %}", "{% for k, v in table|dictsort %}{{ k }}={{ v }} {% endfor %}",
    "{% for a, b in pairs %}{{ a }}{{ b }}{% endfor %}", "{% for (a, b) in pairs %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in none %}{% endfor %}", "{% for i in list %}", "{% for i list %}{% endfor %}",
    "{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for i in list %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}", "{% for i in list %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for i in list %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}", "{% for i in list %}{{ loop.nosuch is defined }}{% endfor %}",
    "{% for i in list %}{% for j in words %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "{% for i in list %}{% endfor %}{{ loop is defined }}",
    "{% for i in list %}{{ i }}{% endfor %}{{ i is defined }}", "{% for i in list %}{% set name = i %}{{ name }}{% endfor %}{{ name }}",
    "{% set t = 0 %}{% for i in list %}{% set t = t + i %}{{ t }} {% endfor %}{{ t }}", "{% for i in list %}{{ q }}{% set q = i %}{% endfor %}",
    "{% for i in list %}{% if i == 1 %}{% set q = 'x' %}{% endif %}{{ q }}{% endfor %}", "{% for i in list %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in list %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "{% for i in list %}{% for j in list %}{% if j == 1 %}{% break %}{% endif %}{{ j }}{% endfor %}{{ i }}{% endfor %}",
    "{% break %}", "{% for i in list %}{{ i }}{% if loop.last %}{% break %}{% endif %}{% else %}x{% endfor %}", "{% for i in list|sort if i is odd %}{{ i }}{% endfor %}",
    "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role }} {% endfor %}", "{% for m in messages %}{% if not loop.last %}{{ messages[loop.index0 + 1].role }}{% endif %}{% endfor %}",
    "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}", "{% for i in (1, 2) if yes else [] %}{% endfor %}", "{% for i in list if i > 1 and i < 3 %}{{ i }}{% endfor %}",
    "{% for tool_call in [{'function': {'name': 'f'}}] %}{% if tool_call.function is defined %}{% set tool_call = tool_call.function %}{% endif %}{{ tool_call.name }}{% endfor %}",
    "{% set m = words|map('upper') %}{% for w in m %}{{ w }}{% endfor %}|{% for w in m %}{{ w }}{% endfor %}", "{% for i in list %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
    # set
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set (a, b) = [1, 2] %}{{ a }}{{ b }}", "{% set a, b = 1 %}", "{% set a = 1, 2 %}{{ a }}", 
    "{% set a %}x {{ name }}{% endset %}[{{ a }}]", "{% set a | upper %}x {{ name }}{% endset %}{{ a }}", "{% set a | trim | length %}  xy {% endset %}{{ a }}",
    "{% set a %}{% set b = 1 %}{% endset %}{{ b is defined }}", "{% if yes %}{% set a = 1 %}{% endif %}{{ a }}", "{% set a = b = 1 %}", "{% set a %}", "{% set 1 = 2 %}", "{% set a.b = 1 %}",
    "{% set ns = namespace(x=1) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a = 'b' %}{{ ns.a }}{{ ns.zz }}{{ ns['a'] }}",
    "{% set ns = namespace(found=false) %}{% for i in list %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set ns = namespace() %}{% set ns.a %}x{{ name }}{% endset %}{{ ns.a }}", "{% set d = {} %}{% set d.a = 1 %}", "{% set a = missing %}{{ a is defined }}", "{% set a = name %}{% set name = 'x' %}{{ a }}{{ name }}",
    "{% set x = x|default(5) %}{{ x }}", "{% if not foo is defined %}{% set foo = none %}{% endif %}{{ foo is none }}", "{% set messages = messages[1:] %}{{ messages|length }}",
    "{{ tools is defined }}{{ tools is none }}{{ documents is none }}",
    # macros
    "{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=4, a=5) }} {{ f() }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}", "{% macro f(a, b=a ~ 'x') %}{{ b }}{% endmacro %}{{ f('q') }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f() %}{{ name }}{% endmacro %}{% set name = 'new' %}{{ f() }}", "{% macro f() %}{% set name = 'in' %}{{ name }}{% endmacro %}{{ f() }}{{ name }}",
    "{% macro f(x) %}\n  {{ x }}\n{% endmacro %}\n[{{ f('a') }}]", "{% macro f() %}a{% endmacro %}{{ f() ~ 'b' }}{{ f()|upper }}{{ f() is string }}", "{% macro f(a=1, b) %}{% endmacro %}",
    "{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}{{ f(missing) }}", "{{ f() }}{% macro f() %}a{% endmacro %}", "{% for i in list %}{{ f(i) }}{% endfor %}{% macro f(x) %}{{ x }}{% endmacro %}",
    "{% macro f(x) %}{% for i in x %}{{ loop.index }}{{ g(i) }}{% endfor %}{% endmacro %}{% macro g(y) %}<{{ y }}>{% endmacro %}{{ f(list) }}", "{% macro f() %}{{ loop is defined }}{% endmacro %}{% for i in [1] %}{{ f() }}{% endfor %}",
    "{% macro f(x) -%}\n  {%- if x is mapping -%}\n    {%- for k, v in x.items() -%}{{ k }}:{{ f(v) }};{%- endfor -%}\n  {%- else -%}{{ x }}{%- endif -%}\n{%- endmacro %}{{ f(deep) }}", "{% macro %}{% endmacro %}", "{% macro f %}{% endmacro %}",
    # with, filter, generation
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}", "{% filter upper %}a {{ name }}{% endfilter %}", "{% filter trim|upper %} a {% endfilter %}",
    "{% filter replace('a', 'b') %}banana{% endfilter %}", "{% generation %}a{{ name }}{% endgeneration %}b", "{%- generation -%} x {%- endgeneration -%} y", "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}\n{% endif %}{% endfor %}",
    # What is refused.
    "{% nosuchtag %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% do list.append(1) %}", "{% trans %}x{% endtrans %}", "{{ raise_exception('Conversation roles must alternate') }}",
    "{% if (messages[0].role == 'user') != (0 % 2 == 0) %}{{ raise_exception('roles') }}{% endif %}ok", "{{ 'a'.__class__ }}", "{{ table.__class__ is defined }}", "{{ name.upper.x is defined }}", "{{ messages.x.y }}", "{{ [].append(1) }}",
    # Whole templates in the styles of real ones.
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "{{ bos_token }}{% for m in messages %}[{{ m.role | upper }}]: {{ m.content | trim }}{{ eos_token if m.role == 'assistant' }}\n{% endfor %}",
    "{%- set ns = namespace(system='') -%}\n{%- for m in messages -%}\n  {%- if m.role == 'system' -%}\n    {%- set ns.system = ns.system + m.content -%}\n  {%- else -%}\n    {{ '<' ~ m.role ~ '>' }}\n    {{- m.content -}}\n  {%- endif -%}\n{%- endfor -%}\n{{ ns.system }}",
    "{%- for m in messages %}\n    {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}\n{%- endfor %}",
]


def snippets():
    """Every template over DATA."""
    return ["{{ " + expression + " }}" for expression in EXPRESSIONS] + TEMPLATES


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city, e.g. \"Zürich\" 天气.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "default": 3},
        "units": {"enum": ["°C", "°F"]}}, "required": ["city"]}}}
SUM = {"type": "function", "function": {"name": "sum", "description": "", "parameters": {
    "type": "object", "properties": {"of": {"type": "array", "items": {"type": "number"}}}}}}


def call(name, arguments, **more):
    return {"role": "assistant", **more, "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}


def conversations():
    """Variables for a render of every template."""
    user = {"role": "user", "content": "  Hello, who are you?\n"}
    system = {"role": "system", "content": "You are terse. "}
    answer = {"role": "assistant", "content": "<think>\nA greeting.\n</think>\n\nI am a model."}
    again = {"role": "user", "content": "再见 👋 <|im_end|><|eot_id|>"}
    asked = {"role": "user", "content": "Weather in Bern?"}
    result = {"role": "tool", "name": "get_weather", "content": "{\"temp\": 21.5}"}
    called = [system, asked, call("get_weather", {"city": "Bern", "days": 2, "exact": True, "note": None}, content=""), result]
    tools = {"tools": [WEATHER, SUM]}
    base = {"bos_token": "<|begin|>", "eos_token": "<|end|>", "add_generation_prompt": True}
    for messages in ([user], [system, user], [system, user, answer, again], [user, answer]):
        for more in ({}, {"enable_thinking": False}, {**tools, "add_generation_prompt": False}):
            yield {**base, **more, "messages": messages}
    yield {**base, "date_string": "01 Jan 2025", "messages": [system, user]}
    for more in ({}, tools, {**tools, "tools_in_user_message": False, "enable_thinking": False}):
        yield {**base, **more, "messages": called}
    yield {**base, "messages": called + [{"role": "assistant", "content": "21.5 °C"}, again]}
    yield {**base, "messages": called + [result]}
    yield {**base, **tools, "messages": [asked, call("sum", {"of": [1, 2.5]}, content="", reasoning_content="Let me add."), result]}
    yield {**base, **tools, "messages": [asked, call("sum", "{\"of\": []}", content="Adding."), result, again]}
    yield {**base, "messages": [{"role": "system", "content": "Short. /no_think"}, user, answer, again]}
    yield {**base, "messages": [{"role": "system", "content": "/think Long."}, user]}
    yield {**base, "messages": [user, {"role": "ipython", "content": {"a": [1]}}]}
    yield {**base, **tools, "messages": [system]}
    yield {**base, "messages": []}
    yield {"messages": [user]}
