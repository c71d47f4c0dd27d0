"""Ratios to torch.sort and CUB over dtypes, distributions and sizes: where a sort of one dimension is slower than either.

    python -m benchmarks.ratios                     # everything, to results/<gpu>/ratios.json
    python -m benchmarks.ratios --dtypes float32 --sizes 24,26 --distributions zipf,runs
    python -m benchmarks.ratios --print h200        # the committed table
    python -m benchmarks.ratios --device cpu --sizes 8   # smoke run: results only

CUB has 32-bit ready-made indices and, where the data has fewer bits, its exact end_bit (docs/benchmarks.md). torch and CUB have no dtype
that they do not take; the contract's order of NaN is not theirs, so their results are not compared here, ours are, bit by bit.

Calls are eager, so what takes less than about 40 us on the device is bound by the host, and a busy host hits one contender or another.
Where ours came out slower, all contenders are therefore timed again, up to five times by turns, and the least of each counts; `times` in
the row says how often.
"""

import argparse
import json
import sys

import torch

from benchmarks import cases, contract, data, harness, operations, peers, result_file

SIZES = (20, 22, 24, 26, 28, 30)
LARGE = 28  # from here on fewer dtypes and distributions, since a case takes seconds
ALL_DTYPES = ("float32", "int64", "uint8", "float16", "int32", "float64", "bfloat16", "int16", "int8", "bool", "uint64", "float8_e5m2")
LARGE_DTYPES = ("float32", "int64", "uint8", "float16")
ALL_DISTRIBUTIONS = ("uniform", "sorted", "reversed", "all_equal", "two_values", "zipf", "runs", "few_bits", "half_zeros", "random_bits")
LARGE_DISTRIBUTIONS = ("uniform", "all_equal", "zipf", "runs")
MOST_TIMES = 5
CUB_DTYPES = ("uint8", "int16", "int32", "int64", "float16", "float32")
OPERATIONS = ("sort", "sort_keys")


def make_keys(distribution, count, dtype, device):
    if distribution != "half_zeros":
        return data.generator().make(distribution, count, dtype, device)
    keys = data.generator().make("uniform", count, dtype, device, seed=3)
    bits = keys.view(harness.BITS[keys.element_size()])
    bits[torch.rand(count, device=device) < 0.5] = 0
    return keys


def grid_of(options):
    """(log2 of the size, dtype, distribution, operation) of every measurement asked for."""
    for size in options.sizes:
        for dtype in options.dtypes or (LARGE_DTYPES if size >= LARGE else ALL_DTYPES):
            for distribution in options.distributions or (LARGE_DISTRIBUTIONS if size >= LARGE else ALL_DISTRIBUTIONS):
                if distribution in data.generator().distributions_of(getattr(torch, dtype)) or distribution == "half_zeros":
                    for operation in options.operations:
                        yield size, dtype, distribution, operation


def contenders(case, keys, library, with_peers):
    yield "gpusort", operations.ours(library, case)
    if contract.torch_sorts(keys):
        yield "torch", operations.with_torch(case)
    if with_peers and case.dtype in CUB_DTYPES:
        from benchmarks.peers import cub

        yield "cub", cub.make_call(operations.peers_of(case)[0], case, (keys,)).call


def measure_one(size, dtype, distribution, operation, library, device, with_peers, budget_s):
    """The row of one measurement."""
    keys = make_keys(distribution, 1 << size, getattr(torch, dtype), device)
    case = cases.Case("ratio", "R", "ratio", operation, dtype, (1 << size,), distribution, {}, "events", 0.0)
    row = {"log2": size, "dtype": dtype, "distribution": distribution, "op": operation}
    times = 0
    while times < MOST_TIMES and (times == 0 or (least_ratio(row) or 1) < 1):
        times += 1
        for name, call in contenders(case, keys, library, with_peers):
            result = harness.measure(call, [(keys,)], device=device, budget_s=budget_s, least=3)
            row[name] = min(round(result.us, 2), row.get(name, float("inf")))
            if name == "gpusort":
                row["equal"] = row.get("equal", True) and contract.equal_to_contract(result.outputs, keys)
            del result
    if times > 1:
        row["times"] = times
    return row


def least_ratio(row):
    """The least of torch / ours and CUB / ours; None where neither takes the dtype."""
    times = [row[name] for name in ("torch", "cub") if name in row]
    return min(times) / row["gpusort"] if times else None


def table(rows):
    """Markdown: for each operation, dtype and distribution the least ratio to torch and CUB at each size; below 1 in bold."""
    sizes = sorted({row["log2"] for row in rows})
    lines = ["| op | dtype | distribution | " + " | ".join(f"2^{size}" for size in sizes) + " |", "|---|---|---|" + "---:|" * len(sizes)]
    grouped = {}
    for row in rows:
        grouped.setdefault((row["op"], row["dtype"], row["distribution"]), {})[row["log2"]] = row
    for key, found in grouped.items():
        cells = []
        for size in sizes:
            ratio = least_ratio(found[size]) if size in found else None
            cells.append("" if ratio is None else f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**")
        lines.append(f"| {' | '.join(key)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def words(text):
    return tuple(word for word in text.split(",") if word)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description="Ratios to torch.sort and CUB.")
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, words(text))), default=SIZES, help="log2 of the sizes, comma separated")
    parser.add_argument("--dtypes", type=words)
    parser.add_argument("--distributions", type=words)
    parser.add_argument("--operations", type=words, default=OPERATIONS)
    parser.add_argument("--budget", type=float, default=0.01, help="seconds of device time per contender (default %(default)s)")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/ratios.json on a GPU)")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/ratios.json and stop")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    if options.print:
        print(table(json.loads((result_file.ROOT / "benchmarks" / "results" / options.print / "ratios.json").read_text())["rows"]))
        return 0
    import torch_gpusort

    with_peers = peers.build_for(options.device, not options.skip_peers)
    environment = result_file.environment_with_copy_rate(options.device)
    rows = []
    for size, dtype, distribution, operation in grid_of(options):
        row = measure_one(size, dtype, distribution, operation, torch_gpusort, options.device, with_peers, options.budget)
        rows.append(row)
        ratio = least_ratio(row)
        if not row["equal"] or (ratio is not None and ratio < 1):
            print(f"{'NOT EQUAL ' if not row['equal'] else ''}{json.dumps(row)}", flush=True)
        if size >= LARGE:
            torch.cuda.empty_cache()  # does nothing where CUDA is not in use
    path = result_file.path_for(options.output, options.device, "ratios.json")
    if path:
        result_file.write(path, {"environment": environment, "rows": rows})
    slower = sum(1 for row in rows if (least_ratio(row) or 1) < 1)
    print(f"{len(rows)} measurements, {slower} slower than torch or CUB, {sum(not row['equal'] for row in rows)} not equal")
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
