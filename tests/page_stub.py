"""Plays the server for the page: static files, /v1/models, streamed chats, /stats, /health. Standard library only.

Usage: page_stub.py [PORT]; page_test.py starts it in its own process. What it answers is chosen by the last message:
see answer_of().
"""

import http.server
import itertools
import json
import pathlib
import socket
import sys
import threading
import time

WEB = pathlib.Path(__file__).resolve().parent.parent / "web"
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml; charset=utf-8"}

PROSE = """A clear sky is blue because **air scatters short waves** of light more than long ones.

1. Sunlight holds all colours.
2. Molecules of air send blue light into every direction; this is *Rayleigh scattering*.
   - Its strength grows with the fourth power of the frequency.
   - Violet is scattered even more, but our eyes see less of it.
3. At sunset the way through the air is long, and what remains is red.

> The intensity goes as `1 / λ⁴`.

| colour | wavelength | scattered |
| --- | ---: | ---: |
| red | 700 nm | 1.0 |
| green | 550 nm | 2.6 |
| blue | 450 nm | 5.9 |

```python
def scattering(wavelength_nm, reference=700):
    \"\"\"How much more than red light.\"\"\"
    return (reference / wavelength_nm) ** 4  # Rayleigh

for name, nm in {"green": 550, "blue": 450}.items():
    print(f"{name}: {scattering(nm):.1f}")
```

More in [an encyclopedia](https://en.wikipedia.org/wiki/Rayleigh_scattering).
"""
CHINESE = "天空是蓝色的，因为**空气对短波光的散射更强**。\n\n1. 阳光包含所有颜色。\n2. 空气分子把蓝光散射到各个方向，这叫*瑞利散射*。\n3. 日落时光程更长，剩下的是红光。\n"
HOSTILE = """<img src=x onerror="window.hacked = 1"> <script>window.hacked = 2</script>

[click](javascript:window.hacked=3) [data](data:text/html,<script>1</script>) [good](https://example.org/a_(b))
![beacon](https://example.org/beacon.png) [x](vbscript:1) [y]( javascript:alert(1)) [z](//example.org) <https://example.org>
[j](java\tscript:alert(1)) [q](https://example.org/"onmouseover="window.hacked=4)

````md
```js
<b>inside</b>
```
````
"""


def pieces_of(text, size=4):
    return [text[i:i + size] for i in range(0, len(text), size)]


class Thought(str):
    """A piece of an answer's thinking."""


THOUGHTS = [Thought(piece) for piece in pieces_of("The user greets me.\n\nA <b>short</b> answer will do: one sentence, and a friendly one.")]


class State:
    """What the server counts, and what a test tells it."""

    def __init__(self, key=None):
        self.key = key
        self.delay = 0.004       # seconds between two pieces
        self.down = False        # every connection is cut without an answer
        self.gate = None         # an Event that a "slow" answer waits for after its first piece
        self.bodies = []         # of chat requests
        self.cancelled = threading.Event()
        self.lock = threading.Lock()
        self.running = self.generated = self.prompts = self.requests = self.steps = 0
        self.history = []        # seconds to first tokens

    def stats(self):
        with self.lock:
            self.steps += self.running
            count = len(self.history)
            mean = sum(self.history) / count if count else 0
            spread = {"count": count, "mean": mean, "p50": mean, "p90": mean, "p99": mean * 2}
            tokens = {"count": self.generated, "mean": self.delay, "p50": self.delay, "p90": self.delay, "p99": self.delay}
            used = min(512, 20 * self.running + (16 if self.running else 0))
            return {
                "running": self.running, "waiting": 0, "preemptions": 0, "steps": self.steps + self.generated,
                "requests": self.requests, "rejected": 0,
                "finished": {"stop": self.requests - self.running, "length": 0, "abort": 0, "timeout": 0, "error": 0},
                "prompt_tokens": self.prompts, "generation_tokens": self.generated,
                "prompt_tokens_per_second": 0, "generation_tokens_per_second": 0, "kv_usage": used / 512,
                "num_blocks": 512, "used_blocks": used, "cached_blocks": min(512, 4 * self.requests),
                "prefix_queries": self.prompts, "prefix_hits": self.prompts * 2 // 3,
                "step_prefill_tokens": 37 * (self.requests % 2), "step_decode_tokens": self.running,
                "ttft_seconds": spread, "inter_token_seconds": tokens, "e2e_seconds": spread,
                "queue_seconds": spread, "step_seconds": tokens, "step_tokens": tokens,
                "memory": {"weight_bytes": 96576768, "kv_cache_bytes": 100663296}}


