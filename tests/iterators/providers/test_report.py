"""`report()`: what it counts, says and advises; no test compares times."""

import os
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from iterators import (
    AbstractDataProvider,
    ArrayDataProvider,
    DataBatch,
    DataDesc,
    ImageIter,
    ImageRecordIter,
    PrefetchingIter,
    ResizeIter,
)
from iterators.providers import advice, auto_threads
from iterators.providers.advice import advised, tried
from iterators.providers.auto_threads import AutoThreads, next_count
from iterators.providers.report import PHASES, Capacity, EpochReport, EpochTimes
from iterators.testing import copies, encode_jpeg, maker, picture, same, write_pack
from recordio.formats.jpeg import encoder, jpeg

COUNT = 22
SHAPE = {"data_shape": (3, 48, 48)}
CROP = {"random_resized_crop": True, "min_random_area": 0.2, "rand_mirror": True, "shuffle": True}
make = maker(ImageRecordIter, batch_size=4, preprocess_threads=2, verbose=False, **SHAPE)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Photographs larger than they have to be."""
    images = [encode_jpeg(picture(180, 240, seed, noise=8), quality=95) for seed in range(COUNT)]
    return write_pack(tmp_path_factory.mktemp("report") / "pack.rec", images)


def metrics(text):
    """Parse the text format of Prometheus: values by name and labels."""
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("#"):
            kind, name = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) .+", line).groups()
            typed.add((kind, name))
            continue
        name, labels, value = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line).groups()
        assert {("HELP", name), ("TYPE", name)} <= typed
        found[name, labels or ""] = float(value)
    return found


def check(report, images):
    """Check what holds for every report."""
    assert report.images == images and report.seconds > 0
    assert report.rate == pytest.approx(images / report.seconds)
    assert sum(report.shares.values()) == pytest.approx(1)
    assert list(report.shares) == list(report.microseconds) and set(report.shares) <= set(PHASES)
    assert 0 <= report.threads_busy <= report.threads
    assert 0 <= report.waited_for_consumer <= report.seconds
    assert 0 <= report.waited_for_data <= report.seconds * 1.001
    found = metrics(report.prometheus("loader"))
    assert found["loader_epoch_images", ""] == images
    assert f"{images} images" in str(report)


# -- what is counted ------------------------------------------------------------------------------


def test_a_provider_reports_its_last_epoch(pack):
    with make(pack, **CROP) as provider:
        before = provider.report()
        assert before.images == 0 and before.threads == 2 and not before.shares
        assert str(before).startswith("0 images")
        assert metrics(before.prometheus())["recordio_epoch_images", ""] == 0
        for _ in range(2):
            list(provider)
            check(provider.report(), COUNT)
        assert {"read", "decode", "resample", "augment", "normalise"} <= {*provider.report().shares}
        for number, _ in enumerate(provider, 1):
            check(provider.report(advise=False), 4 * number)
            if number == 2:
                break
        last = provider.report(advise=False)
    assert provider.report().images == last.images == 8
    with pytest.raises(AttributeError):
        last.images = 3


def test_an_iterator_of_samples_is_an_epoch(pack):
    with make(pack, **CROP) as provider:
        for _ in provider.iterator(batch_size=5, num_batches=2, mode="shuffled_sequential"):
            pass
        check(provider.report(), 10)


def test_rows_have_waits_and_no_advice():
    provider = ArrayDataProvider(np.arange(30.0), batch_size=4)
    list(provider)
    report = provider.report()
    check(report, 30)
    assert {"read", "collate"} <= {*report.shares} and "decode" not in report.shares


@pytest.mark.parametrize("wrap", [lambda it: ResizeIter(it, 3), PrefetchingIter])
def test_a_wrapper_reports_those_inside(pack, wrap):
    with wrap(make(pack)) as provider:
        count = sum(batch.count for batch in provider)
        check(provider.report(), count)
        assert "decode" in provider.report().shares


class Own(AbstractDataProvider):
    """A class of somebody's own."""

    provide_data, provide_label, left = [DataDesc("data", (4, 2))], [], 3

    def reset(self):
        self.left = 3

    def next(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return DataBatch([np.zeros((4, 2))], provide_data=self.provide_data, pad=self.left == 0)


class OwnBatches(AbstractDataProvider):
    """The same by a generator."""

    provide_data, provide_label = Own.provide_data, []

    def eachbatch(self):
        yield from (
            DataBatch([np.zeros((4, 2))], provide_data=self.provide_data, pad=n == 2)
            for n in range(3)
        )


@pytest.mark.parametrize("kind", [Own, OwnBatches])
def test_a_class_of_its_own_spends_its_time_in_python(kind):
    provider = kind()
    assert provider.report().images == 0
    for _ in range(2):
        list(provider)
        check(provider.report(), 11)
        assert list(provider.report().shares) == ["python"]


def test_functions_in_python_are_named(pack):
    def cut(image):
        return image[:48, :48]

    with ImageIter(
        path_imgrec=pack, batch_size=4, aug_list=[cut], preprocess_threads=1, **SHAPE
    ) as provider:
        list(provider)
        report = provider.report()
        check(report, COUNT)
        assert {"read", "decode", "python", "collate"} <= {*report.shares}
        texts = [
            found.text for found in tried(report, report.capacity, provider._make_engine, 0, "cut")
        ]
    assert texts == ["keywords of the recipe in place of cut in Python"]


def test_times_are_those_of_the_epoch():
    times = EpochTimes()
    assert times.report({}).images == 0
    times.begin({"images": 100, "decode_seconds": 5.0, "working_seconds": 9.0})
    times.ask()
    times.add("upload", 0.5)
    times.deliver(10, waited=0.0)
    counters = {
        "images": 120, "decode_seconds": 7.0, "working_seconds": 11.5, "threads": 4,
        "processor_seconds": 2.0,
    }  # fmt: skip
    times.finish(counters)
    report = times.report({**counters, "decode_seconds": 99.0})
    assert report.images == 10 and report.threads == 4
    # Twenty images were made, ten of them for the next epoch; a fifth of the time was no work.
    assert report.microseconds["decode"] == pytest.approx(1e5)
    assert report.microseconds["stalled"] == pytest.approx(0.5e6 / 20)
    assert report.microseconds["upload"] == pytest.approx(5e4)


def test_labels_are_escaped():
    text = EpochReport(images=1).prometheus(loader='a"b\\c\nd')
    assert r'{loader="a\"b\\c\nd"}' in text and len(metrics(text)) >= 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_may_ask(pack):
    with make(pack) as provider:
        list(provider)
        child = os.fork()
        if not child:
            os._exit(provider.report(advise=False).images != COUNT)
        assert os.waitpid(child, 0)[1] == 0


# -- advice ---------------------------------------------------------------------------------------


def measured(capacity, waited=0.9, rate=None, **more):
    rate = capacity.rate if rate is None else rate
    return EpochReport(
        images=1000, seconds=1000 / rate, rate=rate, waited_for_data=waited * 1000 / rate,
        shares={"decode": 1.0}, microseconds={"decode": 1e6 * capacity.working},
        threads=capacity.threads, predicted_rate=rate, capacity=capacity, **more,
    )  # fmt: skip


SLOW = Capacity(threads=2, working=0.004, on_processor=0.004, loop=0.0001, processors=8)


@pytest.mark.parametrize(
    ("capacity", "waited", "keywords", "gain"),
    [
        (SLOW, 0.9, {"preprocess_threads": 8}, 4),
        # The loop takes 1 ms: four threads deliver as much.
        (replace(SLOW, loop=0.001), 0.5, {"preprocess_threads": 4}, 2),
        (replace(SLOW, threads=8, loop=0.01), 0.0, {"preprocess_threads": 1}, 1),
        (replace(SLOW, threads=16), 0.9, {"preprocess_threads": 8}, 1),
        (replace(SLOW, threads=8), 0.9, {}, 1),
        (replace(SLOW, threads=1, loop=0.01), 0.0, {}, 1),
    ],
)
def test_threads_follow_from_the_numbers(capacity, waited, keywords, gain):
    report = advised(measured(capacity, waited))
    assert dict(report.keywords) == keywords
    assert report.predicted_rate == pytest.approx(gain * report.rate, rel=0.03)
    assert all(name in report.advice for name in keywords)


def test_the_prediction_is_in_proportion_to_what_was_measured():
    report = advised(measured(SLOW, rate=300))
    assert report.predicted_rate == pytest.approx(1200)
    assert f"({report.predicted_rate:.0f} a second)" in str(report)


def test_functions_in_the_loop_are_left_out():
    capacity = Capacity(
        2, working=0.001, on_processor=0.001, loop=0.004, loop_on_processor=0.004, processors=2,
        loop_python=0.0036,
    )  # fmt: skip
    report = advised(measured(capacity, waited=0.01), python="Blur")
    assert "Blur in Python" in report.advice and report.predicted_rate > 3 * report.rate


def test_a_provider_without_threads_has_no_advice():
    assert "nothing" in advised(EpochReport(images=3, seconds=1, rate=3)).advice


def texts(provider, epoch=1):
    """Run an epoch, and return the changes that are tried."""
    list(provider)
    report = provider.report(advise=False)
    found = list(tried(report, report.capacity, provider._make_engine, epoch, ""))
    assert all(change.capacity.rate > 0 for change in found)
    return {change.text.split(",")[0].split(":")[0]: change for change in found}


def written(side):
    """The changes that write a pack again, which has JPEG images."""
    both = {"recordio optimize PACK PREFIX", f"im2rec --resize {side}"}
    return both if encoder.available() else set()


def test_changes_are_tried_where_they_are_possible(pack, monkeypatch):
    monkeypatch.setattr(advice, "LEAST_SHARE", 0.0)
    points = jpeg.available()
    with make(pack, resize=56, rand_crop=True, scaled_decode=False, mean_r=9) as provider:
        found = texts(provider)
    assert {*found} == written(56) | {*["entry_points=True"] * points} | {
        "scaled_decode=True", 'dtype="uint8"', 'cache="ram"',
    }  # fmt: skip
    assert found['dtype="uint8"'].keywords == {"dtype": "uint8", "mean_r": 0.0}
    monkeypatch.setattr(advice, "available_memory", lambda: 0)
    with make(pack, **CROP, dtype="uint8", entry_points=points) as provider:
        assert {*texts(provider)} == written(55)
    with make(pack, resize=56, cache="ram", cache_size=1 << 24) as provider:
        assert not texts(provider)


@pytest.mark.parametrize(
    "change", [pytest.param("entry_points=True", marks=pytest.mark.libjpeg), 'cache="ram"']
)
def test_a_change_that_is_followed_changes_no_batch(pack, monkeypatch, change):
    monkeypatch.setattr(advice, "LEAST_SHARE", 0.0)
    keywords = {"resize": 56, "rand_crop": True, "shuffle": True}
    with make(pack, **keywords) as provider:
        found = texts(provider)[change].keywords
        reference = copies(provider)
    with make(pack, **{**keywords, **found}) as provider:
        list(provider)
        assert same(copies(provider), reference)


# -- threads by themselves ------------------------------------------------------------------------


@pytest.fixture
def restless(monkeypatch):
    """Four processors, and a decision after every batch."""
    monkeypatch.setattr(auto_threads, "default_threads", lambda: 4)
    monkeypatch.setattr(auto_threads, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(auto_threads, "LEAST_BATCHES", 1)


def test_threads_never_change_a_batch(pack, restless, monkeypatch):
    runs = []
    for threads in (1, 4, "auto"):
        with make(pack, **CROP, preprocess_threads=threads) as provider:
            runs.append(copies(provider) + copies(provider))
    numbers = iter([1, 3, 2, 4] * 100)
    monkeypatch.setattr(auto_threads, "next_count", lambda *_, **__: next(numbers))
    with make(pack, **CROP, preprocess_threads="auto") as provider:
        runs.append(copies(provider) + copies(provider))
    assert all(same(run, runs[0]) for run in runs[1:])


def test_a_slow_loop_gets_fewer_threads(pack, restless):
    with make(pack, preprocess_threads="auto") as provider:
        assert isinstance(provider._engine, AutoThreads) and provider.report().threads == 4
        for _ in range(3):
            for _ in provider:
                time.sleep(0.02)
        assert provider.report(advise=False).threads < 4


def test_a_run_is_resumed_under_other_threads(pack, restless):
    with make(pack, **CROP, preprocess_threads=3) as provider:
        reference = copies(provider)
    with make(pack, **CROP, preprocess_threads="auto") as provider:
        provider.next()
        state = provider.state_dict()
    for threads in (1, "auto"):
        with make(pack, **CROP, preprocess_threads=threads) as provider:
            provider.load_state_dict(state)
            assert same(copies(provider), reference[1:])


def test_functions_in_python_have_threads_by_themselves_too(pack, restless):
    def cut(image):
        return image[:48, :48]

    runs = []
    for threads in (1, "auto"):
        with ImageIter(
            path_imgrec=pack, batch_size=4, aug_list=[cut], preprocess_threads=threads, **SHAPE
        ) as provider:
            runs.append(copies(provider) + copies(provider))
    assert same(*runs)


def test_a_number_or_auto(pack):
    for wrong in ("some", 0, 1.5, None):
        with pytest.raises((TypeError, ValueError), match="preprocess_threads"):
            make(pack, preprocess_threads=wrong)


@pytest.mark.parametrize(
    ("now", "waited", "busy", "expected"),
    [(1, 0.5, 1, 2), (4, 0.5, 4, 8), (8, 0.5, 8, 8), (8, 0.01, 7.9, 8), (8, 0, 0.1, 1)],
)
def test_threads_are_those_that_the_loop_can_use(now, waited, busy, expected):
    assert next_count(now, 8, waited=waited, busy=busy) == expected
