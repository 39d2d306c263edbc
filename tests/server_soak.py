"""A real model served while clients misbehave: they hang up in the queue, in the prompt and in the answer, send what is
no HTTP or no JSON, read slowly or not at all, send too much, or half and then nothing. Beside them others behave, and
every complete answer they get must be the one that the same request gets alone. At the end nothing runs, waits or holds
a block, memory has not grown, and SIGTERM lets the last stream end before the process exits with 0.

Usage: server_soak.py BINARY [unittest's arguments]; WHIPPET_SOAK_SECONDS (60) says how long.
"""

import collections
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

from page_testing import free_port
from serving import missing, start, stats, until_idle

BINARY = pathlib.Path(sys.argv[1]).resolve()
SECONDS = float(os.environ.get("WHIPPET_SOAK_SECONDS", "60"))
BEHAVED, RUDE = 8, 3  # threads
MOST_GROWTH = 32 << 20  # bytes of resident memory, from a third of the time to the end
MOST_HELD = 6  # half-open connections a thread
WORDS = "the dog went over a long road to find water and some light in an old house near the sea".split()
# Little memory, so that sequences are preempted, and that all of it is in use before its growth is measured.
ARGUMENTS = ("--max-model-len", "2048", "--kv-cache-memory", "64MiB", "--max-num-seqs", "16", "--max-queued-requests", "256",
             "--header-timeout", "4", "--body-timeout", "5", "--write-timeout", "4", "--shutdown-timeout", "300",
             "--log-level", "warning")
LAST = {"prompt": "Once upon a time", "max_tokens": 80, "temperature": 0, "ignore_eos": True}


def text(count, chance):
    return " ".join(chance.choice(WORDS) for _ in range(count))


def well_behaved_requests():
    """(path, body) of requests whose answers depend on nothing but themselves."""
    chance = random.Random(7)
    requests = []
    for i in range(12):
        body = {"max_tokens": chance.randrange(2, 30), "temperature": chance.choice([0, 0.9]), "seed": i}
        if i % 4 == 1:
            body |= {"stop": ["the", "\n"]}
        if i % 4 == 2:
            body |= {"n": 2}
        words = chance.choice([5, 20, 100, 300])
        if i % 2:
            body |= {"messages": [{"role": "user", "content": text(words, chance)}], "logprobs": i % 3 == 0}
            requests.append(("/v1/chat/completions", body))
        else:
            body |= {"prompt": text(words, chance), "echo": i % 3 == 0}
            requests.append(("/v1/completions", body))
    return requests


def gist(choice):
    """What must be equal of an answer's choice, streamed or whole."""
    message = choice.get("message") or {}
    tokens = [(token["token"], token["logprob"]) for token in (choice.get("logprobs") or {}).get("content") or []]
    return choice.get("text") or message.get("content") or "", tokens, choice["finish_reason"], choice.get("stop_reason")


