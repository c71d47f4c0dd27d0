"""The benchmarks' own logic, on the CPU: statistics, choice of cases, comparison of results, and the result file."""

import importlib
import importlib.util
import json
import pathlib
import sys
import types

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import cases, data, harness, host_overhead, operations, result_file, run_official, tree_digest  # noqa: E402

OFFICIAL = cases.load()


class FakeTimer:
    """Hands out times instead of measuring, and calls once so that there is a result to compare."""

    kind = "fake"
    calls_per_sample = 1

    def __init__(self, call, input_sets):
        self.outputs, self.last_set = call(*input_sets[-1]), len(input_sets) - 1

    def sample(self, repeats):
        return [1000.0 + index for index in range(repeats)]


def reference_library(**replaced):
    """A stand-in for torch_gpusort made of torch's own functions, with some of them replaced by wrong ones."""
    functions = {
        "sort": lambda keys, dim=-1: torch.sort(keys, dim=dim, stable=True),
        "sort_keys": lambda keys, dim=-1: torch.sort(keys, dim=dim).values,
        "merge": lambda a, b: torch.cat((a, b)).sort().values,
        "merge_by_key": operations.concatenate_sort_gather,
        "lexsort": lambda keys: operations.stable_argsorts(*keys),
        "unique": lambda rows, dim: torch.unique(rows, dim=dim),
    }
    return types.SimpleNamespace(**{**functions, **replaced})


def run_small(library, only):
    chosen = [cases.shrink(case) for case in cases.select(OFFICIAL, only)]
    saved = []
    stamp = {"date": "2000-01-01", "commit": None, "tree_digest": "0"}

    def save(rows, not_run):
        saved.append((list(rows), list(not_run)))

    rows, not_run, clean = run_official.run(chosen, library, "cpu", False, save, stamp, log=lambda text: None, budget_s=0.0)
    return rows, not_run, clean, saved


# ---- statistics and timing