def answer_of(text):
    """The pieces of the answer to a message."""
    known = {"hostile": pieces_of(HOSTILE), "long line": ["x" * 100_000], "chinese": pieces_of(CHINESE, 1),
             "slow": ["one ", "two ", "three"], "half fence": ["Look:\n\n```py", "thon\nprint(1)\n", "print(2)"],
             "think": THOUGHTS + ["Hello! ", "How can ", "I help?"], "think on": THOUGHTS, "think slowly": THOUGHTS + ["Done."],
             "short": ["Yes."], "nothing": [], "endless": itertools.repeat("word ")}
    return known.get(text, pieces_of(PROSE))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def cut(self):
        if self.server.state.down:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        return self.server.state.down

    def refused(self):
        state = self.server.state
        if state.key and self.headers.get("Authorization") != f"Bearer {state.key}":
            self.send(401, {"error": {"message": "Wrong key", "type": "invalid_request_error", "code": "invalid_api_key"}})
            return True
        return False

    def do_GET(self):
        if self.cut():
            return
        path = self.path.split("?")[0]
        file = WEB / (path.lstrip("/") or "index.html")
        if file.parent == WEB and file.is_file():
            self.send(200, file.read_bytes(), TYPES[file.suffix])
        elif path == "/health":
            self.send(200, {})
        elif self.refused():
            pass
        elif path == "/v1/models":
            self.send(200, {"object": "list", "data": [{"id": "SmolLM2-135M-Instruct", "object": "model", "max_model_len": 8192}]})
        elif path == "/stats":
            self.send(200, self.server.state.stats())
        elif path == "/version":
            self.send(200, {"version": "0.1.0"})
        else:
            self.send(404, {"error": {"message": f"no {path} here", "code": None}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.cut() or self.refused():
            return
        state = self.server.state
        state.bodies.append(body)
        text = body["messages"][-1]["content"]
        if text == "too long":
            self.send(400, {"error": {"message": "8193 tokens", "code": "context_length_exceeded"}})
        elif text == "refuse":
            self.send(400, {"error": {"message": "temperature: 9 is outside 0 to 2", "code": None}})
        else:
            self.stream(text, answer_of(text))

    def event(self, data):
        data = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def stream(self, text, pieces):
        state = self.server.state
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with state.lock:
            state.running += 1
            state.requests += 1
            state.prompts += 42
            state.history.append(0.02)
        try:
            self.write_events(text, pieces)
        except OSError:
            state.cancelled.set()
        finally:
            with state.lock:
                state.running -= 1

    def write_events(self, text, pieces):
        state = self.server.state
        self.wfile.write(b": hold the line\n\n")
        self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        for i, piece in enumerate(pieces):
            if text == "break" and i == 3:
                return
            if text == "fail" and i == 3:
                return self.event({"error": {"message": "The deadline passed.", "type": "timeout", "code": "timeout"}})
            if text in ("slow", "half fence", "think slowly") and i == len(pieces) - 1:
                # Writes comments meanwhile, so that a client that has gone is noticed.
                while state.gate and not state.gate.wait(0.05):
                    self.wfile.write(b": wait\n\n")
            thought = {"reasoning_content": piece, "reasoning": piece}
            self.event({"choices": [{"index": 0, "delta": thought if isinstance(piece, Thought) else {"content": piece}}]})
            with state.lock:
                state.generated += 1
            time.sleep(state.delay)
        reason = "length" if text in ("cut", "think on") else "stop"
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self.event({"choices": [], "usage": {"prompt_tokens": 42, "completion_tokens": len(pieces),
                                             "prompt_tokens_details": {"cached_tokens": 27}}})
        self.event("[DONE]")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0, key=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.state = State(key)

    def handle_error(self, *_):
        pass  # a browser that goes away is no news

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


if __name__ == "__main__":
    server = Server(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
    print(server.url, flush=True)
    server.serve_forever()
