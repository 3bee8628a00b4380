"""MixUp and CutMix: what is drawn, what becomes of samples and labels, and exact resume."""

import json

import numpy as np
import pytest
import torch
from scipy import stats

from iterators import ArrayDataProvider, MixBatches
from recordio.errors import LabelError

RARE = 1e-4


def images(count=10, size=4, channels=3, side=8, dtype=np.float32, **more):
    data = np.arange(count, dtype=dtype)[:, None, None, None].repeat(channels, 1)
    data = data.repeat(side, 2).repeat(side, 3)
    return ArrayDataProvider(data, np.arange(count), batch_size=size, **more)


def mixed(**more):
    return MixBatches(images(), **{"mixup": 0.8, "classes": 10} | more)


def test_mixup_adds_sample_and_partner_and_their_labels():
    provider = mixed()
    for number, batch in enumerate(provider):
        weight = provider.mixture(0, number).weight
        count = batch.count
        own = np.arange(4 * number, 4 * number + count)
        partner = np.roll(own, 1)
        wanted = weight * own + (1 - weight) * partner
        np.testing.assert_allclose(batch.data[0][:count, 0, 0, 0], wanted, rtol=1e-5)
        labels = np.zeros((count, 10))
        labels[np.arange(count), own] += weight
        labels[np.arange(count), partner] += 1 - weight
        np.testing.assert_allclose(batch.label[0][:count], labels, rtol=1e-5)
        assert batch.label[0].dtype == np.float32


def test_cutmix_puts_a_rectangle_of_the_partner_into_a_sample():
    provider = mixed(mixup=0, cutmix=1.0)
    sizes = []
    for epoch in range(20):
        for number, batch in enumerate(provider):
            left, right, top, bottom = provider.mixture(epoch, number).rectangle(8, 8)
            inside = np.zeros((8, 8), bool)
            inside[top:bottom, left:right] = True
            own = np.arange(4 * number, 4 * number + batch.count)
            for i, partner in enumerate(np.roll(own, 1)):
                assert (batch.data[0][i][:, inside] == partner).all()
                assert (batch.data[0][i][:, ~inside] == own[i]).all()
                share = 1 - inside.mean()
                assert batch.label[0][i, own[i]] == pytest.approx(
                    share + (partner == own[i]) * inside.mean()
                )
            sizes.append(inside.mean())
    assert 0.05 < np.mean(sizes) < 0.5


def test_padding_is_not_mixed():
    last, plain = list(mixed())[-1], list(images())[-1]
    assert last.pad == 2
    np.testing.assert_array_equal(last.data[0][2:], plain.data[0][2:])
    np.testing.assert_array_equal(last.label[0][2:].argmax(1), plain.label[0][2:])
    assert set(last.data[0][:2].ravel()) != set(plain.data[0][:2].ravel())


def test_without_classes_there_are_pairs_and_the_share():
    provider = MixBatches(images(), cutmix=1.0)
    assert [desc.name for desc in provider.provide_label] == [
        "softmax_label", "softmax_label_partner", "softmax_label_share",
    ]  # fmt: skip
    batch = provider.next()
    label, partner, share = batch.label
    np.testing.assert_array_equal(label, [0, 1, 2, 3])
    np.testing.assert_array_equal(partner, [3, 0, 1, 2])
    left, right, top, bottom = provider.mixture(0, 0).rectangle(8, 8)
    np.testing.assert_allclose(share, 1 - (right - left) * (bottom - top) / 64)
    for desc, array in zip(provider.provide_label, batch.label):
        assert (desc.shape, desc.dtype) == (array.shape, array.dtype)


def test_smoothing_spreads_a_share_over_all_classes():
    provider = mixed(label_smoothing=0.1, prob=0.5)
    plain = [n for n in range(3) if provider.mixture(0, n) is None]
    batches = list(provider)
    for number in plain:
        rows = batches[number].label[0]
        assert rows.max() == pytest.approx(0.91)
        assert rows.min() == pytest.approx(0.01)
    for batch in batches:
        np.testing.assert_allclose(batch.label[0].sum(1), 1, rtol=1e-5)


