"""What the page shows is what training gets, byte for byte; calls are parsed, never executed."""

import html
import io
import re

import numpy as np
import pytest
from PIL import Image

import iterators
from iterators.testing import write_pack
from recordio.tools.view.calls import CallError, Settings, form_groups, parse_call, parse_fields
from recordio.tools.view.training import Trainer, usual

CROPS = {
    "data_shape": (3, 24, 24),
    "batch_size": 8,
    "shuffle": True,
    "seed": 5,
    "random_resized_crop": True,
    "min_random_area": 0.2,
    "max_aspect_ratio": 0.25,
    "rand_mirror": True,
    "brightness": 0.3,
    "mean_r": 120.0,
    "std_r": 50.0,
}
WARPS = {"data_shape": (3, 20, 30), "batch_size": 7, "max_rotate_angle": 20, "pad": 3}


def query(settings, kind="ImageRecordIter", **more):
    return {"kind": kind, **{name: repr(value) for name, value in settings.items()}, **more}


def loaded(answer):
    assert answer.status_code == 200, answer.text
    return np.load(io.BytesIO(answer.content))


@pytest.mark.parametrize("kind", ["ImageRecordIter", "ImageRecordUInt8Iter"])
@pytest.mark.parametrize("settings", [CROPS, WARPS])
def test_batches_are_byte_for_byte_those_of_the_iterator(client, plain, kind, settings):
    settings = dict(settings)
    if kind == "ImageRecordUInt8Iter":
        settings = {name: v for name, v in settings.items() if name not in ("mean_r", "std_r")}
    make = getattr(iterators, kind)
    files = {"path_imgrec": f"{plain}.rec", "path_imgidx": f"{plain}.idx"}
    with make(**files, **settings) as provider:
        epochs = [list(provider) for _ in range(3)]
    for epoch, batches in enumerate(epochs):
        for number, batch in enumerate(batches):
            asked = query(settings, kind, in_epoch=epoch, batch=number)
            data = loaded(client.get("/pack/plain/training/batch.npy", params=asked))
            assert data.tobytes() == batch.data[0].tobytes() and data.dtype == batch.data[0].dtype
            asked["what"] = "label"
            labels = loaded(client.get("/pack/plain/training/batch.npy", params=asked))
            assert labels.tobytes() == batch.label[0].tobytes()
    asked = query(settings, kind, in_epoch=0, batch=len(epochs[0]))
    assert client.get("/pack/plain/training/batch.npy", params=asked).status_code == 404


def test_the_page_names_the_records_and_the_bytes(client, site, plain):
    answer = client.get("/pack/plain/training", params=query(CROPS, show=1, in_epoch=1, batch=3))
    with iterators.ImageRecordIter(path_imgrec=f"{plain}.rec", **CROPS, epoch=1) as provider:
        batch = list(provider)[3]
    assert f"pad {batch.pad}" in answer.text
    ids = [int(n) for n in re.findall(r"id (\d+)", answer.text)]
    assert ids == batch.index.tolist()
    positions = [int(n) for n in re.findall(r"record=(\d+)", html.unescape(answer.text))]
    assert positions[:8] == [int(n) - 1000 for n in batch.index]


def test_one_record_in_sixteen_epochs_is_what_the_loop_delivers(client, site, plain):
    pack, position = site.packs["plain"], 11
    shown = site.kept(Trainer).epochs(
        pack, Settings("ImageRecordIter", CROPS), pack.record(position).offset, 2
    )
    assert [one.sample.epoch for one in shown] == list(range(2, 18))
    with iterators.ImageRecordIter(path_imgrec=f"{plain}.rec", **CROPS, epoch=2) as provider:
        for one in shown:
            (found,) = [
                (batch.data[0][slot], batch.label[0][slot])
                for batch in provider
                for slot in np.flatnonzero(batch.index[: batch.count] == 1000 + position)
            ]
            assert one.sample.data.tobytes() == found[0].tobytes()
            assert one.sample.label[0] == found[1]
    answer = client.get(
        "/pack/plain/training", params=query(CROPS, show=1, record=position, in_epoch=2)
    )
    assert answer.text.count("<polygon") == 16
    asked = query(CROPS, record=position, in_epoch=2, slot=3)
    picture = client.get("/pack/plain/training/sample", params=asked)
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    assert np.array_equal(pixels, shown[3].tile.pixels)


