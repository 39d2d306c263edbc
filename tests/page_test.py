"""The page in a real browser: what a person does with the chat and sees on the dashboard.

Usage: page_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import pathlib
import threading

from page_testing import PageCase, main


class Chat(PageCase):
    def test_an_answer_streams_in_and_says_how_fast_it_was(self):
        self.state.gate = threading.Event()
        self.open()
        self.say("slow")
        self.until_answer_has("one two")
        self.assertTrue(self.page.is_visible("#stop"))
        self.assertEqual(self.page.get_attribute(".assistant", "aria-busy"), "true")
        self.state.gate.set()
        self.page.wait_for_selector(".stats")
        self.assertEqual(self.texts(), ["slow", "one two three"])
        stats = self.page.inner_text(".stats")
        self.assertRegex(stats, r"^3 tokens · [\d.,]+ tokens/s · first after [\d.]+ (ms|s) · 27 of 42 prompt tokens cached$")
        self.assertEqual(self.page.get_attribute(".assistant", "aria-busy"), "false")
        self.assertIn("one two three", self.page.inner_text("#announcer"))

    def test_what_is_sent_is_a_chat_of_openai_s_protocol(self):
        self.open()
        self.ask("short")
        self.ask("Why?")
        body = self.state.bodies[-1]
        self.assertEqual(body["messages"], [{"role": "user", "content": "short"}, {"role": "assistant", "content": "Yes."},
                                            {"role": "user", "content": "Why?"}])
        self.assertEqual(body["model"], "SmolLM2-135M-Instruct")
        self.assertTrue(body["stream"])
        self.assertTrue(body["stream_options"]["include_usage"])
        for name in ("temperature", "top_p", "top_k", "max_tokens", "repetition_penalty"):
            self.assertNotIn(name, body)  # the model's own defaults hold

    def test_stop_ends_the_answer_on_both_sides(self):
        self.state.gate = threading.Event()
        self.open()
        for how in (lambda: self.page.click("#stop"), lambda: self.page.keyboard.press("Escape")):
            self.state.cancelled.clear()
            self.say("slow")
            self.until_answer_has("two")
            how()
            self.until_done()
            self.assertTrue(self.state.cancelled.wait(10), "the server saw no hang-up")
            self.assertEqual(self.texts()[-1], "one two")
            self.assertIn("Stopped", self.page.locator(".assistant .foot").last.inner_text())

    def test_a_stopped_answer_goes_on_where_it_was(self):
        self.state.gate = threading.Event()
        self.open()
        self.say("slow")
        self.until_answer_has("two")
        self.page.keyboard.press("Escape")
        self.page.click("text=Go on")
        self.until_done()
        body = self.state.bodies[-1]
        self.assertEqual((body["continue_final_message"], body["add_generation_prompt"]), (True, False))
        self.assertEqual(body["messages"][-1], {"role": "assistant", "content": "one two "})
        self.assertTrue(self.texts()[-1].startswith("one two A clear sky"))

    def test_an_answer_can_be_had_again_and_the_old_one_brought_back(self):
        self.open()
        self.ask("short")
        self.ask("Why?")
        self.page.locator(".assistant").first.get_by_role("button", name="Answer again").click()
        self.until_done()
        self.assertEqual(self.texts(), ["short", "Yes."])
        self.assertEqual(len(self.state.bodies[-1]["messages"]), 1)
        self.page.click("#toast >> text=Undo")
        self.assertEqual(len(self.texts()), 4)
        self.page.reload()
        self.assertEqual(len(self.texts()), 4)

    def test_an_earlier_message_can_be_edited(self):
        self.open()
        self.ask("Why?")
        self.ask("And then?")
        self.page.locator(".user").first.hover()
        self.page.locator(".user").first.get_by_role("button", name="Edit").click()
        self.page.keyboard.press("Escape")  # changes nothing
        self.assertEqual(len(self.texts()), 4)
        self.page.locator(".user").first.get_by_role("button", name="Edit").click()
        self.page.fill(".editor", "short")
        self.page.press(".editor", "Enter")
        self.until_done()
        self.assertEqual(self.texts(), ["short", "Yes."])

    def test_shift_enter_starts_a_line_and_enter_within_a_composition_sends_nothing(self):
        self.open()
        self.page.focus("#prompt")
        self.page.keyboard.type("a")
        self.page.keyboard.press("Shift+Enter")
        self.page.keyboard.type("b")
        self.page.evaluate("""document.getElementById("prompt").dispatchEvent(new KeyboardEvent("keydown",
                              {key: "Enter", keyCode: 229, isComposing: true, bubbles: true, cancelable: true}))""")
        self.assertEqual(self.page.input_value("#prompt"), "a\nb")
        self.assertEqual(self.state.bodies, [])
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".stats")
        self.assertEqual(self.state.bodies[0]["messages"][0]["content"], "a\nb")

    def test_whoever_begins_to_type_writes_a_message(self):
        self.open()
        self.page.evaluate("document.activeElement.blur()")
        self.page.keyboard.type("hello")
        self.assertEqual(self.page.input_value("#prompt"), "hello")

    def test_settings_are_sent_and_kept(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#system", "Answer like a pirate.")
        self.page.fill("#sampling-temperature", "0.3")
        self.page.fill("#sampling-max_tokens", "50")
        self.page.press("#sampling-max_tokens", "Tab")
        self.page.locator("#sliders input[type=range]").nth(2).fill("40")
        self.ask("short")
        self.page.reload()
        self.ask("short")
        for body in self.state.bodies:
            self.assertEqual(body["messages"][0], {"role": "system", "content": "Answer like a pirate."})
            self.assertEqual((body["temperature"], body["max_tokens"], body["top_k"]), (0.3, 50, 40))
            self.assertNotIn("top_p", body)
        self.page.click("#open-settings")
        self.page.locator(".slider", has_text="Temperature").get_by_role("button").click()
        self.ask("short")
        self.assertNotIn("temperature", self.state.bodies[-1])


class Conversations(PageCase):
    def names(self):
        return self.page.locator("#conversations .open").all_inner_texts()

    def test_several_are_kept_over_a_reload(self):
        self.open()
        self.ask("short")
        self.page.click("#new-chat")
        self.ask("Why?")
        self.page.reload()
        self.assertEqual(self.names(), ["Why?", "short"])
        self.assertEqual(self.texts()[0], "Why?")
        self.page.click("#conversations >> text=short")
        self.assertEqual(self.texts(), ["short", "Yes."])

    def test_one_can_be_renamed_saved_deleted_and_brought_back(self):
        self.open()
        self.ask("short")
        row = self.page.locator("#conversations li").first
        row.get_by_role("button", name="Rename").click()
        self.page.keyboard.type("A <b>name</b>")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.names(), ["A <b>name</b>"])
        with self.page.expect_download() as download:
            row.get_by_role("button", name="Save as a file").click()
        self.assertEqual(pathlib.Path(download.value.path()).read_text(), "# A <b>name</b>\n\n**user**\n\nshort\n\n**assistant**\n\nYes.\n")
        self.assertEqual(download.value.suggested_filename, "A-b-name-b.md")
        row.get_by_role("button", name="Delete").click()
        self.assertEqual((self.names(), self.texts()), ([], []))
        self.page.click("#toast >> text=Undo")
        self.assertEqual(self.names(), ["A <b>name</b>"])
        self.assertEqual(self.texts(), ["short", "Yes."])

    def test_an_answer_goes_on_while_another_conversation_is_read(self):
        self.state.gate = threading.Event()
        self.open()
        self.ask("short")
        self.page.click("#new-chat")
        self.say("slow")
        self.until_answer_has("two")
        self.page.click("#conversations >> text=short")
        self.assertTrue(self.page.is_visible("#send"))
        self.state.gate.set()
        self.page.click("#conversations >> text=slow")
        self.page.wait_for_selector(".stats")
        self.assertEqual(self.texts(), ["slow", "one two three"])

    def test_what_came_before_a_reload_in_the_middle_of_an_answer_is_kept(self):
        self.state.gate = threading.Event()
        self.open()
        self.say("slow")
        self.until_answer_has("two")
        self.page.reload()
        self.assertEqual(self.texts(), ["slow", "one two"])
        self.assertTrue(self.state.cancelled.wait(10))
        self.assertIn("Interrupted", self.page.inner_text(".assistant .why"))
        self.assertTrue(self.page.is_visible("text=Go on"))

    def test_a_store_that_holds_rubbish_or_is_full_stops_nothing(self):
        self.open()
        self.page.evaluate("""() => { localStorage.setItem("whippet.chat.a", "{"); localStorage.setItem("whippet.chat.b", "[1]");
            localStorage.setItem("whippet.preferences", "7"); localStorage.setItem("whippet.chat.c",
            JSON.stringify({id: "c", title: 5, messages: [{role: "user", content: "kept"}, {role: "x"}, null]}));
            try { for (;;) localStorage.setItem("fill" + localStorage.length, "x".repeat(500000)); } catch {}
            try { for (;;) localStorage.setItem("fill" + localStorage.length, "x"); } catch {} }""")
        self.page.reload()
        self.assertEqual(self.names(), ["New chat"])
        self.assertEqual(self.ask("short").locator(".body").inner_text().strip(), "Yes.")
        self.assertIn("store for this page is full", self.page.inner_text("#toast"))


class Trouble(PageCase):
    def test_a_key_is_asked_for_and_forgotten_with_the_tab(self):
        self.allowed = {"401"}
        self.state.key = "sesame"
        self.open()
        self.page.wait_for_selector("#key-dialog[open]")
        self.page.fill("#key", "wrong")
        self.page.press("#key", "Enter")
        self.page.wait_for_selector("#key-dialog[open] >> text=did not take that key")
        self.page.fill("#key", "sesame")
        self.page.click("#key-ok")
        self.ask("short")
        self.assertEqual(self.texts(), ["short", "Yes."])
        self.assertEqual(self.page.evaluate("JSON.stringify(localStorage)").count("sesame"), 0)
        self.page.reload()
        self.page.wait_for_selector("#welcome-model:not(:empty)", state="attached")
        self.assertFalse(self.page.is_visible("#key-dialog"))
        self.state.key = "another"
        self.say("Why?")
        self.page.wait_for_selector("#key-dialog[open]")
        self.page.fill("#key", "another")
        self.page.press("#key", "Enter")
        self.until("() => document.querySelectorAll('.stats').length === 2")

    def test_without_a_key_the_page_says_that_it_needs_one(self):
        self.allowed = {"401"}
        self.state.key = "sesame"
        self.open()
        self.page.click("#key-cancel")
        self.page.wait_for_selector("#notice >> text=needs an API key")
        self.say("short")
        self.page.click("#key-cancel")
        self.page.wait_for_selector(".why.bad >> text=needs an API key")

    def test_what_went_wrong_is_said_in_words(self):
        self.allowed = {"400"}
        self.open()
        for text, words in (("too long", "too long for this model"), ("refuse", "temperature: 9 is outside 0 to 2"),
                            ("break", "broke before the answer was complete"), ("fail", "The deadline passed.")):
            self.ask(text)
            self.assertIn(words, self.page.locator(".why.bad").last.inner_text())
        # What had come is kept, and what failed empty is not sent again.
        self.ask("short")
        self.assertEqual([m["role"] for m in self.state.bodies[-1]["messages"]],
                         ["user", "user", "user", "assistant", "user", "assistant", "user"])

    def test_a_failed_answer_can_be_tried_again(self):
        self.allowed = {"Failed to load resource"}
        self.open()
        self.ask("short")
        self.state.down = True
        self.ask("Why?")
        self.assertIn("cannot be reached", self.page.locator(".why.bad").inner_text())
        self.state.down = False
        self.page.click("text=Try again")
        self.page.wait_for_selector(".message.assistant:last-child .stats")
        self.assertEqual(self.page.locator(".why.bad").count(), 0)

    def test_an_answer_cut_at_its_length_or_empty_says_so(self):
        self.open()
        self.assertIn("longest length", self.ask("cut").inner_text())
        self.assertIn("(empty answer)", self.ask("nothing").inner_text())


class Dashboard(PageCase):
    def test_figures_and_curves_move(self):
        self.state.delay = 0.01
        self.open()
        self.say("endless")
        self.page.click("#link-dashboard")
        self.until("() => parseFloat(document.querySelector('.figure .value')?.textContent) > 0")
        self.assertRegex(self.page.inner_text("#totals"), r"Answer tokens\n\d+")
        canvas = self.page.locator("canvas").first
        self.assertRegex(canvas.get_attribute("aria-label"), r"^Tokens per second: now [\d.,]+, [\d.,]+$")
        drawn = self.page.evaluate("""() => [...document.querySelectorAll("canvas")].map((canvas) => {
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return data.some((value) => value > 0); })""")
        self.assertEqual(drawn, [True] * 7)
        first = self.page.inner_text("#totals")
        self.until("text => document.getElementById('totals').innerText !== text", first)
        self.page.click("#link-chat")
        self.page.wait_for_selector("#pulse:not([hidden])")
        self.assertIn("tokens/s", self.page.inner_text("#pulse"))

    def test_counters_become_what_happened_in_between(self):
        self.open()
        sample = self.page.evaluate("""async () => {
            const {sampleBetween} = await import("./feed.js");
            const spread = (count, mean) => ({count, mean});
            const before = {generation_tokens: 100, prompt_tokens: 10, prefix_queries: 10, prefix_hits: 5, steps: 4, running: 1,
              waiting: 0, kv_usage: 0.5, num_blocks: 10, cached_blocks: 2, step_decode_tokens: 3, step_prefill_tokens: 2,
              ttft_seconds: spread(1, 0.5), inter_token_seconds: spread(10, 0.01), step_seconds: spread(4, 0.01)};
            const after = {...before, generation_tokens: 300, prefix_queries: 30, prefix_hits: 20, steps: 9,
              ttft_seconds: spread(3, 0.3), step_seconds: spread(9, 0.02)};
            return sampleBetween(before, after, 2); }""")
        self.assertEqual((sample["generated"], sample["prompts"], sample["hits"], sample["cached"]), (100, 0, 0.75, 0.2))
        self.assertAlmostEqual(sample["ttft"], 0.2)
        self.assertIsNone(sample["interToken"])

    def test_a_server_that_goes_away_and_comes_back_is_noticed(self):
        self.allowed = {"Failed to load resource"}
        self.open("#dashboard")
        self.page.wait_for_selector("#totals dl")
        self.state.down = True
        self.page.wait_for_selector("#notice >> text=cannot be reached")
        self.state.down = False
        self.page.wait_for_selector("#notice", state="hidden")
        self.page.wait_for_selector("#totals dl")


if __name__ == "__main__":
    main()
