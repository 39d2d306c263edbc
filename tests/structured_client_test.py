"""Structured output as the `openai` package and LangChain ask for it, of `whippet serve` with the default model.

Usage: structured_client_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import sys
import unittest

from openai_testing import ChatOpenAI, ClientCase, openai, serve_module

setUpModule = serve_module


def city_class():
    """A class as people write them for parse() and with_structured_output()."""
    from pydantic import BaseModel, Field

    class City(BaseModel):
        """A city."""
        name: str = Field(max_length=30)
        million_people: int = Field(ge=0, le=99)
        capital: bool

    return City


BAD_SCHEMA = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}}


class Structured(ClientCase):
    def test_parse_gives_an_object_of_the_class(self):
        messages = [{"role": "user", "content": "Describe Paris as JSON with name, million_people and capital."}]
        for temperature in (0, 1):
            parsed = self.client.chat.completions.parse(model=self.model, messages=messages, temperature=temperature, seed=3,
                                                        max_tokens=120, response_format=city_class())
            city = parsed.choices[0].message.parsed
            self.assertIsInstance(city.capital, bool)
            self.assertLessEqual(city.million_people, 99)

    def test_a_stream_of_json_is_the_whole_answer(self):
        schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": city_class().model_json_schema(), "strict": True}}
        (text,), _ = self.streamed(response_format=schema, max_tokens=120)
        self.assertEqual(text, self.said(response_format=schema, max_tokens=120))
        city_class().model_validate_json(text)

    def test_completions_and_the_fields_of_vllm(self):
        for extra, pattern in (({"structured_outputs": {"choice": ["red", "green"]}}, "red|green"),
                               ({"guided_regex": "[0-9]{2}:[0-9]{2}"}, "[0-9]{2}:[0-9]{2}")):
            self.assertRegex(self.complete(extra_body=extra).choices[0].text, rf"\A({pattern})\Z")

    def test_a_bad_schema_is_refused_by_keyword_also_after_a_good_one(self):
        for _ in range(2):
            self.chat(response_format={"type": "json_object"}, max_tokens=3)
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": BAD_SCHEMA}})
            self.assertEqual(caught.exception.param, "response_format.json_schema.schema")
            self.assertIn("'uniqueItems' at #/properties/tags", caught.exception.message)

    def test_with_structured_output(self):
        llm = ChatOpenAI(base_url=self.address + "v1", api_key="none", model=self.model, temperature=0, max_tokens=120)
        city = llm.with_structured_output(city_class()).invoke("Describe Paris as JSON.")
        self.assertIsInstance(city.capital, bool)
        schema = {"title": "answer", "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        self.assertIn(llm.with_structured_output(schema, method="json_schema").invoke("Is the sky blue?")["ok"], (True, False))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
