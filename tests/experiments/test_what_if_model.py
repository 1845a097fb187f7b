"""What a model and a GPU add to a what-if."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.batching.policy import BatchPolicy, Overflow
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import what_if
from labkit.cost.devices import Precision, gpu
from labkit.cost.step_time import Bound
from labkit.errors import GpuError, PolicyError
from labkit.experiments.lineup import Lineup, policies
from labkit.experiments.model_cost import Mode
from labkit.experiments.what_if_model import OF_GPU, OF_MODEL, ModelChoice, Modelled, modelled, refuse_if_none_fits
from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.provenance import Origin

HISTOGRAM = LengthHistogram.from_lengths(power_law(20_000, alpha=1.6, max_length=512, seed=1))
H100 = gpu("H100")


def of(strategy: Strategy, choice: ModelChoice) -> Modelled:
    (policy,) = policies(HISTOGRAM, Lineup(), [strategy])
    return modelled(what_if(HISTOGRAM, policy), HISTOGRAM, choice)


def number(found: Modelled, name: str) -> float:
    value = found.figures[name].value
    assert value is not None
    return value


@pytest.mark.parametrize("strategy", [s for s in Strategy if s is not Strategy.RNN_PACKED])
def test_every_figure_is_modelled_and_the_parts_add_up(strategy: Strategy) -> None:
    found = of(strategy, ModelChoice(Model.DIN, H100))
    assert set(found.figures) == set(OF_MODEL | OF_GPU)
    assert {figure.origin for figure in found.figures.values()} == {Origin.MODELLED}
    parts = sum(number(found, name) for name in ("useful_s", "padding_s", "gap_s"))
    assert parts == pytest.approx(number(found, "time_s"))
    assert found.bound is not None


def test_less_padding_takes_less_memory_and_graphs_fewer_launches() -> None:
    choice = ModelChoice(Model.DIN, H100)
    padded, buckets, graph = (of(s, choice) for s in (Strategy.PAD_MAX, Strategy.BUCKET_BUDGET, Strategy.BUCKET_GRAPH))
    assert number(padded, "peak_bytes") > number(buckets, "peak_bytes")
    assert number(buckets, "launches") > 100 * number(graph, "launches")
    assert number(buckets, "time_s") > number(graph, "time_s")
    assert number(graph, "utilization") > number(buckets, "utilization")


def test_where_the_host_takes_longer_fewer_bytes_change_nothing_and_the_bound_is_launch() -> None:
    # few steps of few events: 2.4 times the slots, a faster memory, the same time; the device is busy for most of it
    lengths = LengthHistogram.from_lengths([737, *[100] * 942])
    largest, recent = (
        next(iter(policies(lengths, replace(Lineup(), max_length=cap), [strategy])))
        for strategy, cap in ((Strategy.PAD_MAX, None), (Strategy.PAD_RECENT, 300))
    )
    found = [
        modelled(what_if(lengths, policy), lengths, ModelChoice(Model.DIN, gpu(name)))
        for policy in (largest, recent)
        for name in ("H100", "H200")
    ]
    assert len({number(each, "time_s") for each in found}) == 1
    assert number(found[0], "utilization") > 0.5
    assert {each.bound for each in found} == {Bound.LAUNCH}
    assert {each.bound_share for each in found} == {1.0}


@pytest.mark.parametrize("strategy", [s for s in Strategy if s is not Strategy.RNN_PACKED])
def test_the_peak_says_what_is_not_in_it(strategy: Strategy) -> None:
    reason = of(strategy, ModelChoice(Model.DIN)).figures["peak_bytes"].reason or ""
    assert ("the inputs that the graph of each shape keeps" in reason) == (strategy is Strategy.BUCKET_GRAPH)
    assert ("the pool of the graphs" in reason) == (strategy is Strategy.BUCKET_GRAPH)


def test_a_peak_of_a_batch_that_need_not_occur_is_called_an_upper_bound() -> None:
    packed, padded = (
        of(strategy, ModelChoice(Model.GRU4REC)).figures["peak_bytes"].reason or ""
        for strategy in (Strategy.RNN_PACKED, Strategy.PAD_MAX)
    )
    assert "upper bound: the longest rows of all in one batch" in packed
    assert "upper bound" not in padded


def test_a_step_of_din_on_an_h100_is_a_plausible_one() -> None:
    # 256 rows of 512 slots: some 1e10 operations and 2e9 bytes, at 3.35e12 bytes a second half a millisecond or more;
    # to start a hundred kernels from Python takes a host one to a few milliseconds
    found = of(Strategy.PAD_MAX, ModelChoice(Model.DIN, H100))
    assert 0.5e-3 < number(found, "step_s") < 5e-3


def test_inference_is_less_than_training_and_tensor_cores_are_faster() -> None:
    train = of(Strategy.PACKED, ModelChoice(Model.SASREC, H100))
    infer = of(Strategy.PACKED, ModelChoice(Model.SASREC, H100, Mode.INFERENCE))
    tf32 = of(Strategy.PACKED, ModelChoice(Model.SASREC, H100, precision=Precision.TF32))
    for name in ("kernels", "peak_bytes", "time_s"):
        assert number(infer, name) < number(train, name)
    assert number(tf32, "useful_s") < number(train, "useful_s")
    assert number(tf32, "kernels") == number(train, "kernels")


def test_a_batch_above_the_memory_of_the_gpu_says_so() -> None:
    small = replace(H100, memory_bytes=10**7)
    reason = of(Strategy.PAD_MAX, ModelChoice(Model.DIN, small)).figures["peak_bytes"].reason
    assert reason is not None
    assert reason.endswith("; above the 10.00 MB of H100")
    assert "above" not in str(of(Strategy.PAD_MAX, ModelChoice(Model.DIN, H100)).figures["peak_bytes"].reason)


def test_without_batches_there_is_neither_time_nor_memory() -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(3,), rows=64, overflow=Overflow.DROP, drop_last=True)
    few = LengthHistogram.from_lengths([2, 1, 9])
    found = modelled(what_if(few, policy), few, ModelChoice(Model.DIN, H100))
    assert (found.figures["launches"].value, found.figures["kernels"].value) == (0, 0)
    for name in ("peak_bytes", *OF_GPU):
        assert (found.figures[name].value, found.figures[name].reason) == (None, "there is no batch")


def test_a_precision_that_the_gpu_lacks_is_refused_at_once() -> None:
    with pytest.raises(GpuError, match="T4 has no tensor cores for tf32"):
        ModelChoice(Model.DIN, gpu("T4"), precision=Precision.TF32)
    with pytest.raises(PolicyError, match=r"precision bf16 is not modelled: .* choose float32 or tf32"):
        ModelChoice(Model.DIN, H100, precision=Precision.BF16)


def test_a_model_that_goes_with_nothing_is_refused() -> None:
    none = [of(s, ModelChoice(Model.GRU4REC)) for s in (Strategy.JAGGED, Strategy.PACKED)]
    with pytest.raises(PolicyError, match="model gru4rec does not take the jagged layout"):
        refuse_if_none_fits(none)
    refuse_if_none_fits([*none, of(Strategy.PAD_MAX, ModelChoice(Model.GRU4REC))])
