"""The official `openai` package as a client of `whippet serve` with the default model: every call, streamed and whole,
its errors, 64 streams at once, hanging up; and LangChain's ChatOpenAI.

Usage: openai_client_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import asyncio
import sys
import tempfile
import unittest

from openai_testing import BINARY, ENDLESS, FRANCE, STORY, ChatOpenAI, ClientCase, openai, serve_module
from page_testing import free_port
from serving import serve, until_idle

setUpModule = serve_module


class Models(ClientCase):
    def test_list_and_retrieve(self):
        models = self.client.models.list().data
        self.assertTrue(models)
        for model in models:
            self.assertEqual(model.object, "model")
            self.assertGreater(model.max_model_len, 0)
            self.assertEqual(self.client.models.retrieve(model.id), model)

    def test_an_unknown_name_lists_those_that_are_served(self):
        names = ", ".join(model.id for model in self.client.models.list().data)
        for call in (lambda: self.client.models.retrieve("nobody"), lambda: self.chat(model="nobody")):
            with self.assertRaises(openai.NotFoundError) as caught:
                call()
            self.assertEqual((caught.exception.param, caught.exception.code), ("model", "model_not_found"))
            self.assertIn(names, caught.exception.message)


class Chats(ClientCase):
    def test_a_whole_answer(self):
        answer = self.chat()
        self.assertTrue(answer.id.startswith("chatcmpl-"))
        self.assertEqual((answer.object, answer.model), ("chat.completion", self.model))
        choice = answer.choices[0]
        self.assertEqual((choice.message.role, choice.finish_reason, choice.stop_reason), ("assistant", "stop", None))
        self.assertIn("Paris", choice.message.content)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertGreater(self.chat().usage.prompt_tokens_details.cached_tokens, 0)

    def test_a_stream_says_what_the_whole_answer_says(self):
        whole = self.chat(STORY)
        (text,), chunks = self.streamed(messages=STORY)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual([chunk.choices[0].finish_reason for chunk in chunks[-2:]], [None, "length"])
        self.assertTrue(all(chunk.usage is None and chunk.object == "chat.completion.chunk" for chunk in chunks))
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)

    def test_include_usage_adds_a_last_chunk(self):
        usage = self.chat().usage
        _, chunks = self.streamed(stream_options={"include_usage": True})
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, usage.completion_tokens)
        self.assertEqual(chunks[-1].usage.prompt_tokens, usage.prompt_tokens)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))

    def test_n_and_seed(self):
        drawn = {"messages": STORY, "temperature": 1, "seed": 7, "n": 3}
        answer = self.chat(**drawn)
        texts = [choice.message.content for choice in answer.choices]
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(answer.usage.completion_tokens, 60)
        self.assertEqual(self.streamed(**drawn)[0], texts)
        self.assertNotEqual([choice.message.content for choice in self.chat(**{**drawn, "seed": 8}).choices], texts)

    def test_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3)
        tokens = answer.choices[0].logprobs.content
        self.assertEqual(len(tokens), answer.usage.completion_tokens)
        self.assertEqual(bytes(byte for token in tokens[:-1] for byte in token.bytes).decode(), answer.choices[0].message.content)
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual((token.top_logprobs[0].token, token.top_logprobs[0].logprob), (token.token, token.logprob))
            self.assertLessEqual(token.logprob, 0)
        _, chunks = self.streamed(logprobs=True, top_logprobs=3)
        self.assertEqual([token for chunk in chunks for choice in chunk.choices if choice.logprobs
                          for token in choice.logprobs.content], tokens)

    def test_stops(self):
        cut = self.chat(stop=[" Paris", "never"]).choices[0]
        self.assertEqual((cut.message.content, cut.finish_reason, cut.stop_reason), ("The capital of France is", "stop", " Paris"))
        kept = self.said(stop=" Paris", extra_body={"include_stop_str_in_output": True})
        self.assertEqual(kept, "The capital of France is Paris")
        paris = self.post("tokenize", {"prompt": " Paris"})["tokens"]
        self.assertEqual(len(paris), 1)
        at_token = self.chat(extra_body={"stop_token_ids": paris}).choices[0]
        self.assertEqual((at_token.finish_reason, at_token.stop_reason), ("stop", paris[0]))
        self.assertEqual(self.streamed(stop=[" Paris"])[0], ["The capital of France is"])

    def test_max_completion_tokens(self):
        answer = self.chat(max_tokens=openai.omit, max_completion_tokens=3)
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 3))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(max_tokens=4, max_completion_tokens=3)
        self.assertEqual(caught.exception.param, "max_completion_tokens")

    def test_continue_final_message(self):
        begun = [*FRANCE, {"role": "assistant", "content": "The capital of France is"}]
        going_on = {"continue_final_message": True, "add_generation_prompt": False}
        self.assertTrue(self.said(messages=begun, extra_body=going_on).startswith(" Paris"))
        echoed = self.said(messages=begun, extra_body={**going_on, "echo": True})
        self.assertTrue(echoed.startswith("The capital of France is Paris"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(begun, extra_body={**going_on, "add_generation_prompt": True})
        self.assertEqual(caught.exception.param, "continue_final_message")

    def test_further_sampling_fields(self):
        greedy = self.said(messages=STORY)
        for only_one in ({"top_k": 1}, {"min_p": 1.0}):
            with self.subTest(only_one):
                self.assertEqual(self.said(messages=STORY, temperature=1, extra_body=only_one), greedy)
        self.assertEqual(self.said(messages=STORY, temperature=1, top_p=1e-6), greedy)
        self.assertNotEqual(self.said(messages=STORY, extra_body={"repetition_penalty": 2.0}), greedy)
        self.assertNotEqual(self.said(messages=STORY, frequency_penalty=2, presence_penalty=2), greedy)
        self.assertEqual(self.chat(extra_body={"ignore_eos": True}).usage.completion_tokens, 20)
        self.assertGreaterEqual(self.chat(extra_body={"min_tokens": 12}).usage.completion_tokens, 12)
        first, second = self.post("tokenize", {"prompt": "The La"})["tokens"]
        self.assertEqual(self.said(extra_body={"allowed_token_ids": [first]}), "The" * 20)
        self.assertFalse(self.said(logit_bias={str(first): -100}).startswith("The"))
        self.assertFalse(self.said(extra_body={"banned_token_ids": [first, second]}).startswith(("The", " La")))
        self.assertIn("<|im_end|>", self.said(extra_body={"ignore_eos": True, "skip_special_tokens": False}))
        self.assertEqual(self.chat(extra_body={"truncate_prompt_tokens": 9}).usage.prompt_tokens, 9)
        shown = self.chat(extra_body={"return_token_ids": True, "prompt_logprobs": 1, "priority": 1})
        self.assertEqual(len(shown.prompt_token_ids), shown.usage.prompt_tokens)
        self.assertEqual(len(shown.prompt_logprobs), shown.usage.prompt_tokens)
        self.assertEqual(len(shown.choices[0].token_ids), shown.usage.completion_tokens)
        salted = self.chat(extra_body={"cache_salt": "a tenant"})
        self.assertEqual(salted.usage.prompt_tokens_details.cached_tokens, 0)

    def test_messages_as_clients_send_them(self):
        mixed = [{"role": "developer", "content": "Answer in one sentence."},
                 {"role": "user", "content": [{"type": "text", "text": "Hello."}, {"type": "text", "text": "Who are you?"}]},
                 {"role": "assistant", "content": None, "refusal": None, "tool_calls": []},
                 {"role": "user", "content": "Go on.", "name": "ann"}]
        answer = self.client.chat.completions.with_raw_response.create(
            model=self.model, messages=mixed, max_tokens=4, user="ann", store=False, metadata={"a": "b"}, service_tier="auto",
            prompt_cache_key="k", safety_identifier="s", parallel_tool_calls=True,
            tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}], tool_choice="none")
        self.assertNotIn("x-whippet-ignored-fields", answer.headers)
        self.assertEqual(answer.parse().usage.completion_tokens, 4)


class Completions(ClientCase):
    def test_a_text_whole_and_streamed(self):
        answer = self.complete()
        self.assertTrue(answer.id.startswith("cmpl-"))
        self.assertTrue(answer.choices[0].text.startswith(" Paris"))
        chunks = list(self.complete(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(choice.text for chunk in chunks for choice in chunk.choices), answer.choices[0].text)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, answer.usage.completion_tokens)

    def test_several_prompts_as_texts_and_as_ids(self):
        texts = ["The capital of France is", "One, two, three,", "Once upon a time"]
        alone = [self.complete(text).choices[0].text for text in texts]
        ids = [self.post("tokenize", {"prompt": text})["tokens"] for text in texts]
        self.assertEqual(self.complete(ids[0]).choices[0].text, alone[0])
        for prompts in (texts, ids):
            answer = self.complete(prompts)
            self.assertEqual([(choice.index, choice.text) for choice in answer.choices], list(enumerate(alone)))
            self.assertEqual(answer.usage.prompt_tokens, sum(map(len, ids)))
        streamed = ["", "", ""]
        for chunk in self.complete(texts, stream=True):
            streamed[chunk.choices[0].index] += chunk.choices[0].text
        self.assertEqual(streamed, alone)
        twice = self.complete(texts[:2], n=2, temperature=1, seed=1)
        self.assertEqual([choice.index for choice in twice.choices], [0, 1, 2, 3])

    def test_echo_and_logprobs(self):
        prompt = "The capital of France is"
        self.assertTrue(self.complete(echo=True).choices[0].text.startswith(prompt + " Paris"))
        answer = self.complete(echo=True, logprobs=2, max_tokens=0)
        logprobs = answer.choices[0].logprobs
        self.assertEqual((answer.choices[0].text, "".join(logprobs.tokens)), (prompt, prompt))
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs[1:]))
        self.assertEqual(logprobs.text_offset, [prompt.index(token) for token in logprobs.tokens])
        self.assertEqual(answer.usage.completion_tokens, 0)

    def test_tokenize_and_detokenize(self):
        text = "Grüße aus 北京 👋"
        ids = self.post("tokenize", {"prompt": text})
        self.assertEqual(ids["count"], len(ids["tokens"]))
        self.assertEqual(self.post("detokenize", {"tokens": ids["tokens"]})["prompt"], text)
        chat = self.post("tokenize", {"messages": FRANCE})
        self.assertEqual(chat["count"], self.chat(max_tokens=1).usage.prompt_tokens)
        self.assertIn("<|im_start|>user", self.post("detokenize", {"tokens": chat["tokens"]})["prompt"])


class Errors(ClientCase):
    def refused(self, kind, call, *arguments, **options):
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        self.assertTrue(caught.exception.message)
        return caught.exception.param, caught.exception.code

    def test_bad_requests_name_the_field(self):
        image = [{"role": "user", "content": [{"type": "text", "text": "What is it?"},
                                              {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]
        for param, code, options in (
                ("temperature", "invalid_value", {"temperature": -1}),
                ("top_p", "invalid_value", {"top_p": 2}),
                ("n", "invalid_value", {"n": 0}),
                ("max_tokens", None, {"max_tokens": -1}),
                ("top_k", "invalid_type", {"top_k": "many"}),
                ("messages", "missing_required_parameter", {"messages": None}),
                ("messages[0].role", None, {"messages": [{"role": "king", "content": "Hello"}]}),
                ("messages[0].content[1]", "unsupported_parameter", {"messages": image}),
                ("messages", "context_length_exceeded", {"messages": [{"role": "user", "content": "dog " * 9000}]}),
                ("messages", "context_length_exceeded", {"max_tokens": 9000}),
                ("response_format.type", "invalid_value", {"response_format": {"type": "yaml"}}),
                ("stream_options", None, {"stream_options": {"include_usage": True}}),
        ):
            with self.subTest(param):
                found = self.refused(openai.BadRequestError, self.post, "v1/chat/completions", {"messages": FRANCE, **options})
                self.assertEqual((found[0], code and found[1]), (param, code))
        self.assertEqual(self.refused(openai.BadRequestError, self.complete, suffix="the end"), ("suffix", "unsupported_parameter"))

    def test_what_is_not_served_names_what_is(self):
        for call in (lambda: self.client.responses.create(model=self.model, input="Hello"),
                     lambda: self.client.embeddings.create(model=self.model, input="Hello")):
            with self.assertRaises(openai.NotFoundError) as caught:
                call()
            self.assertIn("/v1/chat/completions", caught.exception.message)

    def test_unknown_fields_come_back_in_a_header(self):
        for stream in (False, True):
            answer = self.client.chat.completions.with_raw_response.create(
                model=self.model, messages=FRANCE, max_tokens=2, stream=stream, extra_body={"mirostat": 2, "typical_p": 1})
            self.assertEqual(answer.headers["x-whippet-ignored-fields"], "mirostat, typical_p")
            answer.http_response.close()

    def test_a_deadline_is_an_error_whole_and_streamed(self):
        late = {"max_tokens": 4000, "extra_body": {"ignore_eos": True, "timeout": 0.3}}
        with self.assertRaises(openai.APIStatusError) as caught:
            self.chat(STORY, **late)
        self.assertEqual((caught.exception.status_code, caught.exception.code), (504, "timeout"))
        begun = False
        with self.assertRaises(openai.APIError) as caught:
            for chunk in self.chat(STORY, stream=True, **late):
                begun = True
                self.assertNotEqual(chunk.choices[0].finish_reason, "length")
        self.assertTrue(begun)
        self.assertEqual(caught.exception.code, "timeout")
        until_idle(self.address)

    def test_a_client_that_gives_up_stops_its_request(self):
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=0.3).chat.completions.create(model=self.model, messages=STORY, **ENDLESS)
        until_idle(self.address)


class Streams(ClientCase):
    def test_closing_a_stream_stops_its_request(self):
        stopped = until_idle(self.address)["finished"]["abort"]
        with self.chat(STORY, stream=True, **ENDLESS) as stream:
            for _, _ in zip(range(3), stream):
                pass
        self.assertEqual(until_idle(self.address)["finished"]["abort"], stopped + 1)

    def test_64_streams_at_once_each_say_what_they_say_alone(self):
        asked = [[{"role": "user", "content": f"Tell me about the number {i} and {'its ' * (i % 5)}history."}] for i in range(16)]
        alone = [self.said(messages=messages, max_tokens=12) for messages in asked]
        self.assertGreater(len(set(alone)), 8)

        async def read(client, messages):
            stream = await client.chat.completions.create(model=self.model, messages=messages, temperature=0, max_tokens=12, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        async def read_all():
            async with openai.AsyncOpenAI(base_url=self.address + "v1", api_key="none", max_retries=0) as client:
                return await asyncio.gather(*(read(client, messages) for messages in asked * 4))

        self.assertEqual(asyncio.run(read_all()), alone * 4)

    def test_cancelling_a_task_stops_its_request(self):
        async def start_and_cancel():
            async with openai.AsyncOpenAI(base_url=self.address + "v1", api_key="none", max_retries=0) as client:
                task = asyncio.create_task(client.chat.completions.create(model=self.model, messages=STORY, **ENDLESS))
                await asyncio.sleep(0.2)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(start_and_cancel())
        until_idle(self.address)


class Guarded(unittest.TestCase):
    """A server with keys, names of its own, variables for its template, and strict."""

    @classmethod
    def setUpClass(cls):
        template = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        cls.addClassCleanup(template.close)
        template.write("{% for message in messages %}{{ message.content }}{% endfor %} {{ ending }}")
        template.flush()
        address, why_not = serve(cls, BINARY, free_port(), "--api-key", "first", "--api-key", "second", "--strict-fields",
                                 "--served-model-name", "lab/small", "--served-model-name", "other",
                                 "--chat-template", template.name, "--chat-template-kwargs", '{"ending": "by default"}')
        if not address:
            raise unittest.SkipTest(why_not)
        cls.client = openai.OpenAI(base_url=address + "v1", api_key="second", max_retries=0)
        cls.addClassCleanup(cls.client.close)
        cls.address = address

    def test_a_key_is_needed_and_any_of_them_opens(self):
        self.client.with_options(api_key="first").models.list()
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.client.with_options(api_key="third").models.list()
        self.assertEqual(caught.exception.status_code, 401)

    def test_every_name_is_served(self):
        self.assertEqual([model.id for model in self.client.models.list().data], ["lab/small", "other"])
        for name in ("lab/small", "other"):
            self.assertEqual(self.client.models.retrieve(name).id, name)
            self.assertEqual(self.client.completions.create(model=name, prompt="One, two,", max_tokens=1).model, name)

    def test_strict_fields(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="other", prompt="One", max_tokens=1, extra_body={"top_kk": 1})
        self.assertEqual((caught.exception.param, caught.exception.code), ("top_kk", "unknown_parameter"))

    def test_chat_template_kwargs_of_the_server_and_of_the_request(self):
        for kwargs, expected in ((None, "Hello by default"), ({"ending": "on request"}, "Hello on request")):
            asked = {"model": "other", "messages": [{"role": "user", "content": "Hello"}], "chat_template_kwargs": kwargs}
            client = self.client.with_options(base_url=self.address)
            ids = client.post("tokenize", cast_to=object, body=asked)["tokens"]
            self.assertEqual(client.post("detokenize", cast_to=object, body={"model": "other", "tokens": ids})["prompt"], expected)
            answer = self.client.chat.completions.create(model="other", messages=asked["messages"], max_tokens=1,
                                                         extra_body={"chat_template_kwargs": kwargs})
            self.assertEqual(answer.usage.prompt_tokens, len(ids))


class LangChain(ClientCase):
    def setUp(self):
        self.llm = ChatOpenAI(base_url=self.address + "v1", api_key="none", model=self.model, temperature=0, max_tokens=20,
                              stream_usage=True)

    def test_invoke_stream_and_batch(self):
        question = FRANCE[0]["content"]
        answer = self.llm.invoke(question)
        self.assertEqual(answer.content, self.said())
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        chunks = list(self.llm.stream(question))
        self.assertEqual("".join(chunk.content for chunk in chunks), answer.content)
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        self.assertEqual(whole.usage_metadata["output_tokens"], answer.usage_metadata["output_tokens"])
        others = ["Name a colour.", question, "What is two plus two?"]
        self.assertEqual([one.content for one in self.llm.batch(others)], [self.llm.invoke(other).content for other in others])
        stopped = self.llm.bind(stop=[" Paris"]).invoke([("system", "Be brief."), ("human", question)])
        self.assertNotIn("Paris", stopped.content)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
