"""Calls of functions as applications ask for them: the `openai` package and LangChain's bind_tools against
`whippet serve` with the default model. It is too small to choose well, so calls are forced, and what is checked is
that they come, whole and streamed, and that the chat goes on with their results.

Usage: tool_calls_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import json
import sys
import unittest

from openai_testing import ChatOpenAI, ClientCase, openai, serve_module

setUpModule = serve_module

ASKED = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
                   "required": ["city", "unit"], "additionalProperties": False}}}
CLOCK = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


class ToolCalls(ClientCase):
    def ask(self, **options):
        try:
            return self.chat(ASKED, **{"tools": [WEATHER, CLOCK], "max_tokens": 120, **options})
        except openai.BadRequestError as error:
            if "built without" in error.message:
                self.skipTest(error.message)
            raise

    def check(self, call):
        self.assertEqual((call.type, call.function.name), ("function", "get_weather"))
        arguments = json.loads(call.function.arguments)
        self.assertEqual(sorted(arguments), ["city", "unit"])
        self.assertIn(arguments["unit"], "CF")

    def test_a_named_function_is_called(self):
        choice = self.ask(tool_choice=NAMED).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertIsNone(choice.message.content)
        self.assertEqual(len(choice.message.tool_calls), 1)
        self.check(choice.message.tool_calls[0])

    def test_a_required_call_is_of_an_offered_function(self):
        answer = self.ask(tool_choice="required", temperature=1, seed=3, n=4, parallel_tool_calls=False)
        ids = set()
        for choice in answer.choices:
            self.assertEqual(choice.finish_reason, "tool_calls")
            (call,) = choice.message.tool_calls
            self.assertIn(call.function.name, ("get_weather", "get_time"))
            json.loads(call.function.arguments)
            ids.add(call.id)
        self.assertEqual(len(ids), 4)

    def test_the_stream_is_the_whole(self):
        whole = self.ask(tool_choice=NAMED).choices[0].message.tool_calls[0].function
        with self.client.chat.completions.stream(model=self.model, messages=ASKED, tools=[WEATHER], tool_choice=NAMED,
                                                 temperature=0, max_tokens=120) as stream:
            kinds = {event.type for event in stream}
            choice = stream.get_final_completion().choices[0]
        self.assertIn("tool_calls.function.arguments.done", kinds)
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.check(choice.message.tool_calls[0])
        self.assertEqual(json.loads(whole.arguments).keys(), json.loads(choice.message.tool_calls[0].function.arguments).keys())

    def test_the_result_goes_into_the_next_turn(self):
        message = self.ask(tool_choice=NAMED).choices[0].message
        turns = [*ASKED, message.model_dump(exclude_none=True),
                 {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21 degrees and sunny"}]
        answer = self.chat(turns, tools=[WEATHER], max_tokens=40)
        self.assertTrue(answer.choices[0].message.content)
        self.assertGreater(answer.usage.prompt_tokens, self.chat(ASKED, tools=[WEATHER], max_tokens=1).usage.prompt_tokens)

    def test_none_hides_the_tools(self):
        bare = self.chat(ASKED, max_tokens=1).usage.prompt_tokens
        self.assertEqual(self.chat(ASKED, tools=[WEATHER], tool_choice="none", max_tokens=1).usage.prompt_tokens, bare)
        self.assertGreater(self.chat(ASKED, tools=[WEATHER], max_tokens=1).usage.prompt_tokens, bare)

    def test_a_call_that_is_cut_off_is_text(self):
        choice = self.ask(tool_choice=NAMED, max_tokens=12).choices[0]
        self.assertEqual(choice.finish_reason, "length")
        self.assertIsNone(choice.message.tool_calls)
        self.assertTrue(choice.message.content.startswith("<tool_call>"))

    def test_bad_tools_are_refused_by_name(self):
        nameless = {"type": "function", "function": {"name": "a b"}}
        for options, param in (({"tools": [WEATHER, nameless]}, "tools[1].function.name"),
                               ({"tools": [CLOCK], "tool_choice": NAMED}, "tool_choice.function.name"),
                               ({"tools": [CLOCK, CLOCK]}, "tools[1].function.name")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(ASKED, **options)
            self.assertEqual(caught.exception.param, param)

    def test_langchain_binds_tools(self):
        self.ask(tool_choice=NAMED)  # skips without grammars
        chat = ChatOpenAI(model=self.model, base_url=self.address + "v1", api_key="none", temperature=0, max_tokens=120)
        bound = chat.bind_tools([WEATHER], tool_choice="get_weather")
        (call,) = bound.invoke("What is the weather in Paris?").tool_calls
        self.assertEqual((call["name"], sorted(call["args"])), ("get_weather", ["city", "unit"]))
        gathered = None
        for chunk in bound.stream("What is the weather in Paris?"):
            gathered = chunk if gathered is None else gathered + chunk
        self.assertEqual([call["name"] for call in gathered.tool_calls], ["get_weather"])
        self.assertEqual(sorted(gathered.tool_calls[0]["args"]), ["city", "unit"])
        self.assertEqual(gathered.response_metadata["finish_reason"], "tool_calls")
        self.assertTrue(chat.bind_tools([WEATHER, CLOCK], tool_choice="any").invoke("Paris?").tool_calls)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
