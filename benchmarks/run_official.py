"""Runs the official cases: this project, torch and the peers in one run on the same data, results compared, written to
results/<gpu>/official.json.

    python -m benchmarks.run_official [--only A11,B01] [--group A] [--skip-peers] [--list]
    python -m benchmarks.run_official --device cpu --small       # smoke run: tiny shapes, compares results, times mean nothing
"""

import argparse
import gc
import importlib
import pathlib
import sys
import time
import traceback
import zlib

import torch

from benchmarks import cases, data, harness, operations, peers, result_file

LARGEST_CACHE = 128 << 20  # bytes; assumed where torch does not tell the L2 size of the device


def cache_bytes(device):
    if torch.device(device).type != "cuda":
        return 0
    return getattr(torch.cuda.get_device_properties(device), "L2_cache_size", LARGEST_CACHE)


def input_sets_for(case, device):
    """Input sets of `case` from fixed seeds, as many as harness.input_set_count asks for."""
    seed = zlib.crc32(case.id.encode())
    first = data.make_inputs(case, device, seed)
    count = harness.input_set_count(sum(tensor.nbytes for tensor in first), cache_bytes(device))
    return [first] + [data.make_inputs(case, device, seed + index) for index in range(1, count)]


def contenders(case, library, inputs, with_peers):
    """(name, call, bytes of temporary storage made ahead), one by one: ours, torch, then the peers, each made when its turn comes."""
    yield "gpusort", operations.ours(library, case), 0
    yield "torch", operations.with_torch(case), 0
    if with_peers:
        from benchmarks.peers import cub

        for name in operations.peers_of(case):
            peer = cub.make_call(name, case, inputs)
            yield peer.name, peer.call, peer.temporary_bytes


def run_case(case, library, device, with_peers, budget_s=harness.BUDGET_SECONDS):
    """The rows of one case, one by one. A contender's `equal` holds if every input set gave the reference on overwritten memory, the last
    timed call gave it too, and no input was changed."""
    input_sets = input_sets_for(case, device)
    originals = [tuple(tensor.clone() for tensor in inputs) for inputs in input_sets]
    references = [harness.as_tensors(operations.with_torch(case)(*inputs)) for inputs in input_sets]
    for name, call, temporary_bytes in contenders(case, library, input_sets[0], with_peers):
        equal = harness.verify(call, input_sets, references)
        result = harness.measure(call, input_sets, timing=case.timing, device=device, budget_s=budget_s)
        equal = equal and harness.same_result(result.outputs, references[result.last_set])
        equal = equal and all(map(harness.same_result, input_sets, originals))
        extra = harness.extra_bytes_per_element(call, input_sets[0])
        if extra is not None:
            extra = round(extra + temporary_bytes / max(1, result.outputs[0].numel()), 3)
        row = {"case": case.id, "impl": name, "us": round(result.us, 3), "spread": round(result.spread, 4)}
        row |= {"extra_bytes_per_element": extra, "equal": equal, "repeats": result.repeats, "timing": result.timing}
        note = operations.row_note(case, name, torch.__version__)
        yield row | ({"note": note} if note else {})


def device_is_lost(error):
    """Whether an error leaves the CUDA context unusable, so that every later call would fail too."""
    return "CUDA error" in str(error) and not isinstance(error, torch.OutOfMemoryError)


def run(chosen, library, device, with_peers, save, environment, log=print, budget_s=harness.BUDGET_SECONDS):
    """Run cases one by one; `save(rows, not_run)` after each, so that an interrupted run keeps what it has. Returns (rows, not_run, clean):
    clean when every case that ran ended and every result of this project was equal (a peer that is not is shown in the table)."""
    rows, not_run, clean = [], [], True
    stamp = {key: environment.get(key) for key in ("date", "commit", "tree_digest")}
    for case in chosen:
        start = time.perf_counter()
        if operations.ours(library, case) is None:
            not_run.append({"case": case.id, "reason": f"not run: torch_gpusort has no {case.op} yet"})
            log(f"{case.id} {not_run[-1]['reason']}")
            save(rows, not_run)
            continue
        found = []
        try:
            for row in run_case(case, library, device, with_peers, budget_s):
                found.append(row | stamp)
        except Exception as error:  # one failing case must not cost the others their run; it is reported and the exit status is 1
            clean = False
            reason = (str(error).splitlines() or [""])[0]
            not_run.append({"case": case.id, "reason": f"failed after {len(found)} rows: {type(error).__name__}: {reason}"})
            log(traceback.format_exc())
            if device_is_lost(error):
                log("the device is lost after this error: stopping")
                save(rows + found, not_run)
                return rows + found, not_run, False
        times = ", ".join(f"{row['impl']} {row['us']:.1f} us{'' if row['equal'] else ' NOT EQUAL'}" for row in found)
        log(f"{case.id} {case.name}: {times} ({time.perf_counter() - start:.1f} s)")
        rows += found
        clean &= all(row["equal"] for row in found if row["impl"] == "gpusort")
        save(rows, not_run)
        gc.collect()
        if torch.device(device).type == "cuda":
            torch.cuda.empty_cache()
    return rows, not_run, clean


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_official", description="Time torch_gpusort, torch and CUB on the official cases."
    )
    parser.add_argument("--only", help="case ids, comma separated: A11,B01")
    parser.add_argument("--group", help="groups, comma separated: A,D")
    parser.add_argument(
        "--skip-peers", action="store_true", help="run without CUB (no nvcc needed); drops the peer rows of the cases that run"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny shapes: compares results only, writes no file unless --output is given")
    parser.add_argument(
        "--budget", type=float, default=harness.BUDGET_SECONDS, help="seconds of device time per contender and case (default %(default)s)"
    )
    parser.add_argument("--output", type=pathlib.Path, help="result file (default benchmarks/results/<gpu>/official.json)")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    official = cases.load()
    try:
        chosen = cases.select(official, options.only, options.group)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        for case in chosen:
            print(f"{case.id:4} {case.op:13} {case.timing:7} {case.name}")
        return 0
    on_gpu = torch.device(options.device).type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        print("no CUDA device; `--device cpu --small` makes a smoke run", file=sys.stderr)
        return 2
    if on_gpu and torch.device(options.device).index is not None:
        torch.cuda.set_device(options.device)
    if options.small:
        chosen = [cases.shrink(case) for case in chosen]
    library = importlib.import_module("torch_gpusort")
    start = time.perf_counter()
    with_peers = peers.build_for(options.device, not options.skip_peers)
    if with_peers:
        print(f"peers ready after {time.perf_counter() - start:.0f} s", flush=True)
    environment = result_file.environment_with_copy_rate(options.device)
    path = options.output or (None if options.small or not on_gpu else result_file.default_path(environment["gpu"]))
    before = result_file.read(path) if path else None

    def save(rows, not_run):
        if path:
            result_file.write(path, result_file.merged(before, environment, rows, not_run, [case.id for case in official]))

    def log(text):
        print(text, flush=True)

    rows, not_run, clean = run(chosen, library, options.device, with_peers, save, environment, log, options.budget)
    seconds = time.perf_counter() - start
    versions = f"torch {environment['torch']}, CUB {environment['cccl']}, copy {environment['copy_gb_s']} GB/s"
    print(f"\n{environment['gpu']}, {versions}, {len(chosen)} cases in {seconds:.0f} s")
    print(result_file.table(chosen, rows, not_run))
    for note in sorted({row["note"] for row in rows if "note" in row}):
        print(f"note, cases {', '.join(sorted({row['case'] for row in rows if row.get('note') == note}))}: {note}")
    if path:
        print(f"written to {path}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
