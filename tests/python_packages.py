"""The Python packages that tests need, in BUILD_FOLDER/python: tests/requirements.txt, installed by this Python's pip.

Usage: python_packages.py BUILD_FOLDER installs them unless they are there. Where there is no network it says so, and the
tests that need them skip; under CI it fails. A test imports this module and calls use(BUILD_FOLDER).
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def folder_of(build):
    return pathlib.Path(build).resolve() / "python"


def stamp():
    return hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()


def use(build):
    """Lets this process import them, before what this Python has of the same names, which may be older."""
    folder = str(folder_of(build))
    if folder not in sys.path:
        sys.path.insert(1, folder)


def main():
    folder = folder_of(sys.argv[1])
    mark = folder / "installed"
    if mark.is_file() and mark.read_text() == stamp():
        print(f"already there: {folder}")
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder,
               "--requirement", REQUIREMENTS]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        print(f"the packages of {REQUIREMENTS} cannot be installed; tests that need them skip")
        return 1 if os.environ.get("CI") else 0
    mark.write_text(stamp())
    return 0


if __name__ == "__main__":
    sys.exit(main())