def test_weights_are_beta_and_choices_as_asked():
    provider = mixed(cutmix=0.4, switch=0.3, prob=0.8)
    found = [provider.mixture(i % 50, i // 50) for i in range(6000)]
    assert stats.binomtest(sum(one is None for one in found), 6000, 0.2).pvalue > RARE
    some = [one for one in found if one is not None]
    cuts = [one for one in some if one.box is not None]
    assert stats.binomtest(len(cuts), len(some), 0.3).pvalue > RARE
    adds = np.array([one.weight for one in some if one.box is None])
    assert stats.kstest(adds, stats.beta(0.8, 0.8).cdf).pvalue > RARE
    assert stats.kstest([one.weight for one in cuts], stats.beta(0.4, 0.4).cdf).pvalue > RARE
    for axis in range(2):
        assert stats.kstest([one.box[axis] for one in cuts], "uniform").pvalue > RARE


def test_tensors_are_mixed_as_arrays_are():
    keywords = {"mixup": 0.8, "cutmix": 1.0, "classes": 10, "label_smoothing": 0.1}
    arrays = list(MixBatches(images(), **keywords))
    for array, tensor in zip(arrays, MixBatches(images(device="cpu"), **keywords), strict=True):
        assert isinstance(tensor.data[0], torch.Tensor)
        np.testing.assert_allclose(tensor.data[0].numpy(), array.data[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tensor.label[0].numpy(), array.label[0], rtol=1e-5)
        assert tensor.label[0].dtype == torch.float32


def test_a_resumed_run_mixes_as_an_uninterrupted_one():
    whole = mixed(cutmix=1.0, seed=7)
    batches = [batch for _ in range(3) for batch in whole]
    for stop in range(1, 8):
        first = mixed(cutmix=1.0, seed=7)
        for _ in range(stop):
            batch = None
            while batch is None:
                try:
                    batch = first.next()
                except StopIteration:
                    first.reset()
        state = json.loads(json.dumps(first.state_dict()))
        second = mixed(cutmix=1.0, seed=7)
        second.load_state_dict(state)
        rest = list(second)
        wanted = batches[stop : 3 * (stop // 3 + 1)] if stop % 3 else rest
        for one, other in zip(wanted, rest, strict=True):
            np.testing.assert_array_equal(one.data[0], other.data[0])
            np.testing.assert_array_equal(one.label[0], other.label[0])


def test_an_epoch_that_is_set_is_mixed_as_in_an_uninterrupted_run():
    whole, jumping = mixed(seed=7), mixed(seed=7)
    epochs = [[batch.data[0].tobytes() for batch in whole] for _ in range(3)]
    for epoch in (2, 0, 1):
        jumping.set_epoch(epoch)
        assert jumping.epoch == jumping.provider.epoch == epoch
        assert [batch.data[0].tobytes() for batch in jumping] == epochs[epoch]


def test_a_state_of_other_settings_is_refused():
    state = mixed(seed=1).state_dict()
    with pytest.raises(ValueError, match="seed=1, here it is 2"):
        mixed(seed=2).load_state_dict(state)


def test_what_the_provider_gave_stays_as_it_is():
    inside = images()
    kept = inside.next()
    before = kept.data[0].copy()
    inside.reset()
    next(iter(MixBatches(inside, mixup=1.0)))
    np.testing.assert_array_equal(kept.data[0], before)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: MixBatches(images()), "nothing would be mixed"),
        (lambda: MixBatches(images(), mixup=1, prob=0), "nothing would be mixed"),
        (lambda: MixBatches(images(), mixup=1, label_smoothing=0.1), "needs classes"),
        (lambda: MixBatches(images(), mixup=1, switch=2), "switch=2"),
        (lambda: MixBatches(images(dtype=np.uint8), mixup=1), "needs float pixels"),
        (lambda: MixBatches(images(), mixup=1, classes=3).next(), "there is a label 3"),
        (
            lambda: MixBatches(
                ArrayDataProvider(np.zeros((4, 2)), np.zeros(4), batch_size=2), cutmix=1
            ),
            "needs images",
        ),
        (
            lambda: MixBatches(
                ArrayDataProvider(np.zeros((4, 2)), np.zeros((4, 2)), batch_size=2), mixup=1
            ),
            "one class for every sample",
        ),
    ],
)
def test_what_cannot_be_mixed_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_samples_without_a_label():
    rows, labels = np.eye(4, dtype=np.float32), np.array([0, -1, 2, 1])

    def mixed(**keywords):
        inside = ArrayDataProvider(rows, labels, batch_size=4)
        return MixBatches(inside, mixup=1, classes=3, prob=1e-9, **keywords)

    with pytest.raises(LabelError, match='a label -1.*unlabelled="zero"'):
        mixed().next()
    wanted = [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(mixed(unlabelled="zero").next().label[0], wanted)
    smooth = mixed(unlabelled="zero", label_smoothing=0.3).next().label[0]
    assert not smooth[1].any() and np.allclose(smooth.sum(1), [1, 0, 1, 1])
    with pytest.raises(ValueError, match='unlabelled="zero" needs classes'):
        MixBatches(ArrayDataProvider(rows, labels, batch_size=4), mixup=1, unlabelled="zero")


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="did you mean 'cutmix'"):
        MixBatches(images(), cutmx=1)


def test_bfloat16_is_mixed_in_float32_and_rounded_once():
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    values = np.random.default_rng(0).normal(0, 2, (10, 3, 8, 8)).astype(kind)

    def mixed_of(data, **more):
        settings = {"mixup": 0.8, "cutmix": 1.0, "seed": 3, "classes": 10}
        return list(
            MixBatches(ArrayDataProvider(data, np.arange(10), batch_size=5, **more), **settings)
        )

    for device in (None, "cpu"):
        found = mixed_of(values, device=device)
        wanted = mixed_of(values.astype(np.float32))
        for batch, exact in zip(found, wanted, strict=True):
            data = batch.data[0] if device is None else batch.data[0].float().numpy()
            rounded = exact.data[0].astype(kind)
            if device is None:
                assert data.tobytes() == rounded.tobytes()
            else:  # torch takes one fused step
                np.testing.assert_allclose(data, rounded.astype("f4"), rtol=2**-7, atol=2**-7)
