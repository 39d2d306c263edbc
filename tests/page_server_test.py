"""The page as the binary serves it, with the default model: answers, going on, keys, refusals, the files themselves.

Usage: page_server_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import json
import pathlib
import unittest
import urllib.error
import urllib.request

import page_stub
from page_testing import PageCase, free_port, main
from serving import serve

WEB = page_stub.WEB


class RealServer(PageCase):
    """One server for a class."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.address, why_not = serve(cls, cls.binary, free_port(), *cls.arguments)
        if not cls.address:
            raise unittest.SkipTest(why_not)

    def setUp(self):
        super().setUp()
        self.url = self.address

    def be_greedy(self):
        self.page.wait_for_selector("#welcome-model:not(:empty)")
        self.page.click("#open-settings")
        self.page.fill("#sampling-temperature", "0")
        self.page.press("#sampling-temperature", "Tab")


class RealAnswers(RealServer):
    def test_a_question_is_answered_and_the_dashboard_moves(self):
        self.open()
        self.be_greedy()
        answer = self.ask("What is the capital of France?")
        self.assertIn("Paris", answer.inner_text())
        self.assertRegex(answer.locator(".stats").inner_text(), r"^\d+ tokens · [\d.,]+ tokens/s · first after ")
        again = self.ask("What is the capital of Italy?")
        self.assertRegex(again.locator(".stats").inner_text(), r"· \d+ of \d+ prompt tokens cached$")
        self.shot("real-1-chat")
        self.say("Tell me a long story.")
        self.page.wait_for_selector("#stop:not([hidden])")
        self.page.evaluate("location.hash = '#dashboard'")
        self.until("() => parseFloat(document.querySelector('.figure .value')?.textContent) > 0")
        self.shot("real-2-dashboard")
        self.assertRegex(self.page.inner_text("#totals"), r"Answer tokens\n[1-9]")
        self.assertIn("weights", self.page.inner_text("#charts"))

    def test_a_stopped_answer_goes_on_where_it_was(self):
        self.open()
        self.be_greedy()
        self.page.fill("#sampling-max_tokens", "60")
        self.page.press("#sampling-max_tokens", "Tab")
        self.say("Count from one to a hundred, in words.")
        self.until("() => (document.querySelector('.assistant .body')?.textContent.length ?? 0) > 10")
        self.page.keyboard.press("Escape")
        self.until_done()
        before = self.texts()[-1]
        self.page.click("text=Go on")
        self.until_done()
        self.assertEqual(self.page.locator(".why.bad").count(), 0)
        self.assertTrue(self.texts()[-1].startswith(before.rstrip("\n")))
        self.assertGreater(len(self.texts()[-1]), len(before))

    def test_what_the_server_refuses_is_said_in_words(self):
        self.allowed = {"400"}
        self.open()
        self.ask("word " * 9000)
        self.assertIn("too long for this model", self.page.inner_text(".why.bad"))

    def test_the_stub_speaks_as_the_server_does(self):
        def shape(value):
            return {key: shape(item) for key, item in value.items()} if isinstance(value, dict) else type(value) in (int, float)

        def within(stub, real):
            return stub == real or isinstance(stub, dict) and all(key in real and within(stub[key], real[key]) for key in stub)

        for path in ("stats", "version", "v1/models"):
            with urllib.request.urlopen(self.stub.url + path) as stub, urllib.request.urlopen(self.address + path) as real:
                said, meant = json.load(stub), json.load(real)
            if path == "v1/models":
                said, meant = said["data"][0], meant["data"][0]
            self.assertTrue(within(shape(said), shape(meant)), f"{path}: {said} is not {meant}")

    def test_the_files_come_as_the_tree_has_them_under_the_same_policy(self):
        for path in [*WEB.iterdir(), WEB]:
            name = "" if path == WEB else path.name
            with urllib.request.urlopen(self.address + name) as answer:
                self.assertEqual(answer.read(), (WEB / (name or "index.html")).read_bytes())
                self.assertEqual(answer.headers["Content-Type"], page_stub.TYPES[pathlib.Path(name or "x.html").suffix])
                policy = {rule.strip() for rule in answer.headers["Content-Security-Policy"].split(";")}
                self.assertLessEqual({rule.strip() for rule in page_stub.CSP.split(";")}, policy)
            known = urllib.request.Request(self.address + name, headers={"If-None-Match": answer.headers["ETag"]})
            with self.assertRaises(urllib.error.HTTPError) as unchanged:
                urllib.request.urlopen(known)
            self.assertEqual(unchanged.exception.code, 304)


class RealKey(RealServer):
    arguments = ("--api-key", "sesame")

    def test_the_page_asks_for_the_key(self):
        self.allowed = {"401"}
        self.open()
        self.page.wait_for_selector("#key-dialog[open]")
        self.shot("real-3-key")
        self.page.fill("#key", "sesame")
        self.page.press("#key", "Enter")
        self.be_greedy()
        self.assertIn("Paris", self.ask("What is the capital of France?").inner_text())


if __name__ == "__main__":
    main()
