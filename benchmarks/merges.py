"""Merges of two sorted inputs beside CUB's DeviceMerge: keys of 8 to 64 bits and 32+32-bit pairs, 2^16 to 2^26 elements a side.

python -m benchmarks.merges                   # to results/<gpu>/merges.json
python -m benchmarks.merges --print h200      # the committed table
python -m benchmarks.merges --device cpu --sizes 8
"""

import argparse
import json
import sys

import torch

from benchmarks import cases, data, harness, operations, peers, result_file

SIZES = (16, 20, 24, 26)
KINDS = (
    ("merge", "uint8"),
    ("merge", "int16"),
    ("merge", "float32"),
    ("merge", "int64"),
    ("merge_by_key", "float32"),
)


def measure(size, operation, dtype, library, device, with_peers):
    """The row of one merge: microseconds, and whether the result is torch's (for keys, the sorted concatenation)."""
    timing = "graph" if size <= 20 else "events"
    case = cases.Case("merges", "M", "merge", operation, dtype, (1 << size, 1 << size), "two_sorted", {}, timing, 0.0)
    inputs = data.make_inputs(case, device, 1)
    reference = harness.as_tensors(operations.with_torch(case)(*inputs))
    calls = [("gpusort", operations.ours(library, case))]
    if with_peers:
        from benchmarks.peers import cub

        calls.append(("cub", cub.make_call(operations.peers_of(case)[0], case, inputs).call))
    row = {"log2": size, "op": operation, "dtype": dtype}
    for name, call in calls:
        result = harness.measure(call, [inputs], timing=timing, device=device, budget_s=0.03)
        row[name] = round(result.us, 2)
        if name == "gpusort":
            row["equal"] = harness.same_result(result.outputs, reference)
    return row


def table(content):
    """Markdown: microseconds and CUB's time over ours, by size; the share of the copy rate at the largest."""
    sizes = sorted({row["log2"] for row in content["rows"]})
    lines = ["| merge | " + " | ".join(f"2 x 2^{size}: us, CUB / it" for size in sizes) + " | share of copy rate |"]
    lines.append("|---|" + "---:|" * (len(sizes) + 1))
    found = {}
    for row in content["rows"]:
        found.setdefault((row["op"], row["dtype"]), {})[row["log2"]] = row
    for (operation, dtype), rows in found.items():
        cells = [
            f"{row['gpusort']:.1f}, {row['cub'] / row['gpusort']:.2f}" if "cub" in row else f"{row['gpusort']:.1f}" for row in rows.values()
        ]
        item = torch.empty((), dtype=getattr(torch, dtype)).element_size() + (4 if operation == "merge_by_key" else 0)
        rate = content["environment"]["copy_gb_s"]
        floor = rate and (2 << sizes[-1]) * 2 * item / rate / 1e3
        share = f"{floor / rows[sizes[-1]]['gpusort']:.0%}" if floor else ""
        lines.append(f"| {operation} {dtype} | {' | '.join(cells)} | {share} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merges", description="Merges beside CUB's.")
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES, help="log2 of the elements a side")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/merges.json on a GPU)")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/merges.json and stop")
    options = parser.parse_args(arguments)
    if options.print:
        print(table(json.loads((result_file.ROOT / "benchmarks" / "results" / options.print / "merges.json").read_text())))
        return 0
    import torch_gpusort

    with_peers = peers.build_for(options.device, not options.skip_peers, ["merges"])
    environment = result_file.environment_with_copy_rate(options.device)
    rows = [measure(size, *kind, torch_gpusort, options.device, with_peers) for kind in KINDS for size in options.sizes]
    content = {"environment": environment, "rows": rows}
    print(table(content))
    path = result_file.path_for(options.output, options.device, "merges.json")
    if path:
        result_file.write(path, content)
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
