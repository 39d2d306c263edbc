"""The release binary travels: what it links, how it was compiled, what cpack makes of it.

Usage: release_test.py BUILD_FOLDER SOURCE_FOLDER BINARY [unittest's arguments]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, BINARY = (pathlib.Path(argument) for argument in sys.argv[1:4])
# Names that every distribution with glibc keeps stable.
STABLE = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libcurl.so.4",
          "libssl.so.3", "libcrypto.so.3", "libz.so.1"}
GLIBC = (2, 36)  # Debian 12


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def needed_by(path):
    """The names that the dynamic section asks for."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", "--wide", path)))


class Binary(unittest.TestCase):
    def test_it_asks_only_for_libraries_of_stable_names(self):
        self.assertEqual({name for name in needed_by(BINARY) if not name.startswith("ld-linux")} - STABLE, set())

    def test_ldd_finds_every_library(self):
        listing = output("ldd", BINARY)
        self.assertNotIn("not found", listing)
        self.assertIn("libc.so.6", listing)

    def test_it_asks_for_no_newer_glibc_than_debian_12(self):
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "--version-info", "--wide", BINARY))
        self.assertLessEqual(max((int(major), int(minor)) for major, minor in versions), GLIBC)

    def test_nothing_was_compiled_for_this_machine_alone(self):
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        self.assertTrue(commands)
        for entry in commands:
            self.assertNotRegex(entry["command"], r"-m(arch|tune|cpu)=native", entry["file"])

    def test_instruction_sets_beyond_the_base_are_kept_to_the_cpu_backend(self):
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            if re.search(r"\s-m(avx|fma|f16c|amx|arch=x86-64-v)", entry["command"]):
                self.assertIn("src/backend/cpu/", entry["file"])

    def test_version_names_the_commit_and_the_instruction_sets(self):
        text = output(BINARY, "--version")
        self.assertRegex(text, r"whippet \d+\.\d+\.\d+")
        self.assertRegex(text, r"\b[0-9a-f]{7,40}(-dirty)?\b|unknown")
        self.assertRegex(text.lower(), r"avx|sse|neon|portable|scalar")


class Tarball(unittest.TestCase):
    def test_cpack_makes_one_that_starts_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            output("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder, cwd=BUILD)
            (made,) = pathlib.Path(folder).glob("whippet-*.tar.gz")
            output("tar", "-xf", made, "-C", folder)
            top = pathlib.Path(folder, made.name.removesuffix(".tar.gz"))
            for name in ("LICENSE", "THIRD_PARTY_NOTICES.md", "README.md", "README.zh.md", "CHANGELOG.md"):
                self.assertEqual((top / name).read_bytes(), (SOURCE / name).read_bytes())
            clean = {"PATH": "/usr/bin:/bin", "HOME": folder}
            self.assertEqual(output(top / "bin/whippet", "--version", cwd="/", env=clean),
                             output(BINARY, "--version"))
            self.assertEqual(needed_by(top / "bin/whippet"), needed_by(BINARY))

    def test_the_commit_survives_git_archive(self):
        if not (SOURCE / ".git").exists():
            self.skipTest("no checkout here")
        with tempfile.TemporaryDirectory() as folder:
            packed = pathlib.Path(folder, "tree.tar")
            output("git", "-C", SOURCE, "archive", "--output", packed, "HEAD", "cmake")
            output("tar", "-xf", packed, "-C", folder)
            stamp = pathlib.Path(folder, "stamp.h")
            output("cmake", f"-DSOURCE={folder}", "-DVERSION=1.2.3", f"-DOUT={stamp}", "-P",
                   SOURCE / "cmake/WriteVersionStamp.cmake")
            commit = re.search(r'WHIPPET_COMMIT "([0-9a-f]+)"', stamp.read_text()).group(1)
            self.assertTrue(output("git", "-C", SOURCE, "rev-parse", "HEAD").startswith(commit))


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
