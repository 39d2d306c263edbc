"""The files of docs/deploy parse, agree with the server, and name only metrics that exist.

Usage: deploy_test.py BUILD_FOLDER BINARY [unittest's arguments]
"""

import configparser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import python_packages
from page_testing import free_port
from serving import default_model

BUILD, BINARY = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "docs" / "deploy"
METRIC = re.compile(r"\b((?:vllm|whippet):\w+)")


def metrics_of_the_source():
    """Every sample name that the code can write, with its labels."""
    names = {}
    for path in ("src/engine/prometheus.cc", "src/serve/counters.cc"):
        text = (ROOT / path).read_text()
        labels = {"model_name", "engine"} if "engine" in path else set()
        for name in re.findall(r'histogram\("([^"]+)"', text):
            names.update({name + "_bucket": labels | {"le"}, name + "_sum": labels, name + "_count": labels})
        for name in re.findall(r'(?:gauge|counter)\("([^"]+)"|number\(out, "([^"]+)"', text):
            names[name[0] or name[1]] = labels
        for name, more in re.findall(r'labelled\("([^"]+)",\s*fmt::format\("((?:[^"\\]|\\.)*)"', text):
            names[name] = labels | set(re.findall(r"(\w+)=", more))
        for name, label in re.findall(r'"(whippet:\w+)\{\{(\w+)=', text):
            names[name] = {label}
    return names


def load_yaml(name):
    python_packages.use(BUILD)
    try:
        import yaml
    except ImportError as error:
        raise unittest.SkipTest(f"no PyYAML: {error}") from None
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.known = metrics_of_the_source()

    def check(self, expression):
        self.assertTrue(METRIC.search(expression) or expression.startswith("up{"), expression)
        for open_, close in ("()", "[]", "{}"):
            self.assertEqual(expression.count(open_), expression.count(close), expression)
        for name, selector in re.findall(r"\b((?:vllm|whippet):\w+)(?:\{([^}]*)\})?", expression):
            self.assertIn(name, self.known, expression)
            for label in re.findall(r"(\w+)(?:=~|!~|!=|=)", selector):
                self.assertIn(label, self.known[name] | {"instance", "job"}, expression)
        for labels in re.findall(r"\bby \(([^)]*)\)", expression):
            for label in re.split(r",\s*", labels):
                self.assertTrue(label in {"instance", "job"} or any(label in self.known[n] for n in METRIC.findall(expression)), expression)

    def test_the_source_is_understood(self):
        self.assertLessEqual({"vllm:time_to_first_token_seconds_bucket", "vllm:request_success_total", "whippet:build_info",
                              "vllm:num_requests_running", "whippet:http_connections", "whippet:http_responses_total"}, set(self.known))
        self.assertEqual(self.known["vllm:request_success_total"], {"model_name", "engine", "finished_reason"})
        with self.assertRaises(AssertionError):
            self.check("rate(vllm:no_such_thing[5m])")
        with self.assertRaises(AssertionError):
            self.check('vllm:num_requests_running{colour="red"}')

    def test_grafana_draws_metrics_that_exist(self):
        dashboard = json.loads((DEPLOY / "grafana.json").read_text())
        targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(targets), 20)
        for expression in targets:
            self.check(expression)
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                self.check(variable["query"])
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in dashboard["panels"]:
            x, y, w, h = (panel["gridPos"][key] for key in "xywh")
            cells = {(i, j) for i in range(x, x + w) for j in range(y, y + h)}
            self.assertFalse(cells & taken or x + w > 24, panel["title"])
            taken |= cells

    def test_alerts_are_about_metrics_that_exist(self):
        (rules,) = load_yaml("alerts.yaml")
        names = []
        for rule in rules["groups"][0]["rules"]:
            self.check(rule["expr"])
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
            self.assertIn("summary", rule["annotations"])
            names.append(rule["alert"])
        self.assertEqual(len(names), len(set(names)))

    def test_promtool_agrees(self):
        if not shutil.which("promtool"):
            self.skipTest("no promtool here (Debian's package prometheus)")
        subprocess.run(["promtool", "check", "rules", DEPLOY / "alerts.yaml"], check=True, capture_output=True)


