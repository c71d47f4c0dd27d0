"""The GPU proof: runs every test that needs a GPU, and compute-sanitizer over a small set, and writes down what happened and where.

    python3 tests/gpu_check.py                     everything, into benchmarks/results/<gpu>/gpu_check.json
    python3 tests/gpu_check.py --only sanitizer    one part (or --only tests); parts of the same sources meet in one file
    python3 tests/gpu_check.py --resume            only the modules and tools that have no passing result for these sources yet
    python3 tests/gpu_check.py --status            prints a line if the file is not the proof of these sources, nothing if it is

The file is written in any case and after each step. The exit status is 1 if anything failed or was not reached in time; without --only,
also if anything is missing. The digest is that of benchmarks/tree_digest.py: results of other sources are dropped, never mixed in.

What to expect of the sanitizer (PART_NOTES goes into the file):
- memcheck and synccheck watch every kernel, torch's own too. racecheck and initcheck watch the kernels of namespace gpusort alone.
- racecheck sees shared memory only. The look-back between blocks of the radix sort goes through global memory, ordered by acquire and
  release; no tool here proves that, the tests of results do.
- No finding is expected and none is filtered out: an error or a warning of any tool fails the run and is kept, with its text, in the file.
  A tool that can not run or does not come to an end has "no verdict" and a reason, and fails the run too.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
RESULTS = ROOT / "benchmarks" / "results"
SANITIZER_SET = TESTS / "gpu" / "sanitizer_set.py"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
GPU_TEST = re.compile(r"^def test_\w+\((?:\w+, )*device\b|^(?:pytestmark = |@)pytest\.mark\.(?:gpu|two_gpus)\b", re.MULTILINE)
# These measure the memory of the whole GPU or fill it, so nothing may run beside them.
ALONE = ("test_memory", "test_large", "test_errors")
PART_NOTES = {
    "memcheck": "every kernel; torch's caching allocator off, so that each tensor is an allocation of its own",
    "racecheck": "kernels of namespace gpusort; shared memory only: the look-back between blocks is in global memory, which no tool checks",
    "initcheck": "kernels of namespace gpusort; inputs are copied from the host and results copied back; the memory of mapped buckets is "
    "written before, since writes by bulk copies are not seen",
    "synccheck": "every kernel",
}


def digest_of_tree():
    spec = importlib.util.spec_from_file_location("tree_digest", ROOT / "benchmarks" / "tree_digest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.digest(ROOT)


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


# ---- status


def status():
    """One line if no committed file is the complete, passing proof of the sources as they are; None if one is."""
    files = sorted(RESULTS.glob("*/gpu_check.json"))
    if not files:
        return "no GPU proof yet: run `make gpu-check` on a machine with a GPU and commit benchmarks/results/<gpu>/gpu_check.json"
    today, lines = digest_of_tree(), []
    for path in files:
        proof = read(path)
        where = path.relative_to(ROOT)
        if proof.get("digest") != today:
            lines.append(f"{where} is of other sources ({str(proof.get('digest'))[:12]}, not {today[:12]}): run `make gpu-check` again")
        elif not proof.get("passed"):
            lines.append(f"{where} is of these sources but did not pass: {'; '.join(proof.get('problems', ['unreadable'])[:3])}")
        else:
            return None
    return lines[0]


def environment_of_tests():
    """The package from the source folder, and the modules beside the tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), str(TESTS), os.environ.get("PYTHONPATH")]))}


# ---- tests


def gpu_modules():
    """The test modules that hold a test for the GPU, slowest kinds first so that they overlap best."""
    first = ("test_sort", "test_radix_sort", "test_merge", "test_fuzz_gpu", "test_compile", "test_autograd", "test_properties")
    names = [path.stem for path in sorted(TESTS.glob("test_*.py")) if GPU_TEST.search(path.read_text())]
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))


