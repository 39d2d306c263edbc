"""The examples of docs/server.md run, against the binary and the default model, and say what they should.

Usage: server_guide_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import python_packages
from page_testing import free_port
from serving import serve

BUILD, BINARY = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "docs" / "server.md").read_text()
ADDRESS = "http://127.0.0.1:8000"


def blocks(language, text=GUIDE):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


class Guide(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.address, why_not = serve(cls, BINARY, free_port())
        if not cls.address:
            raise unittest.SkipTest(why_not)

    def run_block(self, command, text):
        self.assertIn(ADDRESS, text)
        environment = {**os.environ, "PYTHONPATH": str(python_packages.folder_of(BUILD))}
        done = subprocess.run([*command, text.replace(ADDRESS, self.address.rstrip("/"))], capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_curl(self):
        whole, stream, texts = blocks("sh")
        answer = json.loads(self.run_block(["sh", "-c"], whole))
        self.assertIn("Paris", answer["choices"][0]["message"]["content"])
        events = re.findall(r"^data: (.*)$", self.run_block(["sh", "-c"], stream), re.M)
        self.assertEqual(events[-1], "[DONE]")
        said = "".join(choice["delta"].get("content") or "" for event in events[:-1] for choice in json.loads(event)["choices"])
        self.assertEqual(said, answer["choices"][0]["message"]["content"])
        self.assertEqual(json.loads(events[-2])["usage"]["completion_tokens"], answer["usage"]["completion_tokens"])
        self.assertEqual(len(json.loads(self.run_block(["sh", "-c"], texts))["choices"]), 2)

    def test_the_readmes(self):
        for name in ("README.md", "README.zh.md"):
            text = (ROOT / name).read_text()
            with self.subTest(name):
                (command,) = blocks("sh", text)
                self.assertIn("Paris", self.run_block(["sh", "-c"], command))
                self.assertEqual(len(blocks("python", text)), 2)
                self.run_python(blocks("python", text))

    def test_python(self):
        self.run_python(blocks("python"))

    def run_python(self, texts):
        packages = [path.name for path in python_packages.folder_of(BUILD).glob("*")]
        for text in texts:
            package = re.search(r"^from (\w+)", text).group(1)
            with self.subTest(package):
                if package not in packages:
                    self.skipTest(f"no {package}: tests/python_packages.py {BUILD}")
                self.assertIn("Paris", self.run_block([sys.executable, "-c"], text))

    def test_every_address_and_flag_of_the_guide_exists(self):
        usage = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True).stdout
        for flag in set(re.findall(r"`?(--[a-z][a-z-]+)", GUIDE)):
            self.assertRegex(usage, f"{flag}|{flag.replace('--no-', '--')}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