def test_summarise_gives_median_and_relative_interquartile_range():
    assert harness.summarise([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, pytest.approx(2.0 / 3.0))
    assert harness.summarise([7.0]) == (7.0, 0.0)
    assert harness.summarise([10.0, 10.0, 10.0, 1000.0])[0] == 10.0


def test_repeats_fill_the_budget_within_bounds():
    assert harness.repeats_for(0.01, budget_s=0.15, least=5, most=200) == 15
    assert harness.repeats_for(0.11, budget_s=0.15, least=5, most=200) == 5
    assert harness.repeats_for(1e-6, budget_s=0.15, least=5, most=200) == 200
    assert harness.repeats_for(0.0, least=5) == 5


def test_input_sets_exceed_twice_the_cache():
    cache = 60 << 20
    assert harness.input_set_count(1024, cache) == 10
    assert harness.input_set_count(32 << 20, cache) == 4
    assert harness.input_set_count(256 << 20, cache) == 2
    assert harness.input_set_count(2 << 30, cache) == 1
    assert harness.input_set_count(4, 0) == 2


def test_measure_reports_the_timer_and_keeps_the_last_result():
    sets = [(torch.tensor([3, 1]),), (torch.tensor([5, 4]),)]
    result = harness.measure(lambda keys: torch.sort(keys), sets, device="cpu", budget_s=0.01, timer=FakeTimer)
    assert (result.us, result.repeats, result.timing, result.last_set) == (1004.5, 10, "fake", 1)
    assert [tensor.tolist() for tensor in result.outputs] == [[4, 5], [1, 0]]


def test_wall_timer_rotates_over_the_input_sets():
    seen = []
    timer = harness.WallTimer(lambda keys: seen.append(keys.item()) or keys, [(torch.tensor(i),) for i in range(3)])
    assert len(timer.sample(5)) == 5
    assert seen == [0, 1, 2, 0, 1]
    assert timer.last_set == 1


def test_host_overhead_divides_a_batch_by_its_calls_and_takes_turns():
    ticks, order = iter(range(100)), []
    functions = [lambda: order.append("a"), lambda: order.append("b")]
    samples = host_overhead.host_us(functions, lambda: None, batches=3, calls=10, clock=lambda: next(ticks))
    assert samples == [[1e5] * 3] * 2
    assert "".join(order) == ("a" * 10 + "b" * 10) * 4


# ---- comparison of results


def test_same_bits_sees_what_values_hide():
    nan = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert harness.same_bits(nan, nan.clone())
    assert not harness.same_bits(nan, nan.flip(0))
    assert not harness.same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not harness.same_bits(torch.tensor([1.0]), torch.tensor([1]))
    assert not harness.same_bits(torch.zeros(2), torch.zeros(3))


def test_same_bits_compares_indices_of_different_width_by_value():
    assert harness.same_bits(torch.tensor([2, 0], dtype=torch.int32), torch.tensor([2, 0]))
    assert not harness.same_bits(torch.tensor([2, 1], dtype=torch.int32), torch.tensor([2, 0]))


@pytest.mark.parametrize("wrong", range(7))
def test_same_bits_looks_into_every_chunk(wrong):
    expected = torch.arange(7.0)
    got = expected.clone()
    got[wrong] += 1
    assert harness.same_bits(expected.clone(), expected, chunk=3)
    assert not harness.same_bits(got, expected, chunk=3)


def test_same_result_compares_what_the_call_returns():
    reference = torch.sort(torch.tensor([3, 1, 2]), stable=True)
    assert harness.same_result(reference.values, reference)
    assert harness.same_result((reference.values, reference.indices.int()), reference)
    assert not harness.same_result((reference.values, reference.indices.flip(0)), reference)
    assert not harness.same_result(reference.values.int(), reference)
    assert not harness.same_result((), reference)


def test_verify_sees_an_output_that_was_not_written():
    keys = torch.tensor([3.0, 1.0, 2.0])
    reference = [(keys.sort().values,)]
    stale = keys.sort().values
    assert harness.verify(lambda keys: keys.sort().values, [(keys,)], reference)
    assert not harness.verify(lambda keys: stale, [(keys,)], reference)


# ---- cases


def test_official_cases_are_read_whole():
    assert len({case.id for case in OFFICIAL}) == len(OFFICIAL) == 67
    assert all(case.id[0] == case.group and case.timing in ("events", "graph") for case in OFFICIAL)
    merge = next(case for case in OFFICIAL if case.id == "D01")
    assert (merge.op, merge.shape, merge.dtype) == ("merge", (1 << 26, 1 << 26), "float32")


def test_select_by_id_group_or_both():
    assert [case.id for case in cases.select(OFFICIAL, only="b01, A11")] == ["A11", "B01"]
    assert {case.group for case in cases.select(OFFICIAL, group="B,e")} == {"B", "E"}
    assert [case.id for case in cases.select(OFFICIAL, only="A01", group="E")] == ["A01", "E01", "E02"]
    assert cases.select(OFFICIAL) == OFFICIAL
    with pytest.raises(ValueError, match="A99, Z"):
        cases.select(OFFICIAL, only="A99", group="Z")


@pytest.mark.parametrize("case", OFFICIAL, ids=lambda case: case.id)
def test_every_case_has_data_a_torch_call_and_known_peers(case):
    small = cases.shrink(case)
    inputs = data.make_inputs(small, "cpu", 1)
    again = data.make_inputs(small, "cpu", 1)
    assert all(map(harness.same_bits, inputs, again))
    assert all(tensor.dtype in (getattr(torch, case.dtype), torch.int32) and tensor.numel() > 0 for tensor in inputs)
    assert sum(tensor.numel() for tensor in inputs) <= 8000
    reference = harness.as_tensors(operations.with_torch(small)(*inputs))
    assert operations.ours(reference_library(merge_sort=reference_library().sort), small) is not None
    assert harness.same_result(operations.ours(reference_library(merge_sort=reference_library().sort), small)(*inputs), reference)
    named = {"cub_radix_pairs": "radix_pairs", "cub_radix_keys": "radix_keys", "cub_mergesort": "merge_sort_pairs"}
    if case.peer:
        name = case.peer.split(",")[0]
        assert any(peer == named.get(name) or peer.startswith(name.removeprefix("cub_")) for peer in operations.peers_of(case))


def test_peers_that_read_back_are_not_captured():
    names = {case.id: operations.peers_of(case) for case in OFFICIAL}
    assert all("segmented_sort" not in names[case.id] for case in OFFICIAL if case.timing == "graph")
    assert names["C01"] == ["segmented_sort"]
    assert names["C15"] == ["segmented_sort", "segmented_radix_sort"]
    assert names["C27"] == []


def test_note_on_the_slow_path_of_torch():
    c02 = next(case for case in OFFICIAL if case.id == "C02")
    assert "slow path" in operations.row_note(c02, "torch", "2.11.0+cu130")
    assert operations.row_note(c02, "torch", "2.13.0") is None
    assert operations.row_note(c02, "gpusort", "2.11.0") is None


# ---- a run


def test_run_gives_rows_in_the_form_of_the_checker():
    rows, not_run, clean, saved = run_small(reference_library(), "A11,B01,C27,D01,D03,E01")
    assert clean and not not_run
    assert [(row["case"], row["impl"]) for row in rows[:4]] == [("A11", "gpusort"), ("A11", "torch"), ("B01", "gpusort"), ("B01", "torch")]
    assert len(rows) == 12
    for row in rows:
        assert isinstance(row["us"], float) and isinstance(row["spread"], float)
        assert row["equal"] is True and row["extra_bytes_per_element"] is None
        assert (row["date"], row["tree_digest"]) == ("2000-01-01", "0")
    assert [len(rows) for rows, _ in saved] == [2, 4, 6, 8, 10, 12]


def wrong_indices(keys, dim=-1):
    values, indices = torch.sort(keys, dim=dim, stable=True)
    return values, indices.flip(-1)


def sorts_in_place(keys, dim=-1):
    result = torch.sort(keys, dim=dim, stable=True)
    values, indices = result.values.clone(), result.indices
    keys.copy_(values)
    return values, indices


@pytest.mark.parametrize("wrong", [wrong_indices, sorts_in_place])
def test_run_reports_a_wrong_result_and_a_changed_input(wrong):
    rows, _, clean, _ = run_small(reference_library(sort=wrong), "A11")
    assert {row["impl"]: row["equal"] for row in rows}["gpusort"] is False
    assert not clean


def test_run_lists_missing_functions_and_goes_on_after_a_failure():
    def fails(keys, dim=-1):
        raise RuntimeError("out of luck\nsecond line")

    rows, not_run, clean, _ = run_small(reference_library(sort=fails), "A11,B01,D06")
    assert [row["case"] for row in rows] == ["B01", "B01"]
    assert {entry["case"]: entry["reason"] for entry in not_run} == {
        "A11": "failed after 0 rows: RuntimeError: out of luck",
        "D06": "not run: torch_gpusort has no merge_sort yet",
    }
    assert not clean


def test_command_line_lists_and_refuses(capsys):
    assert run_official.main(["--list", "--group", "E"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["E01", "E02"]
    assert run_official.main(["--only", "X1"]) == 2
    assert "no such case or group: X1" in capsys.readouterr().err


# ---- the result file


def row(case, impl, us):
    return {"case": case, "impl": impl, "us": us, "spread": 0.0, "extra_bytes_per_element": 8.0, "equal": True}


def test_a_partial_run_replaces_all_rows_of_its_cases_only():
    order = ["A01", "A02", "B01"]
    old = {
        "environment": {"date": "old"},
        "rows": [row("A01", "gpusort", 1.0), row("A02", "gpusort", 2.0), row("A02", "cub", 3.0), row("GONE", "gpusort", 9.0)],
        "not_run": [{"case": "B01", "reason": "missing"}],
    }
    new = result_file.merged(old, {"date": "new"}, [row("B01", "gpusort", 5.0), row("A02", "gpusort", 4.0)], [], order)
    assert new["environment"] == {"date": "new"}
    assert [(entry["case"], entry["impl"], entry["us"]) for entry in new["rows"]] == [
        ("A01", "gpusort", 1.0),
        ("A02", "gpusort", 4.0),
        ("B01", "gpusort", 5.0),
    ]
    assert new["not_run"] == []


def test_file_round_trip_and_first_run(tmp_path):
    path = tmp_path / "h200" / "official.json"
    assert result_file.read(path) == {"environment": {}, "rows": [], "not_run": []}
    written = result_file.merged(result_file.read(path), {"gpu": "x"}, [row("A01", "gpusort", 1.0)], [], ["A01"])
    result_file.write(path, written)
    assert json.loads(path.read_text()) == written == result_file.read(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["official.json"]


def test_names_of_result_folders():
    assert result_file.folder_name("NVIDIA H200") == "h200"
    assert result_file.folder_name("NVIDIA GeForce RTX 4090") == "geforce_rtx_4090"
    assert result_file.default_path("NVIDIA H200") == ROOT / "benchmarks" / "results" / "h200" / "official.json"


def test_environment_names_what_the_checker_reads():
    found = result_file.environment("cpu", 1.5)
    assert set(found) == {"gpu", "driver", "torch", "cuda", "cccl", "python", "date", "commit", "tree_digest", "copy_gb_s"}
    assert found["torch"] == torch.__version__ and found["copy_gb_s"] == 1.5 and len(found["tree_digest"]) == 64


def test_table_shows_ratios_to_torch_and_to_the_best_peer():
    chosen = cases.select(OFFICIAL, only="A11,D06")
    rows = [row("A11", "gpusort", 1000.0), row("A11", "torch", 3000.0), row("A11", "cub", 2200.0), row("A11", "other", 2000.0)]
    text = result_file.table(chosen, rows, [{"case": "D06", "reason": "not run: no merge_sort"}]).splitlines()
    assert text[1].split()[-8:] == ["1000.0", "3000.0", "2000.0", "3.00", "2.00", "8.0", "0.0%", "yes"]
    assert text[2].endswith("not run: no merge_sort")
    rows[0]["equal"] = False
    assert result_file.table(chosen[:1], rows, []).endswith("NO: gpusort")


# ---- the digest of the sources


def test_digest_follows_names_and_contents_but_not_build_products(tmp_path):
    for folder in tree_digest.FOLDERS:
        (tmp_path / folder).mkdir()
    source = tmp_path / "csrc" / "a.cu"
    source.write_text("one")
    first = tree_digest.digest(tmp_path)
    (tmp_path / "torch_gpusort" / "_C.so").write_bytes(b"built")
    (tmp_path / "tests" / "__pycache__").mkdir()
    (tmp_path / "tests" / "__pycache__" / "a.pyc").write_bytes(b"cached")
    (tmp_path / "README.md").write_text("elsewhere")
    assert tree_digest.digest(tmp_path) == first
    source.write_text("two")
    second = tree_digest.digest(tmp_path)
    source.rename(tmp_path / "csrc" / "b.cu")
    assert len({first, second, tree_digest.digest(tmp_path)}) == 3


def test_the_summary_table_has_a_line_a_case():
    from benchmarks import summary

    rows = [
        {"case": "float32_2^20", "impl": "gpusort", "us": 50.0, "extra_bytes_per_element": 8.0},
        {"case": "float32_2^20", "impl": "torch", "us": 100.0, "extra_bytes_per_element": 20.0},
    ]
    lines = summary.table(rows).splitlines()
    assert len(lines) == 3
    assert lines[2] == "| float32, 2^20 | 50.0 | 100.0 | 2.00 | 8.0 | 20.0 |"


def test_the_summary_measures_and_compares_on_any_device():
    from benchmarks import summary

    assert summary.main(["--device", "cpu", "--small"]) == 0


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("ratios", ["--sizes", "8", "--dtypes", "float32,bool", "--output"]),
        ("sweep", ["--count", "12", "--largest", "2000", "--output"]),
        ("order_cost", ["--log2", "8", "--output"]),
        ("merges", ["--sizes", "4,8", "--output"]),
    ],
)
def test_the_comparisons_measure_and_compare_on_any_device(name, arguments, tmp_path):
    module = importlib.import_module(f"benchmarks.{name}")
    path = tmp_path / "result.json"
    assert module.main([*arguments, str(path), "--device", "cpu"]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert rows and all(row["equal"] for row in rows)


def test_ratios_and_sweep_see_a_wrong_result():
    from benchmarks import contract, sweep

    keys = torch.tensor([2.0, float("nan"), -0.0, 0.0])
    values, order = contract.sorted_by_contract(keys)
    assert order.tolist() == [2, 3, 0, 1]
    assert contract.equal_to_contract((values, order), keys)
    assert not contract.equal_to_contract((values, order.flip(0)), keys)
    assert not contract.equal_to_contract((values.abs(), order), keys)
    rows = [{"dtype": "float32", "distribution": "uniform", "dim": -1, "us": 2.0, "torch_us": 1.0, "equal": False, "slower": True}]
    assert sweep.summary(rows) == {
        "cases": 1,
        "equal": 0,
        "slower": 1,
        "geometric_mean": 0.5,
        "least": 0.5,
        "tenth": 0.5,
        "median": 0.5,
        "slower_kinds": ["('float32', 'uniform', -1): 1"],
    }


def test_the_ratio_table_marks_what_is_slower():
    from benchmarks import ratios

    row = {"dtype": "float32", "distribution": "zipf", "op": "sort", "gpusort": 2.0, "equal": True}
    rows = [row | {"log2": 20, "torch": 4.0, "cub": 3.0}, row | {"log2": 22, "torch": 4.0, "cub": 1.0}]
    assert ratios.table(rows).splitlines()[2] == "| sort | float32 | zipf | 1.50 | **0.50** |"


def test_the_steps_measure_and_compare_on_any_device(tmp_path):
    import torch_gpusort
    from benchmarks import bench_steps

    rows = bench_steps.measure_size(6, torch_gpusort, "cpu", False, set())
    assert all(row["equal"] for row in rows)
    assert {row["label"] for row in rows} >= {"M1 sequential", "M5 circular", "R1 one bit", "R5 onesweep", "O1 bitonic", "NumPy, sort"}
    content = {"environment": {"copy_gb_s": 4000.0, "gpu": "a GPU"}, "rows": rows}
    assert len(bench_steps.table(content).splitlines()) == 2 + len(rows)
    if importlib.util.find_spec("matplotlib"):
        bench_steps.draw(content, tmp_path / "steps.png")
        assert (tmp_path / "steps.png").stat().st_size > 0


def test_the_cpu_scaling_measures_and_compares(tmp_path):
    from benchmarks import cpu_scaling

    path = tmp_path / "scaling.json"
    assert cpu_scaling.main(["--log2", "8", "--threads", "2", "--output", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert {row["threads"] for row in rows} == {1, 2} and all(row["equal"] for row in rows)
    assert len(cpu_scaling.table(rows).splitlines()) == 2 + len(rows) // 2


def test_the_peers_are_a_command():
    """`python -m benchmarks.peers` is documented; a package needs a __main__ for it."""
    assert importlib.util.find_spec("benchmarks.peers.__main__")


def test_tuning_measures_every_family_and_names_what_is_better(tmp_path):
    from benchmarks import tune

    path = tmp_path / "tune.json"
    assert tune.main(["--device", "cpu", "--largest", "1024", "--budget", "0.001", "--output", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [tuple(row["shape"]) for row in rows] == 2 * tune.shapes(1024) and all(set(tune.FAMILIES) <= set(row) for row in rows)
    row = {"dtype": "float32", "shape": [1, 512], "auto": 4.0, "grid": 3.9, "radix": 3.0}
    assert tune.better(row) == "radix"
    assert tune.better(row | {"radix": 3.95, "grid": 4.2}) is None
