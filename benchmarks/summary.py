"""The table of the README: time and memory of a sort beside torch's, four dtypes at 2^20 and 2^26, written to results/<gpu>/summary.json.

    python -m benchmarks.summary [--device cpu --small]      # measure, write, print the table
    python -m benchmarks.summary --print h200                # print the table of a committed file

Timed by CUDA-graph replay at 2^20 and by events around the eager call at 2^26, ours and torch's alike (see harness.py).
"""

import argparse
import json
import sys

import torch

from benchmarks import cases, data, harness, operations, result_file

DTYPES = ("float32", "int64", "float16", "uint8")
SIZES = ((20, "graph"), (26, "events"))


def summary_cases(small):
    for dtype in DTYPES:
        for power, timing in SIZES:
            count = 1000 + power if small else 2**power
            yield cases.Case(f"{dtype}_2^{power}", "S", f"{dtype} 2^{power}", "sort", dtype, (count,), "uniform", {}, timing, 0.0)


def measure_case(case, library, device):
    """The rows of ours and torch's: time, spread, extra bytes, and whether ours equals torch's result."""
    inputs = [data.make_inputs(case, device, seed) for seed in (1, 2)]
    reference = harness.as_tensors(operations.with_torch(case)(*inputs[0]))
    rows = []
    for name, call in (("gpusort", operations.ours(library, case)), ("torch", operations.with_torch(case))):
        result = harness.measure(call, inputs, timing=case.timing, device=device)
        extra = harness.extra_bytes_per_element(call, inputs[0])
        equal = harness.same_result(harness.as_tensors(call(*inputs[0])), reference)
        row = {"case": case.id, "impl": name, "us": round(result.us, 2), "spread": round(result.spread, 4), "timing": result.timing}
        rows.append(row | {"extra_bytes_per_element": None if extra is None else round(extra, 2), "equal": equal})
    return rows


def table(rows):
    """Markdown."""
    lines = [
        "| input | torch_gpusort us | torch.sort us | times faster | extra bytes per element | torch's |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    by_case = {}
    for row in rows:
        by_case.setdefault(row["case"], {})[row["impl"]] = row
    for case, found in by_case.items():
        ours, torchs = found["gpusort"], found["torch"]
        ratio = torchs["us"] / ours["us"]
        lines.append(
            f"| {case.replace('_', ', ')} | {ours['us']:.1f} | {torchs['us']:.1f} | {ratio:.2f} | {ours['extra_bytes_per_element']} | "
            f"{torchs['extra_bytes_per_element']} |"
        )
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summary", description="Time and memory beside torch.sort.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/summary.json and stop")
    options = parser.parse_args(arguments)
    if options.print:
        path = result_file.ROOT / "benchmarks" / "results" / options.print / "summary.json"
        print(table(json.loads(path.read_text())["rows"]))
        return 0
    import torch_gpusort

    rows = []
    for case in summary_cases(options.small):
        rows += measure_case(case, torch_gpusort, options.device)
    print(table(rows))
    if torch.device(options.device).type == "cuda" and not options.small:
        environment = result_file.environment(options.device, None)
        path = result_file.default_path(environment["gpu"], "summary.json")
        result_file.write(path, {"environment": environment, "rows": rows})
        print(f"written to {path}")
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