def gists_of_stream(body):
    choices = collections.defaultdict(lambda: ["", [], None, None])
    events = [line[6:] for line in body.split("\n") if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        raise AssertionError(f"a stream without its end: {body[-300:]}")
    for event in map(json.loads, events[:-1]):
        if "error" in event:
            raise AssertionError(f"a stream with an error: {event}")
        for choice in event["choices"]:
            so_far = choices[choice["index"]]
            so_far[0] += choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            so_far[1] += [(token["token"], token["logprob"]) for token in (choice.get("logprobs") or {}).get("content") or []]
            so_far[2:] = [choice["finish_reason"] or so_far[2], choice.get("stop_reason") or so_far[3]]
    return [tuple(choices[index]) for index in sorted(choices)]


def ask(connection, path, body, stream):
    """The gists of the choices of the whole answer."""
    connection.request("POST", path, json.dumps({**body, "stream": stream}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = answer.read().decode()
    if answer.status != 200:
        raise AssertionError(f"{answer.status} for {body}: {said}")
    return gists_of_stream(said) if stream else [gist(choice) for choice in json.loads(said)["choices"]]


class RudeClient:
    """Everything that a client should not do, one thing at a time."""

    def __init__(self, port, chance, counts):
        self.port, self.chance, self.counts = port, chance, counts
        self.held = collections.deque()

    def act(self):
        name = self.chance.choice(["in_queue", "in_prompt", "in_answer", "no_json", "no_http", "slow_reader", "too_large", "half_open"])
        getattr(self, name)()
        self.counts[name] += 1

    def connect(self, receive_buffer=0):
        peer = socket.socket()
        if receive_buffer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        peer.settimeout(600)
        peer.connect(("127.0.0.1", self.port))
        return peer

    def hang_up(self, peer):
        if self.chance.random() < 0.5:  # a reset instead of a polite end
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    def post(self, body, path="/v1/completions", headers=""):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
        return head.encode() + data

    def long_request(self, words, **more):
        return {"prompt": text(words, self.chance), "max_tokens": 400, "ignore_eos": True, "stream": self.chance.random() < 0.7, **more}

    def status(self, sent, ends=False):
        """Of the answer; 0 where the connection ends without one. `ends`: nothing more is said after `sent`."""
        peer = self.connect()
        try:
            peer.sendall(sent)
            if ends:
                peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all was sent: the answer is there all the same
        head = b""
        try:
            while b"\r\n" not in head and (piece := peer.recv(4096)):
                head += piece
        except ConnectionError:
            pass
        peer.close()
        return int(head.split()[1]) if head.startswith(b"HTTP/1.") else 0

    # Hanging up.

    def in_queue(self):
        peers = [self.connect() for _ in range(self.chance.randrange(1, 12))]
        for peer in peers:
            peer.sendall(self.post(self.long_request(8)))
        for peer in peers:
            self.hang_up(peer)

    def in_prompt(self):
        peer = self.connect()
        peer.sendall(self.post(self.long_request(800)))
        time.sleep(self.chance.random() * 0.3)
        self.hang_up(peer)

    def in_answer(self):
        peer = self.connect()
        peer.sendall(self.post(self.long_request(8, stream=True, n=self.chance.randrange(1, 4))))
        for _ in range(self.chance.randrange(1, 6)):
            if not peer.recv(512):
                raise AssertionError("a stream ended before its time")
        self.hang_up(peer)

    # Nonsense.

    def no_json(self):
        good = json.dumps({"prompt": "Hello", "max_tokens": 2, "n": 1}).encode()
        cut = self.chance.randrange(1, len(good))
        body = self.chance.choice([
            good[:cut], good[:cut] + self.chance.randbytes(3) + b"\xff", self.chance.randbytes(200), b"[" * 100_000, b"{\"a\":" * 50_000,
            b"", b"null", b"[]", b"{}", b'{"prompt": "' + b"\xff\xfe" + b'"}', b'{"prompt": 7}', b'{"prompt": ["a", 7]}',
            b'{"prompt": [-1]}', b'{"prompt": "a", "max_tokens": 1e999}', b'{"prompt": "a", "n": 99999999999999999999}',
            b'{"prompt": "a", "logit_bias": {"x": 1}}', b'{"prompt": "a", "stop": [[]]}', b'{"prompt": "' + b"dog " * 200_000 + b'"}'])
        status = self.status(self.post(body))
        if status != 400:
            raise AssertionError(f"{status} for the body {body[:200]}")

    def no_http(self):
        body = self.post({"prompt": "Hello", "max_tokens": 2})
        sent = self.chance.choice([
            self.chance.randbytes(300), b"\r\n" * 50 + b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET  /\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
            body.replace(b"Content-Length: ", b"Content-Length: -"), body.replace(b"Content-Length: ", b"Content-Length: 9" * 1 + b"9" * 30),
            body.replace(b"Host:", b"Content-Length: 3\r\nHost:"), body.replace(b"Host:", b"Transfer-Encoding: chunked\r\nHost:"),
            b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", b"GET / HTTP/1.1\r\nA" + b"a" * 200_000,
            b"GET /" + b"a" * 200_000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%00%2e%2e/ HTTP/1.1\r\nHost: localhost\r\n\r\n"])
        status = self.status(sent, ends=True)
        if status != 0 and not 400 <= status < 600:
            raise AssertionError(f"{status} for {sent[:200]}")

    def too_large(self):
        chunked = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        sent = self.chance.choice([
            self.post(b"x" * (9 << 20)), chunked + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 140 + b"0\r\n\r\n",
            self.post(b"").replace(b"Length: 0", b"Length: 99999999999")])
        status = self.status(sent)
        if status not in (0, 413):
            raise AssertionError(f"{status} for a body that is too large")

    # Slowness.

    def hold(self, peer):
        self.held.append(peer)
        if len(self.held) > MOST_HELD:
            self.hang_up(self.held.popleft())

    def slow_reader(self):
        peer = self.connect(receive_buffer=2048)
        wide = self.long_request(self.chance.choice([8, 150]), stream=True, logprobs=20, echo=True, n=2)
        peer.sendall(self.post(wide))
        if self.chance.random() < 0.5:
            for _ in range(20):
                time.sleep(0.01)
                if not peer.recv(64):
                    break
        self.hold(peer)

    def half_open(self):
        whole = self.post({"prompt": "Hello", "max_tokens": 2})
        peer = self.connect()
        peer.sendall(whole[:self.chance.randrange(len(whole))])
        self.hold(peer)

    def leave(self):
        while self.held:
            self.hang_up(self.held.popleft())


class Soak(unittest.TestCase):
    def setUp(self):
        why_not = missing(BINARY)
        if why_not:
            self.skipTest(why_not)
        self.log = tempfile.TemporaryFile("w+")
        self.addCleanup(self.log.close)
        self.port = free_port()
        self.server, self.address = start(BINARY, self.port, self.log, *ARGUMENTS)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        self.requests = well_behaved_requests()
        self.stopping = threading.Event()
        self.trouble = []
        self.counts = collections.Counter()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def guarded(self, act, chance):
        """act(chance) over and over, until the end or the first trouble."""
        try:
            while not self.stopping.is_set():
                act(chance)
        except Exception as error:
            if self.server.poll() is None or not self.trouble:
                self.trouble.append(f"{type(error).__name__}: {error}")
            self.stopping.set()

    def behave(self, chance):
        connection = self.connection()
        for _ in range(chance.randrange(1, 6)):
            if self.stopping.is_set():
                break
            which, stream = chance.randrange(len(self.requests)), chance.random() < 0.6
            path, body = self.requests[which]
            found = ask(connection, path, body, stream)
            if found != self.alone[which]:
                raise AssertionError(f"{body}: {found} is not what it is alone: {self.alone[which]}")
            self.counts["complete answers"] += 1
        connection.close()

    def run_rude(self, chance):
        client = RudeClient(self.port, chance, self.counts)
        self.guarded(lambda _: client.act(), chance)
        client.leave()

    def resident(self):
        return stats(self.address)["memory"]["resident_bytes"]

    def soak(self, seed):
        threads = [threading.Thread(target=self.guarded, args=(self.behave, random.Random(seed + i))) for i in range(BEHAVED)]
        threads += [threading.Thread(target=self.run_rude, args=(random.Random(seed - 1 - i),)) for i in range(RUDE)]
        for thread in threads:
            thread.start()
        self.stopping.wait(SECONDS / 3)
        before = self.resident() if self.server.poll() is None else 0
        self.stopping.wait(SECONDS * 2 / 3)
        self.stopping.set()
        for thread in threads:
            thread.join()
        return before

    def until_alone(self):
        """Waits until the server has let go of every connection but those of this test."""
        end = time.monotonic() + 60
        while (open_now := stats(self.address)["http"]["connections"]) > 2:
            self.assertLess(time.monotonic(), end, f"{open_now} connections stay open")
            time.sleep(0.05)

    def check_the_end(self):
        """SIGTERM while a stream is on its way: it ends as it should, newcomers are refused, the exit code is 0."""
        connection = self.connection()
        connection.request("POST", "/v1/completions", json.dumps({**LAST, "stream": True}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.readline().decode()
        self.server.send_signal(signal.SIGTERM)
        said += answer.read().decode()
        self.assertEqual(gists_of_stream(said), self.last)
        connection.close()
        self.assertEqual(self.server.wait(300), 0)

    def test_soak(self):
        connection = self.connection()
        self.alone = [ask(connection, path, body, False) for path, body in self.requests]
        self.last = ask(connection, "/v1/completions", LAST, False)
        connection.close()
        seed = int(os.environ.get("WHIPPET_SOAK_SEED", time.time_ns() % 1_000_000))
        before = self.soak(seed)
        self.log.seek(0)
        self.assertEqual(self.trouble, [], f"seed {seed}; the server's log ends: {self.log.read()[-3000:]}")
        now = until_idle(self.address)
        grown = now["memory"]["resident_bytes"] - before
        print(f"seed {seed}, {SECONDS:.0f} s: {dict(sorted(self.counts.items()))}, {now['preemptions']} preemptions, "
              f"{now['finished']}, {now['http']}, resident {before >> 20} MiB, grown by {grown / 2**20:.1f} MiB")
        self.assertGreater(self.counts["complete answers"], 0)
        self.assertGreater(now["finished"]["abort"], 0)
        self.assertLess(grown, MOST_GROWTH)
        self.until_alone()
        connection.request("GET", "/health")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        self.check_the_end()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
