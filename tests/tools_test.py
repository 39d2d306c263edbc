"""The checks of tools/ find what they are for, and nothing else. Each case is a small tree with one fault."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).parent.parent / "tools"


def run(tool, files):
    """Runs a tool on a tree of {path: text}. Returns (exit code, what it printed)."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, TOOLS / tool, folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class Layers(unittest.TestCase):
    def test_accepts_includes_that_go_left(self):
        code, _ = run("check_layers", {"src/model/a.cc": '#include <vector>\n#include "base/error.h"\n'})
        self.assertEqual(code, 0)

    def test_names_the_line_of_an_include_that_goes_right(self):
        code, out = run("check_layers", {"src/base/a.h": '#pragma once\n#include "model/spec.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("src/base/a.h:2: base may not include model/spec.h", out)

    def test_refuses_angle_brackets_as_a_way_round(self):
        self.assertEqual(run("check_layers", {"src/text/a.cc": "#include <hub/hub.h>\n"})[0], 1)

    def test_refuses_paths_that_do_not_start_at_src(self):
        self.assertEqual(run("check_layers", {"src/model/a.cc": '#include "spec.h"\n'})[0], 1)
        self.assertEqual(run("check_layers", {"src/model/a.cc": '#include "../cli/main.h"\n'})[0], 1)

    def test_refuses_a_folder_that_is_not_on_the_list(self):
        self.assertEqual(run("check_layers", {"src/utils/a.h": "#pragma once\n"})[0], 1)

    def test_keeps_the_public_headers_free_of_the_inside(self):
        self.assertEqual(run("check_layers", {"include/whippet/a.h": '#include "base/error.h"\n'})[0], 1)


class Sizes(unittest.TestCase):
    def test_accepts_a_file_at_its_cap_and_refuses_one_line_more(self):
        self.assertEqual(run("check_size", {"src/base/a.h": "int x;\n" * 120})[0], 0)
        self.assertEqual(run("check_size", {"src/base/a.h": "int x;\n" * 121})[0], 1)
        self.assertEqual(run("check_size", {"src/base/a.cc": "int x;\n" * 401})[0], 1)
        self.assertEqual(run("check_size", {"src/backend/a.cu": "int x;\n" * 600})[0], 0)
        self.assertEqual(run("check_size", {"tools/a.py": "x = 1\n" * 401})[0], 1)
        self.assertEqual(run("check_size", {"tools/a": "#!/bin/bash\n" + "true\n" * 400})[0], 1)

    def test_refuses_a_function_of_61_lines(self):
        for body, code in ((58, 0), (59, 1)):
            text = "namespace whippet {\n\nvoid f() {\n" + "  g();\n" * body + "}\n\n}  // namespace whippet\n"
            self.assertEqual(run("check_size", {"src/base/a.cc": text})[0], code)

    def test_finds_a_long_method_inside_a_class(self):
        text = "class A {\n public:\n  void f(int a,\n         int b) {\n" + "    g();\n" * 60 + "  }\n};\n"
        code, out = run("check_size", {"src/base/a.cc": text})
        self.assertEqual(code, 1)
        self.assertIn("src/base/a.cc:3: a function of 63 lines", out)

    def test_a_long_class_or_table_is_no_function(self):
        table = "constexpr int kTable[] = {\n" + "    1,\n" * 90 + "};\n"
        members = "struct A {\n" + "  int a = 0;\n\n" * 50 + "};\n"
        self.assertEqual(run("check_size", {"src/base/a.cc": table + members})[0], 0)

    def test_refuses_a_long_python_function_and_a_wide_line(self):
        self.assertEqual(run("check_size", {"tools/a.py": "def f():\n" + "    g()\n" * 60})[0], 1)
        self.assertEqual(run("check_size", {"src/base/a.cc": "// " + "x" * 108 + "\n"})[0], 1)

    def test_a_string_that_cannot_be_broken_may_be_wide(self):
        self.assertEqual(run("check_size", {"src/base/a.cc": 'auto s = "' + "x" * 120 + '";\n'})[0], 0)


class Abstract(unittest.TestCase):
    ABSTRACT = "class %s {\n public:\n  virtual void f() const = 0;\n};\n"

    def test_accepts_the_two(self):
        files = {"src/backend/backend.h": self.ABSTRACT % "Backend", "src/backend/comm.h": self.ABSTRACT % "Comm"}
        code, out = run("check_abstract", files)
        self.assertEqual(code, 0)
        self.assertIn("Backend, Comm", out)

    def test_refuses_a_third_by_name(self):
        code, out = run("check_abstract", {"src/model/a.h": self.ABSTRACT % "Model"})
        self.assertEqual(code, 1)
        self.assertIn("src/model/a.h:3: Model is abstract", out)

    def test_refuses_a_second_class_of_an_allowed_name(self):
        files = {"src/backend/backend.h": self.ABSTRACT % "Backend", "src/model/b.h": self.ABSTRACT % "Backend"}
        self.assertEqual(run("check_abstract", files)[0], 1)

    def test_finds_one_nested_in_another(self):
        text = "struct Outer final {\n  struct Inner : Base {\n    virtual int f(\n        int a) = 0;\n  };\n};\n"
        code, out = run("check_abstract", {"src/model/a.h": text})
        self.assertEqual(code, 1)
        self.assertIn("Inner is abstract", out)

    def test_ignores_members_that_are_zero_and_comments(self):
        text = "struct A {\n  int a = 0;\n  // virtual void f() = 0;\n  bool virtual_memory = 0;\n};\n"
        self.assertEqual(run("check_abstract", {"src/model/a.h": text})[0], 0)


class Names(unittest.TestCase):
    STRUCT = "namespace whippet {\nstruct Thing {\n  int x;\n  struct Part {};\n};\n}  // namespace whippet\n"

    def test_names_both_places_of_a_type_that_is_defined_twice(self):
        code, out = run("check_names", {"src/api/a.h": self.STRUCT, "src/hub/b.cc": "\n" + self.STRUCT})
        self.assertEqual(code, 1)
        self.assertIn("src/hub/b.cc:3: whippet::Thing is defined in src/api/a.h:2 too", out)
        self.assertNotIn("Part", out)

    def test_lets_other_namespaces_and_unnamed_ones_be(self):
        files = {
            "src/api/a.h": self.STRUCT,
            "src/hub/b.cc": self.STRUCT.replace("namespace whippet {", "namespace whippet::hub {"),
            "src/hub/c.cc": "namespace whippet {\nnamespace {\nenum class Thing : int { kA };\n}\n}\n",
            "src/cli/d.cc": "namespace whippet {\nstruct Thing;\nvoid f() { struct Thing { int y; }; }\n}\n",
        }
        code, out = run("check_names", files)
        self.assertEqual((code, out), (0, "check_names: 2 types, 0 twice\n"))


if __name__ == "__main__":
    unittest.main()