class Files(unittest.TestCase):
    def shutdown_timeout(self):
        return float(re.search(r"shutdown_timeout_s = (\d+)", (ROOT / "src/serve/server_config.h").read_text()).group(1))

    def check_flags(self, words):
        """Every flag is one that the server has."""
        usage = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True)
        if usage.returncode != 0:
            self.skipTest(f"{BINARY} has no command serve")
        for flag in re.findall(r"--[a-z][a-z-]+", " ".join(words)):
            self.assertRegex(usage.stdout, re.escape(flag.replace("--no-", "--", 1)) + r"\b|" + re.escape(flag) + r"\b")

    def test_the_systemd_unit_parses(self):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(DEPLOY / "whippet.service")
        service = unit["Service"]
        self.assertEqual((service["DynamicUser"], service["ProtectSystem"], service["NoNewPrivileges"]), ("yes", "strict", "yes"))
        self.assertGreater(float(service["TimeoutStopSec"]), self.shutdown_timeout())
        self.check_flags(service["ExecStart"].split())

    def test_systemd_finds_nothing_wrong_with_it(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        done = subprocess.run(["systemd-analyze", "verify", DEPLOY / "whippet.service"], capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line and "whippet.service" in line]
        self.assertEqual(complaints, [])

    def test_the_image_runs_without_rights(self):
        text = (DEPLOY / "Dockerfile").read_text()
        stages = text.split("\nFROM ")
        self.assertEqual(len(stages), 3)  # the comment, the build, what is shipped
        self.assertRegex(stages[-1], r"\nUSER [1-9]\d*:[1-9]\d*\n")
        self.assertIn('ENTRYPOINT ["/usr/local/bin/whippet", "serve"]', stages[-1])
        for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
            for name in source.split():
                self.assertTrue((ROOT / name).exists(), name)

    def test_kubernetes_asks_the_right_paths(self):
        documents = {document["kind"]: document for document in load_yaml("kubernetes.yaml")}
        self.assertEqual(set(documents), {"PersistentVolumeClaim", "Deployment", "Service"})
        pod = documents["Deployment"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        self.assertEqual(container["readinessProbe"]["httpGet"]["path"], "/health")
        self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/livez")
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertGreater(pod["terminationGracePeriodSeconds"], self.shutdown_timeout())
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        self.assertEqual(mounted, {volume["name"] for volume in pod["volumes"]})
        labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(documents["Service"]["spec"]["selector"].items(), labels.items())
        self.check_flags(container["args"])


class ReadOnly(unittest.TestCase):
    """As the container and the unit run it: no rights, the root file system read-only."""

    def test_the_server_runs_as_nobody_on_a_read_only_file_system(self):
        usage = subprocess.run([BINARY, "serve", "--help"], capture_output=True)
        if usage.returncode != 0:
            self.skipTest(f"{BINARY} has no command serve")
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("only root may make a file system of its own")
        model = default_model()
        if model is None:
            self.skipTest("the default model is not in the cache: whippet pull smollm2")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            shutil.copy(BINARY, folder)
            shutil.copy(model, folder)
            self.run_in(folder, model.name)

    def run_in(self, folder, model):
        port = free_port()
        server = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", 'mount -o remount,ro,bind / && exec setpriv --reuid 65534 --regid 65534 --clear-groups '
             '--no-new-privs --bounding-set -all env -i PATH="$PATH" "$@"', "sh", f"{folder}/{BINARY.name}", "serve", f"{folder}/{model}",
             "--host", "0.0.0.0", "--port", str(port), "--api-key", "sesame"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            self.assertEqual(self.status(port, "/health", server), 200)
            self.assertEqual(self.status(port, "/v1/models", server), 401)
            self.assertEqual(self.status(port, "/livez", server), 200)
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer sesame"})) as answer:
                shown = set(METRIC.findall(answer.read().decode()))
            # What the source was read to say is what the server says; answers by status come with the first one.
            self.assertEqual({name for name in metrics_of_the_source() if name not in shown}, set())
        finally:
            server.terminate()
            output = server.communicate()[0]
        self.assertEqual(server.returncode, 0, output)

    def status(self, port, path, server):
        """The status, once it is not that of a server that is loading."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if server.poll() is not None:
                self.fail(f"the server ended: {server.stdout.read()}")
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}").status
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    return error.code
            except OSError:
                pass
            time.sleep(0.1)
        self.fail(f"{path} is never ready")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
