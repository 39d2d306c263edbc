"""Starts `whippet serve` for the classes of a test."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

DEFAULT_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PATIENCE = 120  # seconds until the model is loaded


def default_model():
    """The default model's file in the model cache, or None."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "whippet"
    return next(iter(cache.rglob(DEFAULT_MODEL)), None)


def wait_until_ready(address, server):
    """Whether /health turns 200 before the server ends or patience does."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            return urllib.request.urlopen(address + "health").status == 200
        except OSError:  # refused, or 503 while loading
            time.sleep(0.05)
    return False


def missing(binary):
    """Why `binary` cannot serve the default model; None where it can."""
    if subprocess.run([binary, "serve", "--help"], capture_output=True).returncode != 0:
        return f"{binary} has no command serve"
    if default_model() is None:
        return f"{DEFAULT_MODEL} is not in the model cache: whippet pull smollm2"
    return None


def start(binary, port, log, *arguments):
    """Serves the default model: its process and address, once it is ready."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WHIPPET_")}
    command = [binary, "serve", "smollm2", "--no-pull", "--port", str(port), *arguments]
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    address = f"http://127.0.0.1:{port}/"
    if wait_until_ready(address, server):
        return server, address
    server.kill()
    server.wait()
    log.seek(0)
    raise AssertionError(f"whippet serve is not ready: {log.read()[-2000:]}")


def serve(case, binary, port, *arguments):
    """Serves the default model until the class `case` is done: (address, None), or (None, why not)."""
    why_not = missing(binary)
    if why_not:
        return None, why_not
    log = tempfile.TemporaryFile("w+")
    case.addClassCleanup(log.close)
    server, address = start(binary, port, log, *arguments)
    case.addClassCleanup(server.wait)
    case.addClassCleanup(server.terminate)
    return address, None


def stats(address):
    with urllib.request.urlopen(address + "stats", timeout=60) as answer:
        return json.load(answer)


def until_idle(address):
    """The statistics once nothing runs or waits and no block is in use; fails where that never comes."""
    end = time.monotonic() + PATIENCE
    while True:
        now = stats(address)
        if now["running"] == now["waiting"] == now["used_blocks"] == now["http"]["inside"] == 0:
            return now
        if time.monotonic() > end:
            raise AssertionError(f"never idle again: {now}")
        time.sleep(0.02)
