"""Requests as programs send them, byte for byte without any package: chat applications' recorded shapes over
http.client, curl, and `whippet bench serve`, against `whippet serve` with the default model.

Usage: client_shapes_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import http.client
import http.server
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from page_testing import free_port
from serving import serve

BINARY = pathlib.Path(sys.argv[2]).resolve()
ASKED = {"role": "user", "content": "What is the capital of France?"}
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
PARTS = [{"type": "text", "text": "What is the capital of France?"}]
USAGE = {"stream_options": {"include_usage": True}}
# What each sends, and which fields of it mean nothing here.
CHATS = {
    "Open WebUI, a chat": ({"stream": True, "messages": [ASKED], **USAGE}, ""),
    "Open WebUI, a chat with all its settings": (
        {"stream": True, "messages": [SYSTEM, ASKED], "temperature": 0.8, "top_k": 40, "top_p": 0.9, "min_p": 0, "seed": 0,
         "stop": ["</s>"], "frequency_penalty": 1.1, "presence_penalty": 0, "repeat_penalty": 1.1, "mirostat": 0, "num_ctx": 2048,
         "max_tokens": 16, "logit_bias": {"100": -100}}, "repeat_penalty, mirostat, num_ctx"),
    "Open WebUI, a title": (
        {"stream": False, "max_completion_tokens": 16,
         "messages": [{"role": "user", "content": "### Task:\nGenerate a concise, 3-5 word title.\n### Output:\nJSON format: { \"title\": \"\" }"}]}, ""),
    "LibreChat": (
        {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "user": "65f1c0ffee", "stream": True, **USAGE,
         "messages": [SYSTEM, {"role": "user", "content": PARTS}]}, ""),
    "LibreChat, an answer before": (
        {"temperature": 1, "stream": True, "messages": [{"role": "user", "content": PARTS},
                                                        {"role": "assistant", "content": [{"type": "text", "text": "Paris."}]}, ASKED]}, ""),
    "LangChain for JavaScript, n8n": (
        {"temperature": 0.7, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "n": 1, "stream": False, "messages": [ASKED]}, ""),
    "Vercel AI SDK": (
        {"max_tokens": 16, "temperature": 0, "messages": [{"role": "developer", "content": "Be brief."}, ASKED], "stream": True, **USAGE}, ""),
    "an editor with tools": (
        {"messages": [SYSTEM, {"role": "user", "content": PARTS}], "temperature": 0, "max_completion_tokens": 16, "stream": True, **USAGE,
         "parallel_tool_calls": False, "tool_choice": "auto",
         "tools": [{"type": "function", "function": {"name": "read_file", "description": "Reads a file", "strict": True,
                                                     "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]}, ""),
    "a tool's answer": (
        {"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{\"of\": \"France\"}"}}]},
                      {"role": "tool", "tool_call_id": "call_1", "content": "Paris"}], "max_tokens": 8}, ""),
    "the newest fields of OpenAI's": (
        {"messages": [{**ASKED, "name": "ann"}], "max_completion_tokens": 8, "store": True, "metadata": {"a": "b"}, "service_tier": "auto",
         "prompt_cache_key": "k", "safety_identifier": "s", "modalities": ["text"], "response_format": {"type": "text"}, "reasoning_effort": "low",
         "verbosity": "low", "stop": None, "audio": None, "functions": None, "logit_bias": {}, "seed": None}, "verbosity"),
}
COMPLETIONS = {
    "lm-evaluation-harness": ({"prompt": [[504, 3575, 282], [504]], "max_tokens": 1, "logprobs": 1, "temperature": 0, "seed": 1234, "echo": True}, ""),
    "SillyTavern": (
        {"prompt": "Once upon a time", "max_new_tokens": 8, "max_tokens": 8, "temperature": 1, "top_p": 1, "typical_p": 1, "min_p": 0, "top_k": -1,
         "repetition_penalty": 1, "frequency_penalty": 0, "presence_penalty": 0, "min_tokens": 0, "length_penalty": 1, "early_stopping": False,
         "add_bos_token": True, "skip_special_tokens": True, "n": 1, "stop": ["\nYou:"], "stream": True},
        "max_new_tokens, typical_p, length_penalty, early_stopping, add_bos_token"),
    "an editor's completion": ({"prompt": "def add(a, b):", "max_tokens": 8, "temperature": 0.01, "stop": ["\n\n", "```"], "stream": True, "suffix": ""}, ""),
}


def texts_of(events):
    """The texts of the choices of a streamed answer."""
    texts = {}
    for event in events:
        for choice in event["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + (choice.get("text") or choice.get("delta", {}).get("content") or "")
    return texts


def events_of(body):
    events = re.findall(r"^data: (.*)\n\n", body, re.M)
    if events[-1:] != ["[DONE]"]:
        raise AssertionError(f"a stream without its end: {body[-300:]}")
    return [json.loads(event) for event in events[:-1]]


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.address, why_not = serve(cls, BINARY, free_port(), "--served-model-name", "smollm2:135m")
        if not cls.address:
            raise unittest.SkipTest(why_not)
        cls.port = int(cls.address.rsplit(":", 1)[1].strip("/"))

    def send(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", path, json.dumps({"model": "smollm2:135m", **body}),
                           {"Content-Type": "application/json; charset=utf-8", "Accept": "text/event-stream, application/json",
                            "Authorization": "Bearer sk-anything", "X-Stainless-Lang": "js", "Accept-Encoding": "gzip, deflate, br"})
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        self.assertEqual(answer.status, 200, said)
        return answer, said

    def check(self, path, shapes):
        for client, (body, ignored) in shapes.items():
            with self.subTest(client):
                body = {"max_tokens": 12, **body} if "max_completion_tokens" not in body else body
                answer, said = self.send(path, body)
                self.assertEqual(answer.getheader("x-whippet-ignored-fields", ""), ignored)
                kind = "text/event-stream" if body.get("stream") else "application/json"
                self.assertTrue(answer.getheader("content-type").startswith(kind))
                if not body.get("stream"):
                    self.assertGreater(json.loads(said)["usage"]["total_tokens"], 0)
                    continue
                events = events_of(said)
                self.assertEqual([event["model"] for event in events], ["smollm2:135m"] * len(events))
                self.assertIn([choice["finish_reason"] for event in events for choice in event["choices"]][-1], ("stop", "length"))
                self.assertEqual("usage" in events[-1], "stream_options" in body)

    def test_chats(self):
        self.check("/v1/chat/completions", CHATS)

    def test_completions(self):
        self.check("/v1/completions", COMPLETIONS)


class Curl(Shapes):
    test_chats = test_completions = None

    def setUp(self):
        if not shutil.which("curl"):
            self.skipTest("no curl")

    def curl(self, path, *arguments, body=None):
        command = ["curl", "-sS", "--fail-with-body", "--max-time", "120", *arguments, self.address + path]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
        return subprocess.run(command, input=json.dumps(body) if body else None, capture_output=True, text=True, check=True).stdout

    def test_whole_and_streamed_in_every_framing(self):
        body = {"messages": [ASKED], "temperature": 0, "max_tokens": 12}
        whole = json.loads(self.curl("v1/chat/completions", body=body))["choices"][0]["message"]["content"]
        self.assertIn("Paris", whole)
        for framing in ([], ["--http1.0"], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--compressed"]):
            with self.subTest(framing):
                answer = json.loads(self.curl("v1/chat/completions", *framing, body=body))
                self.assertEqual(answer["choices"][0]["message"]["content"], whole)
                streamed = self.curl("v1/chat/completions", "-N", *framing, body={**body, "stream": True})
                self.assertEqual(texts_of(events_of(streamed)), {0: whole})

    def test_a_head_without_its_body(self):
        self.assertRegex(self.curl("health", "--head"), "^HTTP/1.1 200 OK\n")


class PlainServer(http.server.BaseHTTPRequestHandler):
    """What another server may be like: no field beyond OpenAI's, no usage, other ends of line, an end with the
    connection's, errors now and then."""

    asked = itertools.count(-1)  # the first is the one that finds out what the server knows

    def do_GET(self):
        self.answer(200, b'{"object":"list","data":[{"id":"plain"}]}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer sk-1":
            return self.answer(401, b'{"error":{"message":"who are you?"}}')
        if "ignore_eos" in body:
            return self.answer(400, b'{"error":{"message":"Unrecognized request argument supplied: ignore_eos"}}')
        text = b': hello\r\n\r\ndata: {"choices":[{"delta":{"content":"a"}}]}\r\n\r\n'
        number = next(PlainServer.asked)
        if number == 2:
            return self.answer(429, b"slow down")
        ends = {4: b"", 6: b'data: {"error":{"message":"overloaded"}}\r\n\r\n'}
        return self.answer(200, text * 2 + ends.get(number, b"data: [DONE]\r\n\r\n"))

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Bench(Shapes):
    test_chats = test_completions = None

    def bench(self, *arguments, code=0):
        command = [BINARY, "bench", "serve", "--base-url", self.address, "--output-len", "6", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def test_both_routes_are_measured(self):
        for endpoint in ("chat", "completions"):
            report = json.loads(self.bench("--endpoint", endpoint, "--num-prompts", "6", "--max-concurrency", "3", "--num-warmups", "1",
                                           "--random-input-len", "20", "--json").stdout)
            self.assertEqual((report["completed"], report["failed"], report["errors"]), (6, 0, {}))
            self.assertEqual((report["model_id"], report["total_output_tokens"]), ("smollm2:135m", 36))
            self.assertGreaterEqual(report["total_input_tokens"], 6 * 20)
            for measure in ("ttft", "tpot", "itl", "e2el"):
                shares = [report[f"{share}_{measure}_ms"] for share in ("p50", "p90", "p99")]
                self.assertTrue(0 < shares[0] <= shares[1] <= shares[2], shares)
            self.assertLess(report["p50_ttft_ms"], report["p50_e2el_ms"])
            self.assertAlmostEqual(report["output_throughput"], 36 / report["duration"], places=6)

    def test_a_prompt_file_at_a_rate_with_errors_by_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            prompts = pathlib.Path(folder, "prompts.jsonl")
            lines = [{"prompt": "Hello"}, {"messages": [ASKED]}, {"prompt": "dog " * 9000}, {"turns": ["Name a colour.", "And another."]}]
            prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
            saved = pathlib.Path(folder, "report.json")
            done = self.bench("--prompts", str(prompts), "--num-prompts", "8", "--request-rate", "50", "--seed", "3", "--save", str(saved))
            report = json.loads(saved.read_text())
        self.assertEqual((report["completed"], report["errors"], report["request_rate"]), (6, {"HTTP 400": 2}, 50))
        self.assertRegex(done.stdout, r"(?s)6 answers in .* 2 failed.*HTTP 400 +2\n.*time to first token")

    def test_a_server_that_knows_less(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PlainServer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        arguments = ["--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--api-key", "sk-1", "--num-prompts", "9", "--json"]
        done = self.bench(*arguments)
        self.assertIn("does not know ignore_eos", done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["model_id"], report["completed"], report["total_output_tokens"], report["ignore_eos"]), ("plain", 6, 12, False))
        self.assertEqual(report["errors"], {"HTTP 429": 1, "answer cut off": 1, "error in the stream": 1})
        self.assertIn("HTTP 401", self.bench(*arguments, "--model", "plain", "--api-key", "none", code=1).stderr)

    def test_what_cannot_be_measured_is_said(self):
        self.assertIn("the model 'nobody' does not exist", self.bench("--model", "nobody", code=1).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
