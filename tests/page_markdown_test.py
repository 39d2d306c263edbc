"""What the page makes of a model's answer: markdown as DOM nodes, hostile text as text.

Usage: page_markdown_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import re
import threading

import page_stub
from page_testing import PageCase, main

# Renders text, all at once or piece by piece, and returns the HTML without what only decorates.
RENDER = """async ([pieces, finished]) => {
  const {MarkdownView} = await import("./markdown.js");
  const root = document.createElement("div");
  const view = new MarkdownView(root);
  let text = "";
  for (const piece of pieces) view.update(text += piece, false);
  if (finished) view.update(text, true);
  root.querySelectorAll(".code-head").forEach((node) => node.remove());
  return root.innerHTML.replace(/ (class|tabindex|title|target|rel)="[^"]*"/g, "").replace(/<\\/?(div|span)>/g, "");
}"""
LENGTH = """async ([piece, length]) => {
  const {MarkdownView} = await import("./markdown.js");
  const root = document.createElement("div");
  new MarkdownView(root).update(piece.repeat(length / piece.length), true);
  return root.textContent.length;
}"""


class Markdown(PageCase):
    def setUp(self):
        super().setUp()
        self.open()

    def render(self, text, pieces=None, finished=True):
        return self.page.evaluate(RENDER, [pieces or [text], finished])

    def check(self, cases):
        for text, html in cases.items():
            with self.subTest(text):
                self.assertEqual(self.render(text), html)

    def test_inside_a_paragraph(self):
        self.check({
            "a **b** *c* ~~d~~ `e`": "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>",
            "***both*** __b__ _i_": "<p><strong><em>both</em></strong> <strong>b</strong> <em>i</em></p>",
            "**a *b* c** d": "<p><strong>a <em>b</em> c</strong> d</p>",
            "snake_case_name and 2 * 3 * 4 ** 5": "<p>snake_case_name and 2 * 3 * 4 ** 5</p>",
            "重要的**粗体。**后面": "<p>重要的<strong>粗体。</strong>后面</p>",
            "``a ` b`` `open": "<p><code>a ` b</code> `open</p>",
            r"\*not\* 1\. \\": r"<p>*not* 1. \</p>",
            "one\ntwo<br>three": "<p>one<br>two<br>three</p>",
            "**open *and": "<p>**open *and</p>",
            "**": "<p>**</p>",
        })

    def test_links_lead_to_the_web_alone(self):
        self.check({
            "[a](https://x.org/b_(c))": '<p><a href="https://x.org/b_(c)">a</a></p>',
            "[**a**](http://x.org 'title')": '<p><a href="http://x.org/"><strong>a</strong></a></p>',
            "see https://x.org/a?b=1&c, (https://y.org).":
                '<p>see <a href="https://x.org/a?b=1&amp;c">https://x.org/a?b=1&amp;c</a>, (<a href="https://y.org/">https://y.org</a>).</p>',
            "看https://x.org。好": '<p>看https://x.org。好</p>',
            "看 https://x.org。好": '<p>看 <a href="https://x.org/">https://x.org</a>。好</p>',
            "![alt](https://x.org/i.png)": '<p><a href="https://x.org/i.png">alt</a></p>',
            "[a](javascript:alert(1))": "<p>[a](javascript:alert(1))</p>",
            "[a](JaVaScRiPt:alert(1)) [b](data:text/html,x) [c](//x.org) [d](/v1/models) [e](https://)":
                "<p>[a](JaVaScRiPt:alert(1)) [b](data:text/html,x) [c](//x.org) [d](/v1/models) [e](https://)</p>",
            "[a [b](https://x.org)": '<p>[a <a href="https://x.org/">b</a></p>',
            "[a](https://x.org": '<p>[a](<a href="https://x.org/">https://x.org</a></p>',
        })

    def test_blocks(self):
        self.check({
            "# A\n## B #\ntext": "<h3>A</h3><h4>B</h4><p>text</p>",
            "a\n\n---\nb": "<p>a</p><hr><p>b</p>",
            "> a\n> > b\nc": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>",
            "- a\n  - b\n  - c\n- d": "<ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul>",
            "3. a\n4. b\n   more": '<ol start="3"><li>a</li><li>b<br>more</li></ol>',
            "1. a\n   ```\n   x\n     y\n   ```\n2. b": "<ol><li>a<pre><code>x\n  y</code></pre></li><li>b</li></ol>",
            "1. a\n\n   b\n\n2. c": "<ol><li><p>a</p><p>b</p></li><li>c</li></ol>",
            "- [x] a\n- [ ] b": "<ul><li>☑ a</li><li>☐ b</li></ul>",
            "text\n- a\n- b": "<p>text</p><ul><li>a</li><li>b</li></ul>",
            "It was\n1986. Good": "<p>It was<br>1986. Good</p>",
            "|a|b|\n|-|:-:|\n|1|**2**|\n|3|": "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td>"
                "<td><strong>2</strong></td></tr><tr><td>3</td><td></td></tr></tbody></table>",
            "a | b\nno table": "<p>a | b<br>no table</p>",
            "```\na\n```\nb": "<pre><code>a</code></pre><p>b</p>",
            "````md\n```js\nx\n```\n````": "<pre><code>```js\nx\n```</code></pre>",
            "~~~\n```\n~~~": "<pre><code>```</code></pre>",
            "": "", "\n \n": "",
        })

    def test_html_is_text(self):
        self.check({
            "<img src=x onerror=alert(1)>": "<p>&lt;img src=x onerror=alert(1)&gt;</p>",
            "# <script>1</script>": "<h3>&lt;script&gt;1&lt;/script&gt;</h3>",
            "|<b>|\n|-|\n|<i>|": "<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>&lt;i&gt;</td></tr></tbody></table>",
            "```<b>\n<i>\n```": "<pre><code>&lt;i&gt;</code></pre>",
            "`<b>` **<i>**": "<p><code>&lt;b&gt;</code> <strong>&lt;i&gt;</strong></p>",
        })

    def test_half_of_a_fence_is_code_already(self):
        self.assertEqual(self.render("", ["a\n\n```py", "\nx = 1"], finished=False), "<p>a</p><pre><code>x = 1</code></pre>")
        self.assertEqual(self.render("", ["``", "`\nx\n``"], finished=False), "<pre><code>x\n``</code></pre>")
        self.assertEqual(self.render("```py\nx = 1"), "<pre><code>x = 1</code></pre>")

    def test_in_whatever_pieces_it_comes_the_end_is_the_same(self):
        for text in (page_stub.PROSE, page_stub.HOSTILE, page_stub.CHINESE, "- a\n\n\n- b\n***\n* c\n\n    d\n\n" + "x" * 50):
            whole = self.render(text)
            for size in (1, 3, 17):
                self.assertEqual(self.render(text, page_stub.pieces_of(text, size)), whole)

    def test_long_hostile_texts_are_rendered(self):
        # 300 kB each: what is quadratic does not come to an end within the test's time.
        for piece in ("*a ", "**a ", "_a ", "~~a ", "[", "[](", "[a](", "![", "`", "``a`", "<", "a*", "\\", "> ", "- ", "  - a\n",
                      "|", "| a\n|-\n", "- - -\n", "#", " ", "```\n", "1. ", "h", "https://a", "https://a.b/)", "***", "x", "_*", "( "):
            with self.subTest(piece):
                self.assertGreaterEqual(self.page.evaluate(LENGTH, [piece, 300_000]), 0)

    def test_an_answer_full_of_attacks_stays_text(self):
        answer = self.ask("hostile")
        self.assertIsNone(self.page.evaluate("window.hacked ?? null"))
        self.assertEqual(answer.locator("img, script, iframe, object, style").count(), 0)
        links = self.page.evaluate("[...document.querySelectorAll('.markdown a')].map((a) => [a.href, a.rel, a.target])")
        self.assertTrue(links)
        for href, rel, target in links:
            self.assertTrue(href.startswith("https://example.org/"), href)
            self.assertIn("noopener", rel)
            self.assertEqual(target, "_blank")
        self.assertIn("<b>inside</b>", answer.locator(".code code").inner_text())
        self.assertIn('<img src=x onerror="window.hacked = 1">', answer.inner_text())

    def test_a_line_of_100_kb_does_not_widen_the_page(self):
        answer = self.ask("long line")
        self.assertEqual(len(answer.locator(".body").inner_text().strip()), 100_000)
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 1280)
        self.assertLessEqual(self.page.evaluate("document.getElementById('scroller').scrollWidth"), 1280)

    def test_code_is_copied_as_it_is(self):
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        answer = self.ask("Why?")
        answer.locator(".code-head button").click()
        copied = self.page.evaluate("navigator.clipboard.readText()")
        self.assertEqual(copied, re.search(r"```python\n(.*?)\n```", page_stub.PROSE, re.S).group(1))
        self.assertEqual(answer.locator(".code-head button").get_attribute("aria-label"), "Copied")

    def test_code_that_is_being_written_can_be_scrolled_and_copied(self):
        self.state.gate = threading.Event()
        self.say("half fence")
        self.page.wait_for_selector(".code code >> text=print(1)")
        self.page.evaluate("window.kept = document.querySelector('.code')")
        self.state.gate.set()
        self.until_answer_has("print(2)")
        self.assertTrue(self.page.evaluate("window.kept === document.querySelector('.code')"))
        self.until_done()
        self.assertEqual(self.page.inner_text(".code-head span"), "python")


if __name__ == "__main__":
    main()