def run_module(name, deadline, folder):
    """Run the GPU tests of one module in a process of its own; what junit counted, or why there is nothing to count."""
    started = time.monotonic()
    if deadline - started < 5:
        return {"not_run": "no time was left"}
    report = pathlib.Path(folder) / f"{name}.xml"
    command = [sys.executable, "-m", "pytest", f"tests/{name}.py", "-m", "gpu or two_gpus", "-q", "-p", "no:cacheprovider"]
    command.append(f"--junitxml={report}")
    environment = {**environment_of_tests(), "OMP_NUM_THREADS": "4"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=deadline - started)
        code, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        output = late.stdout or ""
        output = output.decode(errors="replace") if isinstance(output, bytes) else output
        return {"not_run": f"stopped at the time limit after {time.monotonic() - started:.0f} s", "tail": output[-500:]}
    result = {"passed": 0, "failed": 0, "skipped": 0, "seconds": round(time.monotonic() - started, 1), "skips": {}, "failures": []}
    if not report.exists():
        return {**result, "not_run": f"pytest ended with status {code} and no report", "tail": output[-2000:]}
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        kind = "passed" if outcome is None else "skipped" if outcome.tag == "skipped" else "failed"
        result[kind] += 1
        # A test that runs many random cases says how many.
        counted = [int(entry.get("value")) for entry in case.iter("property") if entry.get("name") == "cases"]
        if counted:
            result["random_cases"] = result.get("random_cases", 0) + sum(counted)
        if kind == "skipped":
            reason = outcome.get("message", "no reason given")
            result["skips"][reason] = result["skips"].get(reason, 0) + 1
        elif kind == "failed":
            result["failures"].append(f"{case.get('name')}: {(outcome.get('message') or outcome.text or '')[:300]}")
    if code not in (0, 1, 5) or (code == 1 and not result["failed"]):
        result["not_run"] = f"pytest ended with status {code}"
        result["tail"] = output[-2000:]
    result["failures"] = result["failures"][:20]
    return result


def module_passed(result):
    return not result.get("failed") and "not_run" not in result


def show_module(name, result):
    counts = ", ".join(f"{result[key]} {key}" for key in ("passed", "failed", "skipped") if result.get(key))
    print(f"  {name:24} {counts or 'nothing ran'}  {result.get('seconds', 0):.0f} s  {result.get('not_run', '')}", flush=True)
    for failure in result.get("failures", [])[:5]:
        print(f"      {failure}", flush=True)
    if "tail" in result:
        print(result["tail"], flush=True)


def run_tests(proof, names, time_limit, jobs, save):
    deadline = time.monotonic() + time_limit
    modules = proof.setdefault("tests", {}).setdefault("modules", {})
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        together = {pool.submit(run_module, name, deadline, folder): name for name in names if name not in ALONE}
        for future in concurrent.futures.as_completed(together):
            modules[together[future]] = future.result()
            show_module(together[future], future.result())
            save()
        for name in (name for name in names if name in ALONE):
            modules[name] = run_module(name, deadline, folder)
            show_module(name, modules[name])
            save()


# ---- compute-sanitizer


def find_sanitizer():
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [os.environ.get("PATH", "")] + [f"{home}/{place}" for home in homes if home for place in ("bin", "compute-sanitizer")]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


