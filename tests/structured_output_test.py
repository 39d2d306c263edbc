"""Structured output of the release binary with the default model: hundreds of schemas, drawn and as pydantic and
LangChain emit them, answered at temperature 1 alone and 32 at a time beside unconstrained neighbours. Every answer that
ends of itself is valid by an independent validator, and the neighbours' tokens do not change.

Usage: structured_output_test.py BUILD_FOLDER BINARY [unittest's arguments]; WHIPPET_SCHEMAS: how many are drawn (24)
"""

import json
import os
import subprocess
import sys
import unittest

from python_packages import use
from schema_generator import drawn, emitted
from serving import missing

BUILD, BINARY = sys.argv[1:3]
use(BUILD)
COUNT = int(os.environ.get("WHIPPET_SCHEMAS", "24"))
PROMPT = "Write a short example of JSON that is valid by this schema, and nothing else: "
NEIGHBOUR = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 1, "ignore_eos": True}


def reason_to_skip():
    try:
        import jsonschema  # noqa: F401, what is missing is told
    except ImportError as error:
        return f"no package {error.name}: see tests/python_packages.py"
    if "grammars: built without" in subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout:
        return "the binary is built without grammars"
    return missing(BINARY)


def generate(lines, *arguments):
    """The answers of `whippet generate --jsonl` to these lines."""
    done = subprocess.run([BINARY, "generate", "smollm2", "--no-pull", "--jsonl", "--max-model-len", "2048", *arguments],
                          input="\n".join(map(json.dumps, lines)), capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines), done.stderr[-2000:]
    return answers


def line(schema, seed, max_tokens=150):
    text = json.dumps(schema, ensure_ascii=False)[:600]
    return {"messages": [{"role": "user", "content": PROMPT + text}], "json_schema": schema, "temperature": 1,
            "seed": seed, "max_tokens": max_tokens}


def setUpModule():
    if why_not := reason_to_skip():
        print(f"skipped: {why_not}", file=sys.stderr)
        raise unittest.SkipTest(why_not)


class StructuredOutput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = list(emitted().values()) + drawn(COUNT)

    def check(self, schemas, answers, least):
        """Finished answers are valid; `least`: the share of answers that must have finished."""
        import jsonschema
        finished = 0
        for schema, answer in zip(schemas, answers):
            self.assertNotIn("error", answer, json.dumps(schema))
            self.assertIn(answer["finish_reason"], ("stop", "length"))
            if answer["finish_reason"] != "stop":
                continue
            finished += 1
            validator = jsonschema.Draft202012Validator(
                schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
            errors = [error.message for error in validator.iter_errors(json.loads(answer["text"]))]
            self.assertEqual(errors, [], f"{answer['text']}\n{json.dumps(schema)}")
        print(f"{finished} of {len(answers)} answers finished, all valid", file=sys.stderr)
        self.assertGreaterEqual(finished, least * len(answers))

    def test_answers_are_valid_in_a_batch_and_leave_their_neighbours_alone(self):
        neighbours = [NEIGHBOUR | {"seed": seed} for seed in range(8)]
        lines = [line(schema, seed) for seed, schema in enumerate(self.schemas)]
        mixed = []
        for i, one in enumerate(lines):
            mixed.append(one)
            if i % (len(lines) // 8) == 0 and neighbours[len(mixed) - i - 1:]:
                mixed.append(neighbours[len(mixed) - i - 1])
        answers = generate(mixed, "--max-num-seqs", "32")
        held = [answer for asked, answer in zip(mixed, answers) if "json_schema" in asked]
        free = [answer["token_ids"] for asked, answer in zip(mixed, answers) if "json_schema" not in asked]
        self.check(self.schemas, held, 0.3)
        self.assertEqual(len(free), 8)
        self.assertEqual(free, [answer["token_ids"] for answer in generate(neighbours, "--max-num-seqs", "32")])

    def test_answers_are_the_same_alone(self):
        some = self.schemas[::max(len(self.schemas) // max(COUNT // 8, 1), 1)]
        lines = [line(schema, seed, 60) for seed, schema in enumerate(some)]
        alone = generate(lines, "--max-num-seqs", "1")
        self.check(some, alone, 0.2)
        together = generate(lines, "--max-num-seqs", "32")
        self.assertEqual([one["token_ids"] for one in alone], [one["token_ids"] for one in together])

    def test_other_kinds_hold_too(self):
        asked = [({"regex": "[0-9]{3}-[a-z]{2}"}, r"[0-9]{3}-[a-z]{2}\Z"), ({"choice": ["red", "green"]}, r"(red|green)\Z"),
                 ({"grammar": 'root ::= "<" [a-c]+ ">"\n'}, r"<[a-c]+>\Z")]
        for seed in range(3):
            lines = [{"prompt": "Hi", "temperature": 1, "seed": seed, "max_tokens": 60, **kind} for kind, _ in asked]
            for answer, (_, pattern) in zip(generate(lines), asked):
                if answer["finish_reason"] == "stop":
                    self.assertRegex(answer["text"], r"\A" + pattern)
        (answer,) = generate([{"messages": [{"role": "user", "content": "A colour as JSON?"}], "max_tokens": 200,
                               "response_format": {"type": "json_object"}}])
        if answer["finish_reason"] == "stop":
            self.assertIsInstance(json.loads(answer["text"]), dict)

    def test_a_bad_line_is_an_error_of_its_own(self):
        good = line({"type": "boolean"}, 1)
        bad = line({"type": "array", "uniqueItems": True}, 1)
        answers = generate([good, bad, good, {"prompt": "x", "regex": "a", "choice": ["b"]}])
        self.assertIn(answers[0]["text"], ("true", "false"))
        self.assertIn("'uniqueItems' at #", answers[1]["error"])
        self.assertEqual(answers[0]["text"], answers[2]["text"])
        self.assertIn("only one of them", answers[3]["error"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
