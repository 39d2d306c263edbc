"""Starts `whippet serve` for the classes of a test."""

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


def serve(case, binary, port, *arguments):
    """Serves the default model until the class `case` is done: (address, None), or (None, why not)."""
    if subprocess.run([binary, "serve", "--help"], capture_output=True).returncode != 0:
        return None, f"{binary} has no command serve"
    model = default_model()
    if model is None:
        return None, f"{DEFAULT_MODEL} is not in the model cache: whippet pull smollm2"
    log = tempfile.TemporaryFile("w+")
    case.addClassCleanup(log.close)
    server = subprocess.Popen([binary, "serve", "smollm2", "--no-pull", "--port", str(port), *arguments], stdout=log, stderr=log)
    case.addClassCleanup(server.wait)
    case.addClassCleanup(server.terminate)
    address = f"http://127.0.0.1:{port}/"
    if wait_until_ready(address, server):
        return address, None
    log.seek(0)
    raise AssertionError(f"whippet serve is not ready: {log.read()[-2000:]}")
