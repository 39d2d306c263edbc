#!/usr/bin/env python3
"""Fills in what chat templates must render, with Jinja2 set up as Hugging Face transformers does.

  python3 -m venv VENV
  VENV/bin/pip install jinja2==3.1.6
  VENV/bin/python tools/make_template_goldens.py [--templates FOLDER] [--data tests/data]

template_goldens.jsonl: the variables of all cases on the first line, then one case a line, {"template"}.
template_model_goldens.jsonl: {"file", "variables"}, for the templates of real models, which are read from FOLDER
and are no part of this project; it is left as it is without --templates.
To each case is added its "text", or "error": true where Jinja2 refuses the template or the render. To add a case,
add its line and run this. The clock of strftime_now stands at 2024-07-26 12:34:56.
"""
import argparse
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

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


def with_result(environment, case, source, variables):
    case = {key: value for key, value in case.items() if key not in ("text", "error")}
    try:
        text = environment.from_string(source).render({"tools": None, "documents": None, **variables})
    except Exception:
        return {**case, "error": True}
    assert " at 0x" not in text, f"{source} prints an address"
    return {**case, "text": text}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def write(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    print(f"{path}: {len(lines)} lines, {sum('error' in line for line in lines)} errors")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests/data")
    options = parser.parse_args()
    environment = make_environment()
    path = options.data / "template_goldens.jsonl"
    first, *cases = read(path)
    write(path, [first] + [with_result(environment, case, case["template"], first["variables"]) for case in cases])
    if options.templates is not None:
        path = options.data / "template_model_goldens.jsonl"
        sources = {file.name: file.read_text(encoding="utf-8") for file in options.templates.glob("*.jinja")}
        write(path, [with_result(environment, case, sources[case["file"]], case["variables"]) for case in read(path)])


if __name__ == "__main__":
    main()
