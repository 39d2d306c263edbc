"""What the tests of the page share: Debian's Chromium under Playwright, the stub as server, a watch over what must
never happen (a script error, a breach of the content security policy, a request to another host)."""

import pathlib
import shutil
import socket
import sys
import threading
import time
import unittest

import page_stub
import python_packages

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def find_playwright(build):
    """What starts Playwright, or why there is none."""
    python_packages.use(build)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        return None, f"no Playwright ({error}): tests/python_packages.py {build}"
    if not CHROMIUM:
        return None, "no chromium: apt-get install chromium"
    return sync_playwright, None


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class PageCase(unittest.TestCase):
    """One browser for a class, one empty profile and one stub for a test."""

    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 2 else "build")
    binary = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build/whippet")
    viewport = {"width": 1280, "height": 820}
    options = {}

    @classmethod
    def setUpClass(cls):
        start, why_not = find_playwright(cls.build)
        if not start:
            raise unittest.SkipTest(why_not)
        cls.playwright = start().start()
        cls.addClassCleanup(cls.playwright.stop)
        # As root, Chromium has no sandbox of its own.
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)
        cls.shots = pathlib.Path(cls.build) / "page"
        cls.shots.mkdir(parents=True, exist_ok=True)

    def setUp(self):
        self.trouble = []
        self.allowed = set()  # troubles that a test brings about on purpose: parts of their text
        self.stub = page_stub.Server()
        thread = threading.Thread(target=self.stub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.addCleanup(self.stub.server_close)
        self.addCleanup(self.stub.shutdown)
        self.state = self.stub.state
        self.url = self.stub.url

    def open(self, view="", **options):
        settings = {"viewport": self.viewport, "locale": "en-US", **self.options, **options}
        self.context = self.browser.new_context(**settings)
        self.addCleanup(self.context.close)
        self.context.set_default_timeout(60_000)
        self.page = self.watch(self.context.new_page())
        self.page.goto(self.url + view)
        return self.page

    def watch(self, page):
        def said(message):
            if message.type in ("error", "warning"):
                self.trouble.append(message.text)

        page.on("console", said)
        page.on("pageerror", lambda error: self.trouble.append(f"script: {error}"))
        page.on("request", lambda request: None if request.url.startswith((self.url, "blob:" + self.url)) else
                self.trouble.append(f"request to {request.url}"))
        return page

    def tearDown(self):
        unexpected = [text for text in self.trouble if not any(part in text for part in self.allowed)]
        self.assertEqual(unexpected, [])

    # What a person does.

    def until(self, script, arg=None):
        """Waits until the function, given as JavaScript, is true in the page. Playwright's own wait_for_function
        evaluates strings inside the page, which the page's policy forbids."""
        end = time.monotonic() + 60
        while not self.page.evaluate(script, arg):
            self.assertLess(time.monotonic(), end, f"never true: {script}")
            self.page.wait_for_timeout(20)

    def until_answer_has(self, text):
        self.until("text => [...document.querySelectorAll('.assistant .body')].at(-1)?.textContent.includes(text)", text)

    def until_done(self):
        self.page.wait_for_selector("#send:not([hidden])")

    def say(self, text):
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def ask(self, text):
        """Asks, and waits for the end of the answer; returns its locator."""
        before = self.page.locator(".message").count()
        self.say(text)
        self.until("n => document.querySelectorAll('.message').length >= n + 2", before)
        self.until_done()
        return self.page.locator(".message.assistant").last

    def texts(self):
        return [text.strip() for text in self.page.locator(".message .body").all_inner_texts()]

    def shot(self, name):
        self.page.screenshot(path=str(self.shots / f"{name}.png"))


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