def test_boxes_are_drawn_on_what_detection_sees(client, mixed):
    settings = {"data_shape": (3, 30, 30), "batch_size": 1, "on_error": "skip"}
    answer = client.get(
        "/pack/mixed/training", params=query(settings, "ImageDetRecordIter", show=1)
    )
    assert answer.status_code == 200 and "2 objects" in answer.text
    asked = query(settings, "ImageDetRecordIter", slot=0)
    answer = client.get("/pack/mixed/training/sample", params=asked)
    shown = np.asarray(Image.open(io.BytesIO(answer.content)))
    with iterators.ImageDetRecordIter(path_imgrec=f"{mixed}.rec", **settings) as provider:
        sheet = provider.show(provider.next())
    assert np.array_equal(shown, np.asarray(sheet)[-shown.shape[0] - 20 : -20, 4 : 4 + 30])


def test_the_form_starts_with_something_that_works(client):
    for name in ("plain", "faces"):
        text = client.get(f"/pack/{name}/training").text
        call = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", text, re.S)[1])
        answer = client.get(f"/pack/{name}/training", params={"call": call})
        assert answer.status_code == 200 and "SHA-256" in answer.text
    assert client.get("/pack/plain/training?record=3").text.count("<polygon") == 16


def test_what_an_iterator_refuses_is_explained(client):
    for settings, reason in (
        ({"batch_size": 4}, "needs data_shape"),
        ({"data_shape": (3, 8, 8), "batch_size": 0}, "batch_size"),
        ({"data_shape": (3, 8, 8), "batch_size": 4, "std_r": 0}, "std_r"),
        ({"data_shape": (3, 4096, 4096), "batch_size": 4096}, "more than"),
        ({"data_shape": "nonsense", "batch_size": 4}, "data_shape"),
    ):
        answer = client.get("/pack/plain/training", params=query(settings, show=1))
        assert answer.status_code == 422 and reason in html.unescape(answer.text), settings
    answer = client.get(
        "/pack/mixed/training", params=query({"data_shape": (3, 8, 8), "batch_size": 9}, show=1)
    )
    assert answer.status_code == 422 and "record 1" in answer.text


@pytest.mark.parametrize(
    "text",
    [
        "ImageRecordIter(batch_size=8, data_shape=(3, 8, 8))",
        "mx.io.ImageRecordIter(\n    path_imgrec=os.path.join(a, 'b'), batch_size=8,\n"
        "    data_shape=(3, 8, 8), preprocess_threads=cores())",
        "train = iterators.ImageRecordProvider(data_shape=(3, 8, 8), batch_size=8, ctx='gpu')",
        "ImageRecordIter(data_shape=(3, 8, 8), batch_size=8, remote_cache='/', remote_timeout=t)",
    ],
)
def test_calls_are_read_as_people_write_them(text):
    settings, _ = parse_call(text)
    expected = {"batch_size": 8, "data_shape": (3, 8, 8)}
    assert (settings.kind, settings.keywords) == ("ImageRecordIter", expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ImageRecordIter(batch_size=__import__('os').system('touch /tmp/x'))", "executes nothing"),
        ("ImageRecordIter(batch_size=[x for x in range(9)])", "executes nothing"),
        ("ImageRecordIter(batch_size=2**9)", "executes nothing"),
        ("ImageRecordIter(**keywords)", "name=value"),
        ("ImageRecordIter('a.rec')", "name=value"),
        ("ImageRecordIter", "expected one call"),
        ("import os", "expected one call"),
        ("ImageRecordIter(); ImageRecordIter()", "expected one call"),
        ("ImageRecordIter(", "not Python"),
        ("os.system(command='ls')", "system cannot be shown"),
        ("ImageRecordIter(mean_img='/etc/passwd')", "names a file"),
        ("ImageRecordIter(path_imglist='/etc/passwd')", "names a file"),
        ("ImageRecordIter(cache='/tmp/cache')", "keeps no cache"),
        ("ImageRecordIter(seed=" + "(" * 500 + "1" + ")" * 500 + ")", "not Python"),
        ("ImageRecordIter(seed=" + "-" * 9900 + "1)", "not Python|executes nothing"),
        ("x" * 20000, "characters"),
    ],
)
def test_nothing_but_literals_has_a_meaning(client, text, reason):
    with pytest.raises(CallError, match=reason):
        parse_call(text)
    answer = client.get("/pack/plain/training", params={"call": text[:4000]})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("kind", "keywords"),
    [
        ("ImageRecordIter", {"suffle": True}),
        ("ImageRecordIter", {"batch": 8}),
        ("ImageRecordIter", {"record": 3}),
        ("ImageRecordIter", {"kind": "jpeg"}),
        ("ImageRecordIter", {"rand_mirror_prob": 0.5}),
        ("ImageDetRecordIter", {"rand_mirrorprob": 0.5}),
        ("ImageRecordIter", {"aug_seq": "nonsense"}),
        ("ImageRecordIter", {"preprocess_threads": 0}),
        ("ImageRecordIter", {"prefetch_buffer": "many"}),
        ("ImageRecordIter", {"verbose": 7}),
        ("ImageRecordIter", {"shuffle": 7}),
    ],
)
def test_what_training_refuses_is_refused_with_the_same_error(client, plain, kind, keywords):
    given = {"batch_size": 8, "data_shape": (3, 8, 8), **keywords}
    with pytest.raises((TypeError, ValueError)) as refused:
        getattr(iterators, kind)(path_imgrec=f"{plain}.rec", **given)
    call = Settings(kind, given).text()
    answer = client.get("/pack/plain/training", params={"call": call})
    text = html.unescape(answer.text)
    assert answer.status_code == 422 and str(refused.value) in text
    (pasted,) = re.findall(r"<textarea.*</textarea>", text)
    assert all(f"{name}={value!r}" in pasted for name, value in given.items())