def sanitizer_options(sanitizer, tool):
    """Our kernels alone where torch's would only add noise; the name of the filter has changed between releases."""
    offered = subprocess.run([sanitizer, "--help"], capture_output=True, text=True).stdout
    options = ["--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]
    if tool in ("racecheck", "initcheck"):
        options += ["--kernel-regex" if "--kernel-regex" in offered else "--kernel-name", "kns=gpusort"]
    if tool == "memcheck" and "--padding" in offered:
        options += ["--padding", "256"]
    return options


def parts_of_set():
    """The functions of the set, each of which is run in a process of its own, several side by side: most of their time is the host's."""
    return re.findall(r"^def (run_\w+)\(", SANITIZER_SET.read_text(), re.MULTILINE)


def environment_of_part(tool, name):
    """Each tensor is an allocation of its own, but where initcheck would not see who writes: those blocks the host has written before."""
    environment = {**environment_of_tests(), "CUDA_MODULE_LOADING": "LAZY"}
    if (tool, name) != ("initcheck", "run_mapped_buckets"):
        environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    return environment


def run_part(command, environment, limit):
    """(status, output) of one process; status is None if it did not end in time."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=max(1, limit))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the tool and the program that it watches
        return None, process.communicate()[0]


def verdict_of_part(status, output):
    """(verdict, errors, calls, reason) of one process under the tool."""
    summary = re.findall(r"ERROR SUMMARY: (\d+) errors?\s*$|RACECHECK SUMMARY: (\d+) hazard", output, re.MULTILINE)
    calls = re.search(r"SANITIZER SET: (\d+) calls", output)
    count = int(calls.group(1)) if calls else 0
    if status is None:
        return "no verdict", None, count, "stopped at the time limit"
    if not summary:
        return "no verdict", None, count, f"no summary; status {status}"
    errors = sum(int(errors or hazards) for errors, hazards in summary)
    if errors:
        return "findings", errors, count, f"{errors} findings"
    if calls and status == 0:
        return "clean", 0, count, ""
    return "no verdict", 0, count, f"the calls did not end well (status {status})"


def run_tool(sanitizer, tool, limit, jobs=1):
    started = time.monotonic()
    result = {"verdict": "no verdict", "errors": None, "note": PART_NOTES[tool]}
    if sanitizer is None:
        return {**result, "reason": "compute-sanitizer is neither in PATH nor in CUDA_HOME"}
    if limit < 10:
        return {**result, "reason": "no time was left"}
    options = sanitizer_options(sanitizer, tool)
    command = [sanitizer, *options, sys.executable, str(SANITIZER_SET)]
    names = parts_of_set()

    def run(name):
        return run_part([*command, name], environment_of_part(tool, name), limit - (time.monotonic() - started))

    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        done = list(pool.map(run, names))
    parts = [verdict_of_part(*part) for part in done]
    worst = next((verdict for verdict in ("findings", "no verdict") if any(part[0] == verdict for part in parts)), "clean")
    counted = [errors for _, errors, _, _ in parts if errors is not None]
    result.update(
        verdict=worst,
        errors=sum(counted) if counted else None,
        seconds=round(time.monotonic() - started, 1),
        options=" ".join(options),
        calls=sum(calls for _, _, calls, _ in parts),
    )
    if worst != "clean":
        bad = [(name, part, output) for name, part, (_, output) in zip(names, parts, done, strict=True) if part[0] != "clean"]
        result["reason"] = "; ".join(f"{name}: {part[3]}" for name, part, _ in bad)
        result["tail"] = bad[0][2][-4000:]
    return result


def run_sanitizer(proof, tools, time_limit, jobs, save):
    deadline, sanitizer = time.monotonic() + time_limit, find_sanitizer()
    results = proof.setdefault("sanitizer", {}).setdefault("tools", {})
    for tool in tools:
        results[tool] = run_tool(sanitizer, tool, deadline - time.monotonic(), jobs)
        result = results[tool]
        print(f"  {tool:10} {result['verdict']}  {result.get('calls', 0)} calls  {result.get('reason', '')}", flush=True)
        if "tail" in result:
            print(result["tail"], flush=True)
        save()


# ---- the file


def problems_of(proof, part=None):
    """Why this is no complete, passing proof (or why the part "tests" or "sanitizer" is not); nothing if it is one."""
    found = []
    if part != "sanitizer":
        modules = proof.get("tests", {}).get("modules", {})
        found += [f"{name}: not run" for name in gpu_modules() if name not in modules]
        for name, result in modules.items():
            if not module_passed(result):
                found.append(f"{name}: {result.get('failed', 0)} failed {result.get('not_run', '')}".strip())
        if not sum(result.get("passed", 0) for result in modules.values()):
            found.append("no test passed")
    if part != "tests":
        tools = proof.get("sanitizer", {}).get("tools", {})
        found += [f"{tool}: not run" for tool in TOOLS if tool not in tools]
        found += [
            f"{tool}: {result['verdict']}, {result.get('reason', '')}" for tool, result in tools.items() if result["verdict"] != "clean"
        ]
    return found


def write(path, proof):
    proof["problems"] = problems_of(proof)
    proof["passed"] = not proof["problems"]
    modules = proof.get("tests", {}).get("modules", {})
    if modules:
        proof["tests"]["total"] = {key: sum(result.get(key, 0) for result in modules.values()) for key in ("passed", "failed", "skipped")}
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**proof, "tests": {**proof["tests"], "modules": dict(sorted(modules.items()))}} if modules else proof
    path.write_text(json.dumps(content, indent=1) + "\n")


def start_proof(path, digest, environment):
    """The file of these sources so far, or a new one: what other sources did proves nothing about these."""
    proof = read(path)
    if proof.get("digest") != digest:
        proof = {}
    return {**proof, "environment": environment, "digest": digest}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", action="store_true", help="print a line if there is no proof of these sources (standard library only)")
    parser.add_argument("--only", choices=("tests", "sanitizer"), help="run one part")
    parser.add_argument("--modules", help="test modules, separated by commas (test_sort,test_merge)")
    parser.add_argument("--tools", help=f"tools of compute-sanitizer, separated by commas ({','.join(TOOLS)})")
    parser.add_argument("--resume", action="store_true", help="leave out what has passed with these sources")
    parser.add_argument("--time-limit", type=float, default=540, metavar="SECONDS", help="for each part (540)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=max(1, min(5, (os.cpu_count() or 2) // 2)),
        help="test modules, or parts of the sanitizer's calls, at a time",
    )
    parser.add_argument("--results", type=pathlib.Path, help="the file to write, instead of benchmarks/results/<gpu>/gpu_check.json")
    options = parser.parse_args()
    if options.status:
        if line := status():
            print(line)
        return 0

    sys.path.insert(0, str(ROOT))
    import torch

    from benchmarks import result_file

    if not torch.cuda.is_available():
        print("no GPU: torch sees none, so there is nothing to prove here", file=sys.stderr)
        return 1
    environment = {**result_file.environment(), "gpu_count": torch.cuda.device_count()}
    environment = {key: value for key, value in environment.items() if key not in ("tree_digest", "copy_gb_s", "cccl")}
    path = options.results or result_file.default_path(environment["gpu"], "gpu_check.json")
    proof = start_proof(path, digest_of_tree(), environment)

    def save():
        write(path, proof)

    if options.only != "sanitizer":
        names = options.modules.split(",") if options.modules else gpu_modules()
        if options.resume:
            done = proof.get("tests", {}).get("modules", {})
            names = [name for name in names if name not in done or not module_passed(done[name])]
        print(f"GPU tests of {len(names)} modules on {environment['gpu']}", flush=True)
        run_tests(proof, names, options.time_limit, options.jobs, save)
    if options.only != "tests":
        tools = options.tools.split(",") if options.tools else list(TOOLS)
        if options.resume:
            done = proof.get("sanitizer", {}).get("tools", {})
            tools = [tool for tool in tools if done.get(tool, {}).get("verdict") != "clean"]
        print(f"compute-sanitizer: {', '.join(tools)}", flush=True)
        run_sanitizer(proof, tools, options.time_limit, options.jobs, save)
    save()
    problems = problems_of(proof, options.only)
    print(f"{'NOT PASSED' if problems else 'passed'}{f' ({options.only})' if options.only else ''}: {path}", flush=True)
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
