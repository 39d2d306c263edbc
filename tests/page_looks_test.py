"""How the page looks and who can use it: screenshots in BUILD_FOLDER/page, phones, keyboards, screen readers, two
languages, the content security policy.

Usage: page_looks_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import re

import page_stub
from page_testing import PageCase, main

WEB = page_stub.WEB
PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
# Contrast of text against what it stands on, by WCAG 2: [text, ratio] of every visible text below 4.5.
CONTRAST = """() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (node) => { for (; node; node = node.parentElement) { const c = rgba(getComputedStyle(node).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({opacityProperty: true, visibilityProperty: true}) || node.closest(".unseen, .skip, :disabled")) continue;
    const [a, b] = [light(rgba(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), Math.round(ratio * 100) / 100]);
  }
  return poor;
}"""
UNNAMED = """() => [...document.querySelectorAll("button, a, input, textarea, select, canvas, progress")].filter((node) =>
  !node.getAttribute("aria-label") && !node.textContent.trim() && !node.labels?.length).map((node) => node.outerHTML)"""


class Looks(PageCase):
    def check(self):
        self.assertEqual(self.page.evaluate(CONTRAST), [])
        self.assertEqual(self.page.evaluate(UNNAMED), [])
        width = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(width[0], width[1])

    def tour(self, name):
        """Every view, looked at."""
        self.page.wait_for_selector("#welcome-model:not(:empty)")
        self.check()
        self.shot(f"{name}-1-welcome")
        self.ask("chinese" if "zh" in name else "Why is the sky blue?")
        self.ask("refuse")
        self.ask("Why is the sky blue?")
        self.page.mouse.move(0, 0)
        self.check()
        self.shot(f"{name}-2-chat")
        self.page.click("#open-settings")
        self.check()
        self.shot(f"{name}-3-settings")
        self.page.click("#close-settings")
        self.say("endless")
        self.page.evaluate("location.hash = '#dashboard'")
        self.until("() => parseFloat(document.querySelector('.figure .value')?.textContent) > 0")
        self.page.wait_for_timeout(6000)  # some seconds of curve to look at
        self.check()
        self.shot(f"{name}-4-dashboard")
        self.page.evaluate("document.getElementById('dashboard').scrollTop = 1e6")
        self.shot(f"{name}-5-dashboard-end")

    def test_light(self):
        self.allowed = {"400"}
        self.open(color_scheme="light")
        self.tour("light")

    def test_dark(self):
        self.allowed = {"400"}
        self.open(color_scheme="dark")
        self.tour("dark")

    def test_phone_in_chinese(self):
        self.allowed = {"400"}
        self.open(locale="zh-CN", **PHONE)
        self.tour("phone-zh")
        self.page.click("#open-sidebar")
        self.until("() => document.getElementById('sidebar').getBoundingClientRect().left === 0")
        self.check()
        self.shot("phone-zh-6-sidebar")
        self.page.click("#scrim", position={"x": 350, "y": 400})
        self.page.wait_for_selector("#sidebar", state="hidden")

    def test_what_a_finger_touches_is_large_enough(self):
        self.open(**PHONE)
        self.ask("short")
        small = self.page.evaluate("""[...document.querySelectorAll("main button")].filter((node) => node.checkVisibility())
            .map((node) => [node.ariaLabel, node.getBoundingClientRect()]).filter(([, r]) => r.width < 34 || r.height < 34)""")
        self.assertEqual(small, [])

    def test_a_phone_turned_or_with_its_keyboard_up_still_shows_the_message_box(self):
        self.open(**{**PHONE, "viewport": {"width": 740, "height": 250}})
        self.ask("short")
        box = self.page.locator("#composer").bounding_box()
        self.assertLessEqual(box["y"] + box["height"], 250)


class Choices(PageCase):
    def colour(self):
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_colours_follow_the_system_until_chosen(self):
        self.open(color_scheme="light")
        light = self.colour()
        self.page.emulate_media(color_scheme="dark")
        dark = self.colour()
        self.assertNotEqual(light, dark)
        self.page.click("#theme >> text=Light")
        self.assertEqual(self.colour(), light)
        self.page.reload()
        self.assertEqual(self.colour(), light)
        self.page.click("#theme >> text=Auto")
        self.assertEqual(self.colour(), dark)

    def test_the_language_follows_the_browser_until_chosen(self):
        self.open(locale="zh-TW")
        self.assertEqual(self.page.inner_text("#new-chat"), "新对话")
        self.assertEqual(self.page.evaluate("document.documentElement.lang"), "zh-CN")
        self.page.click("#language >> text=English")
        self.assertEqual(self.page.inner_text("#new-chat"), "New chat")
        self.page.reload()
        self.assertEqual(self.page.get_attribute("#prompt", "placeholder"), "Ask anything")
        self.page.focus("#language [aria-checked=true]")
        self.page.keyboard.press("ArrowRight")
        self.assertEqual(self.page.inner_text("#new-chat"), "新对话")

    def test_every_word_is_there_in_both_languages_and_used(self):
        self.open()
        keys = self.page.evaluate("import('./i18n.js').then((m) => m.languageKeys())")
        self.assertEqual(set(keys["en"]), set(keys["zh"]))
        source = "".join(path.read_text() for path in WEB.iterdir() if path.name != "i18n.js")
        used = set(re.findall(r'\bt\(\s*(?:\w+ \? )?"(\w+)"', source)) | set(re.findall(r'data-t(?:-label|-placeholder)?="(\w+)"', source))
        self.assertEqual(used - set(keys["en"]), set())
        self.assertEqual({key for key in keys["en"] if not re.search(rf'"{key}"', source) and
                          not re.match(r"stop_reason_|suggestion\d|\w+Help$", key)}, set())

    def test_a_keyboard_reaches_everything_and_shows_where_it_is(self):
        self.open()
        self.ask("short")
        self.page.evaluate("document.activeElement.blur()")
        seen = []
        for _ in range(40):
            self.page.keyboard.press("Tab")
            name, ring = self.page.evaluate("""() => { const node = document.activeElement;
                return [node.id || node.ariaLabel || node.textContent.trim(), getComputedStyle(node).outlineStyle]; }""")
            # The frame around the message box changes colour; the body has the focus while the browser itself has it.
            if name != "prompt" and self.page.evaluate("document.activeElement !== document.body"):
                self.assertNotEqual(ring, "none", name)
            seen.append(name)
        for wanted in ("link-chat", "link-dashboard", "new-chat", "short", "Rename", "Delete", "Auto", "open-settings", "Copy", "Edit",
                       "Answer again", "prompt", "send"):
            self.assertIn(wanted, seen)


class Policy(PageCase):
    def test_the_policy_forbids_what_the_page_does_not_need(self):
        self.open()
        self.allowed = {"Content Security Policy"}
        broken = self.page.evaluate("""async () => {
            const seen = [];
            document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
            const add = (tag, fill) => { const node = document.createElement(tag); fill(node); document.body.append(node); };
            add("script", (node) => { node.textContent = "window.hacked = 1"; });
            add("style", (node) => { node.textContent = "body { display: none }"; });
            add("img", (node) => { node.src = "http://127.0.0.2:1/x.png"; });
            add("iframe", (node) => { node.src = "data:text/html,x"; });
            await fetch("http://127.0.0.2:1/").catch(() => {});
            await new Promise((done) => setTimeout(done, 100));
            return [window.hacked ?? null, seen]; }""")
        self.assertIsNone(broken[0])
        self.assertEqual(set(broken[1]), {"script-src-elem", "style-src-elem", "img-src", "frame-src", "connect-src"})
        self.trouble = [text for text in self.trouble if not text.startswith("request to http://127.0.0.2")]

    def test_the_files_hold_no_inline_script_style_or_foreign_address(self):
        for path in WEB.iterdir():
            text = path.read_text()
            if path.suffix == ".html":
                self.assertNotRegex(text, r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=")
            self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.name)
            for address in re.findall(r"""["'(]((?:https?:)?//[^"'\s)]+)""", text):
                self.assertEqual(address, "http://www.w3.org/2000/svg", path.name)


if __name__ == "__main__":
    main()
