"""The story in numbers: every algorithm of the package, step by step, at 2^16, 2^20, 2^24 and 2^26 float32, with torch, CUB and NumPy
beside them.

    python -m benchmarks.bench_steps                # measure, write results/<gpu>/steps.json, draw steps.png beside it
    python -m benchmarks.bench_steps --draw h200    # draw from a committed file
    python -m benchmarks.bench_steps --print h200   # the committed table
    python -m benchmarks.bench_steps --device cpu --sizes 8

The merges take two sorted halves; the sorts give values and int64 indices. The share of the copy rate is what the least traffic would
take (one read of the keys and one write of the results at the device's copy rate) over what it took.
"""

import argparse
import json
import sys
import timeit

import numpy as np
import torch

from benchmarks import cases, data, harness, operations, peers, result_file

SIZES = (16, 20, 24, 26)
SLOWEST_US = 1e6  # an algorithm that takes longer at one size is not asked for the next ones

# (label, what it is, operation, options): the order is the order of the story.
MERGES = (
    ("M1 sequential", "one thread merges", {"kernel": "sequential"}),
    ("M2 basic", "a co-rank for each thread", {"kernel": "basic"}),
    ("M4 tiled", "tiles in shared memory", {"kernel": "tiled"}),
    ("M5 circular", "rings in shared memory", {"kernel": "circular"}),
    ("merge, auto", "what merge() runs", {}),
)
SORTS = (
    ("R1 one bit", "mask, scan, scatter", "radix_sort", {"kernel": "scan_scatter", "digit_bits": 1}),
    ("R2 one bit a block", "partition on chip first", "radix_sort", {"kernel": "block", "digit_bits": 1}),
    ("R3 two bits", "fewer passes", "radix_sort", {"kernel": "block", "digit_bits": 2}),
    ("R3 four bits", "fewer passes", "radix_sort", {"kernel": "block", "digit_bits": 4}),
    ("R4 eight bits", "coarsened, wide loads", "radix_sort", {"kernel": "block", "digit_bits": 8}),
    ("R5 onesweep", "one read, one write a digit", "radix_sort", {"kernel": "onesweep"}),
    ("S3 merge sort", "block sort, multiway merges", "merge_sort", {}),
    ("O1 bitonic", "a sorting network", "bitonic_sort", {}),
    ("O2 sample sort", "splitters from a sample", "sample_sort", {}),
    ("sort, auto", "what sort() runs", "sort", {}),
)


def steps(library):
    """(label, description, kind, call) of this project's steps; kind is "merge" or "sort"."""
    for label, description, options in MERGES:
        yield label, description, "merge", lambda a, b, options=options: library.merge(a, b, **options)
    for label, description, name, options in SORTS:
        yield label, description, "sort", lambda keys, name=name, options=options: getattr(library, name)(keys, **options)


