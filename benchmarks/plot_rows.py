"""Time against row length: 2^26 float32 elements in rows of 2 to 2^24, ours, torch.sort and the floor of one read and one write.

python -m benchmarks.plot_rows                # measure, write results/<gpu>/rows.json, draw rows.png beside it
python -m benchmarks.plot_rows --draw h200    # draw from a committed file
"""

import argparse
import json
import sys

import torch

from benchmarks import cases, data, harness, operations, result_file

ELEMENTS = 2**26
LENGTHS = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 129, 192, 256, 300, 512, 700, 1000, 1024, 1500, 2048, 3000, 4096, 4097, 6000, 8192, 12288)
LENGTHS += (16384, 24576, 32768, 65536, 2**17, 2**18, 2**20, 2**22, 2**24)
BYTES_PER_ELEMENT = 16  # key in; key and int64 index out


def measure_length(length, library, device, elements):
    """The rows of ours and torch's for one length."""
    shape = (max(1, elements // length), length)
    case = cases.Case(str(length), "R", f"rows of {length}", "sort", "float32", shape, "uniform", {}, "events", 0.0)
    inputs = [data.make_inputs(case, device, 1)]
    reference = harness.as_tensors(operations.with_torch(case)(*inputs[0]))
    rows = []
    for name, call in (("gpusort", operations.ours(library, case)), ("torch", operations.with_torch(case))):
        result = harness.measure(call, inputs, timing="events", device=device, budget_s=0.05, least=3)
        equal = harness.same_result(result.outputs, reference)
        rows.append({"length": length, "rows": shape[0], "impl": name, "us": round(result.us, 2), "equal": equal})
    return rows


def draw(content, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for name, label in (("torch", "torch.sort"), ("gpusort", "torch_gpusort")):
        points = [(row["length"], row["us"] / 1000) for row in content["rows"] if row["impl"] == name]
        axes.plot(*zip(*points), marker="o", markersize=3, label=label)
    copy_rate = content["environment"]["copy_gb_s"]
    floor = ELEMENTS * BYTES_PER_ELEMENT / copy_rate / 1e6
    axes.axhline(floor, color="grey", linestyle="--", label=f"one read, one write at {copy_rate / 1000:.1f} TB/s")
    axes.set(xscale="log", yscale="log", xlabel="row length", ylabel="milliseconds")
    axes.set_title(f"2^26 float32 in rows, values and int64 indices, {content['environment']['gpu']}")
    axes.xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=2, numticks=13))
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot_rows", description="Time against row length.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--draw", metavar="GPU", help="draw from results/GPU/rows.json and stop")
    options = parser.parse_args(arguments)
    if options.draw:
        path = result_file.ROOT / "benchmarks" / "results" / options.draw / "rows.json"
        draw(json.loads(path.read_text()), path.with_suffix(".png"))
        return 0
    import torch_gpusort

    rate = harness.copy_gb_per_second(options.device)
    environment = result_file.environment(options.device, round(rate, 1))
    path = result_file.default_path(environment["gpu"], "rows.json")
    rows = []
    for length in LENGTHS:
        rows += measure_length(length, torch_gpusort, options.device, ELEMENTS)
        ours, torchs = rows[-2:]
        print(f"{length:9}  ours {ours['us']:9.1f}  torch {torchs['us']:9.1f}  equal {ours['equal']}", flush=True)
        torch.cuda.empty_cache()
    content = {"environment": environment, "rows": rows}
    result_file.write(path, content)
    draw(content, path.with_suffix(".png"))
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
