"""The result file: what machine it came from, and rows that a later partial run replaces case by case.

    {"environment": {"gpu", "driver", "torch", "cuda", "cccl", "python", "date", "commit", "tree_digest", "copy_gb_s"},
     "rows": [{"case", "impl", "us", "spread", "extra_bytes_per_element", "equal", "repeats", "timing", "date", "commit", "tree_digest",
               "note"?}],
     "not_run": [{"case", "reason"}]}

All rows of one case come from one run, since only ratios within a run mean anything: replacing a case drops all its earlier rows.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

import torch

from benchmarks import harness, peers
from benchmarks.tree_digest import digest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def folder_name(gpu):
    """The folder of results of a GPU: "NVIDIA H200" is h200, "NVIDIA GeForce RTX 4090" is geforce_rtx_4090."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^nvidia\s+", "", gpu.lower())).strip("_")


def default_path(gpu, name="official.json"):
    return ROOT / "benchmarks" / "results" / folder_name(gpu) / name


def first_line(command):
    """The first line that a command prints, None if it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else None


def environment(device="cuda", copy_gb_s=None):
    """The machine, the software and the sources that a run measures. `commit` is None outside a git checkout; the digest says what was
    measured anyway."""
    on_gpu = torch.device(device).type == "cuda"
    try:
        cccl = peers.cub_version()
    except RuntimeError:
        cccl = None
    return {
        "gpu": torch.cuda.get_device_name(device) if on_gpu else f"none ({platform.machine()} CPU)",
        "driver": first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]) if on_gpu else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cccl": cccl,
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": first_line(["git", "rev-parse", "HEAD"]),
        "tree_digest": digest(ROOT),
        "copy_gb_s": copy_gb_s,
    }


def environment_with_copy_rate(device="cuda"):
    """The same, with the device's copy rate measured."""
    rate = harness.copy_gb_per_second(device)
    return environment(device, None if rate is None else round(rate, 1))


def path_for(output, device, name):
    """Where a benchmark writes: where it was told to, else beside the other results of the GPU; nowhere (None) for a CPU."""
    if output is not None or torch.device(device).type != "cuda":
        return output
    return default_path(torch.cuda.get_device_name(device), name)


def read(path):
    """The file's contents, or an empty result where there is no file yet."""
    path = pathlib.Path(path)
    return json.loads(path.read_text()) if path.exists() else {"environment": {}, "rows": [], "not_run": []}


def merged(old, environment, rows, not_run, case_order):
    """`old` with every case that this run touched replaced by this run's rows, the environment of this run, and cases in the official
    order. Rows of cases that are not official any more go."""
    touched = {row["case"] for row in rows} | {entry["case"] for entry in not_run}
    place = {case: index for index, case in enumerate(case_order)}

    def combine(before, now):
        kept = [entry for entry in before if entry["case"] not in touched and entry["case"] in place]
        return sorted(kept + list(now), key=lambda entry: place[entry["case"]])

    return {"environment": environment, "rows": combine(old["rows"], rows), "not_run": combine(old.get("not_run", []), not_run)}


def write(path, data):
    """Write by way of a second file, one entry a line, so that an interrupted run leaves the file whole and a change is read line by
    line."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f'"environment": {json.dumps(data["environment"], indent=1)}']
    for name in [key for key in data if key != "environment"]:
        entries = ",\n".join(json.dumps(entry) for entry in data[name])
        parts.append(f'"{name}": [\n{entries}\n]' if entries else f'"{name}": []')
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    os.replace(unfinished, path)


def table(cases, rows, not_run):
    """A text table of the rows: microseconds of ours, torch and the best peer, their ratios, and whether all results were equal."""
    columns = f"{'ours us':>9} {'torch us':>9} {'peer us':>9} {'torch/ours':>10} {'peer/ours':>9} {'B/elem':>7} {'spread':>6} equal"
    lines = [f"{'case':4} {'':48} {columns}"]
    reasons = {entry["case"]: entry["reason"] for entry in not_run}
    for case in cases:
        found = {row["impl"]: row for row in rows if row["case"] == case.id}
        if case.id in reasons and "gpusort" not in found:
            lines.append(f"{case.id:4} {case.name[:48]:48} {reasons[case.id]}")
            continue
        ours, torch_row = found.get("gpusort"), found.get("torch")
        peer = min((row for name, row in found.items() if name not in ("gpusort", "torch")), key=lambda row: row["us"], default=None)
        time_of = [f"{row['us']:9.1f}" if row else f"{'-':>9}" for row in (ours, torch_row, peer)]
        ratio = [f"{row['us'] / ours['us']:.2f}" if ours and row else "-" for row in (torch_row, peer)]
        extra = "-" if not ours or ours["extra_bytes_per_element"] is None else f"{ours['extra_bytes_per_element']:.1f}"
        spread = f"{ours['spread']:.1%}" if ours else "-"
        unequal = [name for name, row in found.items() if row["equal"] is not True]
        verdict = "yes" if not unequal else "NO: " + ", ".join(unequal)
        lines.append(f"{case.id:4} {case.name[:48]:48} {' '.join(time_of)} {ratio[0]:>10} {ratio[1]:>9} {extra:>7} {spread:>6} {verdict}")
    return "\n".join(lines)
