#!/usr/bin/env python3
"""Makes the expected results of the chat template tests with Jinja2, set up as Hugging Face transformers does.

  python3 -m venv VENV
  VENV/bin/pip install jinja2==3.1.6
  VENV/bin/python tools/make_template_goldens.py [--templates FOLDER] [--out tests/data]

template_goldens.jsonl: the variables of all cases, then one case a line, {"template", "text"}, or "error": true
where Jinja2 refuses the template or the render. The cases are in template_cases.py.
template_model_goldens.jsonl: {"file", "variables", "text" | "error"} for the templates of real models, which are
read from FOLDER (*.jinja) and are no part of this project. It is written only with --templates.
The clock stands at 2024-07-26 12:34:56.
"""
import argparse
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

import template_cases

NOW = datetime.datetime(2024, 7, 26, 12, 34, 56)


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what a model writes; for the text it is a block like any other."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def render(environment, source, variables):
    """What is added to a case: its text, or that it is an error."""
    try:
        return {"text": environment.from_string(source).render({"tools": None, "documents": None, **variables})}
    except Exception:
        return {"error": True}


def write(path, cases):
    with open(path, "w", encoding="utf-8") as out:
        for case in cases:
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(f"{path}: {len(cases)} cases, {sum('error' in case for case in cases)} of them errors")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests/data")
    options = parser.parse_args()
    environment = make_environment()
    cases = [{"template": template, **render(environment, template, template_cases.DATA)}
             for template in template_cases.snippets()]
    for case in cases:
        assert " at 0x" not in case.get("text", ""), f"{case['template']} prints an address"
    write(options.out / "template_goldens.jsonl", [{"variables": template_cases.DATA}, *cases])
    if options.templates is None:
        return
    cases = []
    for file in sorted(options.templates.glob("*.jinja")):
        for variables in template_cases.conversations():
            cases.append({"file": file.name, "variables": variables,
                          **render(environment, file.read_text(encoding="utf-8"), variables)})
    write(options.out / "template_model_goldens.jsonl", cases)


if __name__ == "__main__":
    main()