def test_unknown_keywords_of_an_address_are_refused(client):
    asked = query({"data_shape": (3, 8, 8), "batch_size": 4, "suffle": True})
    for page in ("", "/sample", "/batch.npy"):
        answer = client.get(f"/pack/plain/training{page}", params=asked)
        assert answer.status_code in (404, 422)
        assert "did you mean 'shuffle'?" in html.unescape(answer.text)


def test_a_keyword_that_is_given_twice_is_refused(client):
    with pytest.raises(CallError, match="seed is given twice"):
        parse_call("ImageRecordIter(batch_size=8, data_shape=(3, 8, 8), seed=1, seed=2)")


def test_values_that_only_the_script_knows_are_left_out_with_a_note():
    settings, notes = parse_call("ImageRecordIter(batch_size=8, preprocess_threads=cores())")
    assert settings.keywords == {"batch_size": 8}
    assert notes == ["preprocess_threads: makes no difference to what is shown"]


def test_what_mxnet_scripts_pass_for_nothing_is_accepted(client):
    call = 'ImageRecordIter(batch_size=8, data_shape=(3, 8, 8), aug_seq="aug_default")'
    assert client.get("/pack/plain/training", params={"call": call}).status_code == 200


@pytest.mark.parametrize("given", [True, 1, "true", "True"])
def test_switches_of_the_form_stand_where_the_call_put_them(client, given):
    (field,) = [one for one in form_groups(Settings(keywords={"shuffle": given}))["common"]
                if one.name == "shuffle"]  # fmt: skip
    assert field.value == "True"


def test_the_form_hands_on_exact_numbers(site, opened, tmp_path, images):
    write_pack(tmp_path / "large.rec", [images.jpeg(200, 300)], index=False)
    settings = usual(opened(str(tmp_path / "large")))
    assert settings.keywords["max_aspect_ratio"] == 4 / 3
    assert parse_fields(settings.query()) == settings
    assert parse_call(settings.text())[0] == settings


def test_the_form_stands_above_its_batch(client):
    asked = query({"data_shape": (3, 8, 8), "batch_size": 4}, show=1)
    for more in ({}, {"record": 3}):
        text = client.get("/pack/plain/training", params={**asked, **more}).text
        assert text.index('<form class="training"') < text.index('<form class="paste"')
        assert text.index('<form class="paste"') < text.index("<section aria-label=")


def test_fields_that_name_files_are_not_taken(client):
    fields = query({"data_shape": (3, 8, 8), "batch_size": 4}, path_imgrec="'/etc/passwd'")
    fields["remote_cache"] = "'/tmp/elsewhere'"
    assert not {"path_imgrec", "remote_cache"} & parse_fields(fields).keywords.keys()
    for name in ("mean_img", "cache", "path_imglist", "path_imgidx", "remote_cache"):
        assert name not in {one.name for group in form_groups(Settings()).values() for one in group}
    assert client.get("/pack/plain/training", params={**fields, "show": 1}).status_code == 200


def test_every_field_of_the_form_is_described():
    for kind in ("ImageRecordIter", "ImageDetRecordIter"):
        groups = form_groups(Settings(kind))
        assert groups["common"] and groups["more"]
        for one in [*groups["common"], *groups["more"]]:
            assert isinstance(one.text, str) and len(one.text) > 5, one