def case_of(kind, count):
    """The case that the harness and the peers know: a merge of two halves, or a sort."""
    if kind == "merge":
        return cases.Case("steps", "S", "merge", "merge", "float32", (count // 2, count // 2), "two_sorted", {}, "events", 0.0)
    return cases.Case("steps", "S", "sort", "sort", "float32", (count,), "uniform", {}, "events", 0.0)


def others(kind, case, inputs, with_peers):
    """(label, description, call) of what stands beside the steps on the device."""
    yield f"torch, {kind}", "torch.cat and torch.sort" if kind == "merge" else "torch.sort(stable=True)", operations.with_torch(case)
    if with_peers:
        from benchmarks.peers import cub

        names = {"merge": ("merge_keys",), "sort": ("radix_pairs", "merge_sort_pairs")}[kind]
        titles = {"merge_keys": "DeviceMerge", "radix_pairs": "DeviceRadixSort", "merge_sort_pairs": "DeviceMergeSort"}
        for name in names:
            yield f"CUB {titles[name]}", "32-bit indices" if kind == "sort" else "keys", cub.make_call(name, case, inputs).call


def numpy_row(inputs, kind):
    """NumPy's stable argsort on this host: the better of two calls, beside which the device's times are read."""
    keys = torch.cat(inputs).cpu().numpy()
    seconds = min(timeit.repeat(lambda: np.argsort(keys, kind="stable"), number=1, repeat=2))
    label = f"NumPy, {kind}"
    return {"label": label, "description": "np.argsort(kind='stable'), on the host", "us": round(seconds * 1e6, 1), "equal": True}


def measure_size(size, library, device, with_peers, too_slow):
    """The rows of one size. `too_slow` collects the labels that took more than SLOWEST_US."""
    rows = []
    for kind in ("merge", "sort"):
        case = case_of(kind, 1 << size)
        inputs = data.make_inputs(case, device, 1)
        reference = harness.as_tensors(operations.with_torch(case)(*inputs))
        mine = [(label, description, call) for label, description, of_kind, call in steps(library) if of_kind == kind]
        for label, description, call in [*mine, *others(kind, case, inputs, with_peers)]:
            if label in too_slow:
                continue
            timing = "graph" if size <= 20 and label != "M1 sequential" else "events"
            result = harness.measure(call, [inputs], timing=timing, device=device, budget_s=0.03, least=2)
            equal = harness.same_result(result.outputs, reference)
            rows.append({"log2": size, "kind": kind, "label": label, "description": description, "us": round(result.us, 2), "equal": equal})
        if kind == "sort" and f"NumPy, {kind}" not in too_slow:
            rows.append({"log2": size, "kind": kind} | numpy_row(inputs, kind))
        too_slow |= {row["label"] for row in rows if row["us"] > SLOWEST_US / 16}  # sizes grow by 4 to 16
    return rows


def floor_us(row, copy_rate):
    """The least traffic of a row at the copy rate (GB/s): 4 bytes in, and 4 out (merge of keys) or 12 (values and int64 indices)."""
    return (1 << row["log2"]) * (8 if row["kind"] == "merge" else 16) / copy_rate / 1e3


def by_label(rows):
    """{(kind, label): {log2: row}} in the order of the file."""
    found = {}
    for row in rows:
        found.setdefault((row["kind"], row["label"]), {})[row["log2"]] = row
    return found


def table(content):
    """Markdown: milliseconds at each size, and the share of the copy rate at the largest one measured."""
    sizes = sorted({row["log2"] for row in content["rows"]})
    copy_rate = content["environment"]["copy_gb_s"]
    lines = ["| step | what | " + " | ".join(f"2^{size} ms" for size in sizes) + " | share of copy rate |"]
    lines.append("|---|---|" + "---:|" * (len(sizes) + 1))
    for (_, label), found in by_label(content["rows"]).items():
        cells = [f"{found[size]['us'] / 1e3:.3g}" if size in found else "" for size in sizes]
        last = found[max(found)]
        share = f"{floor_us(last, copy_rate) / last['us']:.1%}" if copy_rate and not label.startswith("NumPy") else ""
        lines.append(f"| {label} | {last['description']} | {' | '.join(cells)} | {share} |")
    return "\n".join(lines)


def draw(content, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes = sorted({row["log2"] for row in content["rows"]})
    copy_rate = content["environment"]["copy_gb_s"]
    figure, panels = pyplot.subplots(2, 1, figsize=(9, 9), height_ratios=(8, 14))
    for axes, kind in zip(panels, ("merge", "sort")):
        found = {label: rows for (of_kind, label), rows in by_label(content["rows"]).items() if of_kind == kind}
        labels = list(found)[::-1]
        for place, size in enumerate(sizes):
            points = [(found[label][size], row) for row, label in enumerate(labels) if size in found[label]]
            height = 0.8 / len(sizes)
            where = [row + 0.4 - height * (place + 0.5) for _, row in points]
            axes.barh(where, [row["us"] / 1e3 for row, _ in points], height, label=f"2^{size}")
            for (row, _), y in zip(points, where):
                if size == sizes[-1] and not row["label"].startswith("NumPy"):
                    axes.text(row["us"] / 1e3, y, f" {floor_us(row, copy_rate) / row['us']:.0%} of copy", va="center", fontsize=7)
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.set(xscale="log", xlabel="milliseconds", title=f"{kind}: float32, {content['environment']['gpu']}")
        axes.grid(True, axis="x", alpha=0.3)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def committed(gpu):
    path = result_file.ROOT / "benchmarks" / "results" / gpu / "steps.json"
    return json.loads(path.read_text()), path.with_suffix(".png")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_steps", description="Every algorithm, step by step.")
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES, help="log2 of the sizes")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--draw", metavar="GPU", help="draw results/GPU/steps.json and stop")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/steps.json and stop")
    options = parser.parse_args(arguments)
    if options.draw or options.print:
        content, picture = committed(options.draw or options.print)
        print(table(content)) if options.print else draw(content, picture)
        return 0
    import torch_gpusort

    with_peers = peers.build_for(options.device, not options.skip_peers)
    environment = result_file.environment_with_copy_rate(options.device)
    rows, too_slow = [], set()
    for size in sorted(options.sizes):
        rows += measure_size(size, torch_gpusort, options.device, with_peers, too_slow)
    content = {"environment": environment, "rows": rows}
    print(table(content))
    path = result_file.path_for(None, options.device, "steps.json")
    if path:
        result_file.write(path, content)
        draw(content, path.with_suffix(".png"))
    wrong = [row["label"] for row in rows if not row["equal"]]
    print(f"not equal: {', '.join(wrong)}" if wrong else "all equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
