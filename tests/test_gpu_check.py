"""The proof script's own logic: the status without torch, whose sources a proof is of, what counts as passed."""

import json
import pathlib
import subprocess
import sys
import time

import gpu_check
import pytest

TESTS = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A results folder of our own under a root of our own, with today's digest known."""
    monkeypatch.setattr(gpu_check, "RESULTS", tmp_path)
    monkeypatch.setattr(gpu_check, "ROOT", tmp_path)
    monkeypatch.setattr(gpu_check, "digest_of_tree", lambda: "today")
    (tmp_path / "h200").mkdir()
    return tmp_path / "h200" / "gpu_check.json"


def passing():
    modules = {name: {"passed": 3, "failed": 0, "skipped": 0} for name in gpu_check.gpu_modules()}
    return {
        "digest": "today",
        "tests": {"modules": modules},
        "sanitizer": {"tools": {tool: {"verdict": "clean"} for tool in gpu_check.TOOLS}},
    }


def test_status_needs_no_torch():
    code = f"""
import runpy, sys
for name in ("torch", "numpy", "pytest"):
    sys.modules[name] = None                       # importing it would fail
sys.argv = ["gpu_check.py", "--status"]
runpy.run_path({str(TESTS / "gpu_check.py")!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and done.stdout.count("\n") <= 1, done.stderr


def test_status_is_silent_for_todays_proof_alone(results):
    assert "no GPU proof" in gpu_check.status()
    gpu_check.write(results, passing())
    assert gpu_check.status() is None
    gpu_check.write(results, {**passing(), "digest": "yesterday"})
    assert "other sources" in gpu_check.status() and "\n" not in gpu_check.status()
    results.write_text("no json")
    assert gpu_check.status()


def broken_proofs():
    for part, key in (("tests", "modules"), ("sanitizer", "tools")):
        missing = passing()
        missing[part][key].popitem()
        yield f"{part} missing one", missing
        yield f"without {part}", {name: value for name, value in passing().items() if name != part}
    failed, late, found, unknown, empty = (passing() for _ in range(5))
    failed["tests"]["modules"]["test_sort"]["failed"] = 1
    yield "a failure", failed
    late["tests"]["modules"]["test_sort"]["not_run"] = "stopped at the time limit"
    yield "stopped", late
    found["sanitizer"]["tools"]["memcheck"]["verdict"] = "findings"
    yield "findings", found
    unknown["sanitizer"]["tools"]["racecheck"]["verdict"] = "no verdict"
    yield "no verdict", unknown
    for result in empty["tests"]["modules"].values():
        result["passed"] = 0
    yield "nothing ran", empty


@pytest.mark.parametrize("what, proof", list(broken_proofs()), ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_no_proof(results, what, proof):
    gpu_check.write(results, proof)
    assert json.loads(results.read_text())["passed"] is False, what
    assert "did not pass" in gpu_check.status()


def test_results_of_other_sources_are_dropped(results):
    gpu_check.write(results, passing())
    assert gpu_check.start_proof(results, "today", {})["tests"]
    assert set(gpu_check.start_proof(results, "tomorrow", {})) == {"environment", "digest"}


def test_a_module_is_counted_from_its_report(tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(
        "import pytest\npytestmark = pytest.mark.gpu\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert False, 'told so'\n"
        "@pytest.mark.skip(reason='not today')\ndef test_left_out(): pass\n"
        "@pytest.mark.gpu\n@pytest.mark.parametrize('i', [1, 2])\n"
        "def test_random(i, record_property): record_property('cases', 250)\n"
    )
    monkeypatch.setattr(gpu_check, "ROOT", tmp_path)
    result = gpu_check.run_module("test_some", time.monotonic() + 100, tmp_path)
    assert (result["passed"], result["failed"], result["skipped"]) == (3, 1, 1) and result["random_cases"] == 500
    assert result["skips"] == {"not today": 1} and "told so" in result["failures"][0]
    assert not gpu_check.module_passed(result)
    (tmp_path / "tests" / "test_some.py").write_text("import os\nos.abort()\n")
    (tmp_path / "test_some.xml").unlink()
    assert not gpu_check.module_passed(gpu_check.run_module("test_some", time.monotonic() + 100, tmp_path))
    assert not gpu_check.module_passed(gpu_check.run_module("test_some", time.monotonic(), tmp_path))


SANITIZER = """#!/bin/sh
case "$*" in *--help*) echo "--kernel-regex --padding"; exit 0;; esac
{body}
"""


@pytest.mark.parametrize(
    "body, verdict",
    [
        ("echo 'SANITIZER SET: 7 calls'; echo '========= ERROR SUMMARY: 0 errors'", "clean"),
        ("echo 'SANITIZER SET: 7 calls'; echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'", "clean"),
        ("echo 'SANITIZER SET: 7 calls'; echo '========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)'", "findings"),
        ("echo 'SANITIZER SET: 7 calls'; echo '========= ERROR SUMMARY: 3 errors'; exit 9", "findings"),
        ("echo '========= ERROR SUMMARY: 0 errors'; exit 1", "no verdict"),
        ("echo 'Device not supported'; exit 1", "no verdict"),
    ],
)
def test_verdicts_of_the_sanitizer(tmp_path, body, verdict):
    sanitizer = tmp_path / "compute-sanitizer"
    sanitizer.write_text(SANITIZER.format(body=body))
    sanitizer.chmod(0o755)
    result = gpu_check.run_tool(str(sanitizer), "racecheck", 60)
    assert result["verdict"] == verdict and (verdict == "clean") == ("reason" not in result)
    assert result["calls"] in (0, 7 * len(gpu_check.parts_of_set())) and len(gpu_check.parts_of_set()) >= 6
    assert gpu_check.run_tool(None, "racecheck", 60)["verdict"] == "no verdict"


def test_one_bad_part_spoils_a_tool(tmp_path):
    sanitizer = tmp_path / "compute-sanitizer"
    clean = "echo 'SANITIZER SET: 7 calls'; echo '========= ERROR SUMMARY: 0 errors'"
    for bad, verdict in (("echo '========= ERROR SUMMARY: 3 errors'", "findings"), ("sleep 60", "no verdict")):
        sanitizer.write_text(SANITIZER.format(body=f'case "$*" in *run_merges*) {bad};; *) {clean};; esac'))
        sanitizer.chmod(0o755)
        result = gpu_check.run_tool(str(sanitizer), "memcheck", 10, jobs=8)
        assert result["verdict"] == verdict and result["reason"].startswith("run_merges: ")


def test_the_digest_is_of_sources_alone(tmp_path):
    """Built files differ from machine to machine; a proof made on one has to be recognised on another."""
    digest_of = load_digest()
    for name, text in (("csrc/a.h", "1"), ("torch_gpusort/b.py", "2"), ("tests/host/c.cpp", "3")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = digest_of(tmp_path)
    for name in (
        "torch_gpusort/_C.so",
        "torch_gpusort/__pycache__/b.pyc",
        "tests/host/build/test_c",
        "tests/.pytest_cache/x",
        "tests/host/c.o",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("built here")
        assert digest_of(tmp_path) == before, f"{name} counts as a source"
    (tmp_path / "csrc/a.h").write_text("4")
    assert digest_of(tmp_path) != before


def load_digest():
    sys.path.insert(0, str(TESTS.parent))
    try:
        from benchmarks.tree_digest import digest
    finally:
        sys.path.pop(0)
    return digest
