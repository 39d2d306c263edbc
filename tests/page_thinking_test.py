"""An answer's thinking on the page: folded, streamed, kept, and never sent back.

Usage: page_thinking_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import threading

from page_stub import THOUGHTS
from page_testing import PageCase, main

ALL = "".join(THOUGHTS)


class Thinking(PageCase):
    def thought(self):
        return self.page.locator(".message.assistant").last.locator("details.thought")

    def test_it_is_folded_and_the_answer_is_not(self):
        self.open()
        self.ask("think")
        self.assertEqual(self.texts(), ["think", "Hello! How can I help?"])
        thought = self.thought()
        self.assertFalse(thought.evaluate("node => node.open"))
        self.assertRegex(thought.locator("summary").inner_text(), r"^Thought for [\d.]+ m?s$")
        thought.locator("summary").click()
        self.assertEqual(thought.locator(".thought-text").inner_text(), ALL)
        self.assertEqual(thought.locator("b").count(), 0)
        self.shot("thinking-light")

    def test_it_can_be_watched_while_it_grows(self):
        self.state.gate = threading.Event()
        self.open()
        self.say("think slowly")
        self.until("() => document.querySelector('.thought summary')?.textContent === 'Thinking…'")
        thought = self.thought()
        thought.locator("summary").click()
        self.until("all => document.querySelector('.thought-text').textContent === all", ALL)
        self.assertEqual(thought.locator("summary").inner_text(), "Thinking…")
        self.shot("thinking-growing")
        self.state.gate.set()
        self.until_done()
        self.assertTrue(thought.evaluate("node => node.open"), "what was opened stays open")
        self.assertRegex(thought.locator("summary").inner_text(), "^Thought for")
        self.assertEqual(self.texts()[1], "Done.")

    def test_it_is_not_sent_back(self):
        self.open()
        self.ask("think")
        self.ask("short")
        sent = self.state.bodies[-1]["messages"]
        self.assertEqual(sent, [{"role": "user", "content": "think"}, {"role": "assistant", "content": "Hello! How can I help?"},
                                {"role": "user", "content": "short"}])
        self.assertEqual(self.page.locator(".message.assistant").last.locator("details.thought:visible").count(), 0)

    def test_it_is_kept_with_the_conversation(self):
        self.open()
        self.ask("think")
        self.page.reload()
        self.page.wait_for_selector(".message.assistant")
        self.thought().locator("summary").click()
        self.assertEqual(self.thought().locator(".thought-text").inner_text(), ALL)

    def test_thinking_without_an_end(self):
        self.open()
        self.ask("think on")
        self.assertEqual(self.texts()[1], "")
        self.assertRegex(self.thought().locator("summary").inner_text(), "^Thought for")
        self.assertIn("The answer reached its longest length.", self.page.locator(".message.assistant .why").inner_text())

    def test_in_chinese_and_dark(self):
        self.state.gate = threading.Event()
        self.open(locale="zh-CN", color_scheme="dark")
        self.say("think slowly")
        self.until("() => document.querySelector('.thought summary')?.textContent === '思考中…'")
        self.state.gate.set()
        self.until_done()
        self.assertRegex(self.thought().locator("summary").inner_text(), "^思考了 ")
        self.thought().locator("summary").click()
        self.page.mouse.move(0, 0)
        self.shot("thinking-zh-dark")


if __name__ == "__main__":
    main()
