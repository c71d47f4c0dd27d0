"""Redraws the crossovers between the sorts of this package on the GPU at hand: every family by name beside the automatic choice.

    python -m benchmarks.tune                       # to results/<gpu>/tune.json
    python -m benchmarks.tune --print h200          # the committed table
    python -m benchmarks.tune --device cpu --largest 4096

The choice is data in csrc/plan/sort_plan.h (which family) and csrc/plan/*_plan.h (which tile). A line marked with a family's name is a
shape at which that family beats the automatic choice by more than 3 %: where such lines gather, a constant there wants to move.
"""

import argparse
import json
import sys

import torch

from benchmarks import data, harness, result_file

FAMILIES = ("auto", "rows", "grid", "buckets", "radix")
MARGIN = 1.03
SINGLE_LENGTHS = tuple(2**power for power in range(9, 25))
ROWS = (4, 16, 64, 256, 1024)
ROW_LENGTHS = (1000, 4096, 10000, 16384, 24576, 32768, 50000, 131072, 262144, 1048576)
DTYPES = ("float32", "int64")


def shapes(largest):
    """Single arrays, then rows; none above `largest` elements."""
    single = [(1, length) for length in SINGLE_LENGTHS]
    return [shape for shape in single + [(rows, length) for rows in ROWS for length in ROW_LENGTHS] if shape[0] * shape[1] <= largest]


def runs(library, keys, name):
    """Whether the family of this name takes the shape. A CPU has one sort for all names."""
    if name == "auto":
        return True
    return keys.device.type == "cpu" or library.explain(keys, algorithm=name).algorithm == name


def measure(library, dtype, shape, device, budget_s):
    """The row of one shape: microseconds of each family that takes it, and what the automatic choice is."""
    keys = data.generator().make("uniform", shape, getattr(torch, dtype), device)
    timing = "graph" if keys.numel() <= 1 << 20 else "events"
    row = {"dtype": dtype, "shape": list(shape)}  # "rows" is a family
    if keys.device.type != "cpu":
        row["chosen"] = library.explain(keys).algorithm
    for name in FAMILIES:
        if runs(library, keys, name):
            call = lambda x, name=name: library.sort(x, algorithm=name)  # noqa: E731
            row[name] = round(harness.measure(call, [(keys,)], timing=timing, device=device, budget_s=budget_s).us, 2)
    return row


def better(row):
    """The family that beats the automatic choice by more than the margin, or None."""
    best = min((name for name in FAMILIES if name in row), key=row.__getitem__)
    return best if row["auto"] > MARGIN * row[best] else None


def table(rows):
    """Markdown: microseconds by shape and family."""
    lines = [
        f"| dtype | rows | length | chosen | {' | '.join(FAMILIES)} | better |",
        "|---|---:|---:|---|" + "---:|" * len(FAMILIES) + "---|",
    ]
    for row in rows:
        cells = " | ".join(f"{row[name]:.1f}" if name in row else "" for name in FAMILIES)
        lines.append(
            f"| {row['dtype']} | {row['shape'][0]} | {row['shape'][1]} | {row.get('chosen', '')} | {cells} | {better(row) or ''} |"
        )
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description="Every family beside the automatic choice.")
    parser.add_argument("--largest", type=int, default=1 << 26, help="most elements of a shape (default %(default)s)")
    parser.add_argument("--budget", type=float, default=0.005, help="seconds of device time per measurement (default %(default)s)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/tune.json on a GPU)")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/tune.json and stop")
    options = parser.parse_args(arguments)
    if options.print:
        print(table(json.loads((result_file.ROOT / "benchmarks" / "results" / options.print / "tune.json").read_text())["rows"]))
        return 0
    import torch_gpusort

    rows = [measure(torch_gpusort, dtype, shape, options.device, options.budget) for dtype in DTYPES for shape in shapes(options.largest)]
    print(table(rows))
    environment = result_file.environment(options.device, None)
    path = result_file.path_for(options.output, options.device, "tune.json")
    if path:
        result_file.write(path, {"environment": environment, "rows": rows})
    print(f"{len(rows)} shapes, {sum(better(row) is not None for row in rows)} at which another family is better")
    return 0


if __name__ == "__main__":
    sys.exit(main())
