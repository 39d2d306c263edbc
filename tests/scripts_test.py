"""scripts/quickstart and scripts/test say in one line what is wrong. The commands they call are played here."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = [line.split()[:2] for line in (ROOT / "scripts/packages.txt").read_text().splitlines() if line[0] != "#"]

WHIPPET = """#!/bin/sh
case $1 in
  --version) echo "whippet 0.1.0 (test)" ;;
  pull) mkdir -p "$XDG_CACHE_HOME/whippet" && echo broken >"$XDG_CACHE_HOME/whippet/SmolLM2-135M-Instruct.Q4_1.gguf" ;;
esac
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = self.folder / "tree"
        shutil.copytree(ROOT / "scripts", self.tree / "scripts")
        (self.folder / "bin").mkdir()
        self.play("dpkg-query", "".join(f"echo installed {name}\n" for _, name in PACKAGES))
        self.play("apt-get", "exit 0")
        self.play("nvidia-smi", "exit 1")
        self.play("df", "printf 'Filesystem 1M-blocks Used Available\\nx 1 1 99999\\n'")
        self.play("python3", "exit 0")
        build = self.tree / "build"
        self.play("cmake", f"cat >'{build}/whippet' <<'END'\n{WHIPPET}END\nchmod +x '{build}/whippet'")

    def play(self, command, script):
        path = self.folder / "bin" / command
        path.write_text("#!/bin/bash\n" + script + "\n")
        path.chmod(0o755)

    def run_script(self, name, *arguments):
        """Returns (exit code, stdout, the lines of stderr)."""
        environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        done = subprocess.run([self.tree / "scripts" / name, *arguments], env=environment, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr.splitlines()

    def assert_fails_with_one_line(self, result, *words):
        code, _, lines = result
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])

    def test_an_unknown_option_is_named(self):
        for script in ("quickstart", "test"):
            code, _, lines = self.run_script(script, "--fast")
            self.assertEqual(code, 2)
            self.assertIn("--fast", lines[0])

    def test_help_names_every_option(self):
        for script, options in (("quickstart", ("--no-install", "--cuda")), ("test", ("--long", "--no-install"))):
            code, out, _ = self.run_script(script, "--help")
            self.assertEqual(code, 0)
            for option in options:
                self.assertIn(option, out)

    def test_no_install_lists_what_is_missing_and_installs_nothing(self):
        self.play("dpkg-query", "echo installed g++; echo config-files cmake")
        self.play("apt-get", f"touch '{self.folder}/called'")
        result = self.run_script("quickstart", "--no-install")
        self.assert_fails_with_one_line(result, "cmake ninja-build", "--no-install")
        self.assertNotIn(" g++", result[2][0])
        self.assertFalse((self.folder / "called").exists())

    def test_no_network(self):
        self.play("python3", '[[ $3 == --version ]] || { echo "Failed to establish a new connection"; exit 1; }')
        self.assert_fails_with_one_line(self.run_script("quickstart"), "pip download", "no network")

    def test_no_disk_before_the_build_and_in_the_middle(self):
        self.play("df", "printf 'Filesystem 1M-blocks Used Available\\nx 1 1 12\\n'")
        self.assert_fails_with_one_line(self.run_script("quickstart"), "no disk space", "12 MiB")
        self.setUp()
        self.play("cmake", "echo 'fatal error: x.o: No space left on device'; exit 1")
        self.assert_fails_with_one_line(self.run_script("quickstart"), "no disk space")

    def test_no_compiler(self):
        self.play("cmake", "echo 'No CMAKE_CXX_COMPILER could be found.'; exit 1")
        self.assert_fails_with_one_line(self.run_script("quickstart"), "configuring", "C++20 compiler")

    def test_code_that_does_not_compile(self):
        self.play("cmake", "[[ $1 != --build ]] || { echo 'a.cc:7:1: error: no such thing'; echo stopped; exit 1; }")
        self.assert_fails_with_one_line(self.run_script("test", "--quick"), "compiling", "a.cc:7:1: error: no such thing")

    def test_a_gpu_build_that_is_asked_for_and_cannot_be(self):
        self.assert_fails_with_one_line(self.run_script("quickstart", "--cuda"), "--cuda")

    def test_a_model_of_another_checksum_is_refused(self):
        self.assert_fails_with_one_line(self.run_script("quickstart"), "sha256")

    def test_the_readmes_list_every_package_of_the_build(self):
        for name in ("README.md", "README.zh.md"):
            text = (ROOT / name).read_text()
            for group, package in PACKAGES:
                if group in ("build", "model"):
                    self.assertIn(package, text, name)


if __name__ == "__main__":
    unittest.main()
