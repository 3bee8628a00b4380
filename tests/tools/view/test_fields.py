"""Fields on pages: drawn over images by the code of contact sheets, switched off, and explained."""

import html
import io
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

import iterators
from iterators.fields import Boxes, Keypoints, Mask, Text
from iterators.images.contact_sheet import COLOURS, Layer, Tile, drawn
from iterators.testing import encode, write_rows
from recordio.packs.fields_meta import FieldMeta, format_fields
from recordio.tools.view.calls import CallError, Settings, parse_call, parse_fields
from recordio.tools.view.pack import ShownPack
from recordio.tools.view.site import HERE
from recordio.tools.view.training import Trainer, usual

WIDTH, HEIGHT, COUNT = 60, 48, 6
GREY = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
#: By keys, which are not positions.
KEYS = range(10, 10 + COUNT)


def mask_of(number):
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[10:30, 10:40] = 1 + number
    mask[30:, 50:] = 255
    return mask


def write_set(prefix):
    """Images with a field of every kind; the mask of the last one is damaged, its text missing."""

    def write(name, rows, count=COUNT):
        rows = [(number, labels, content) for number, (labels, content) in enumerate(rows)]
        order = list(range(count))[::-1] if name else range(count)
        path = f"{prefix}.{name}.rec" if name else f"{prefix}.rec"
        write_rows(path, [rows[i] for i in order], keys=[KEYS[i] for i in order])

    write("", [(float(i % 2), encode(GREY, ".png")) for i in range(COUNT)])
    masks = [encode(mask_of(i), ".png") for i in range(COUNT)]
    write("mask", [(0.0, m if i < COUNT - 1 else m[:60]) for i, m in enumerate(masks)])
    points = [2, 6, 0.25, 0.5, 2, 0.75, 0.5, 1]
    write("points", [(points, b"")] * COUNT)
    write("boxes", [([2, 5, 1, 0.1, 0.2, 0.9, 0.8], b"")] * COUNT)
    texts = [(0.0, f"<b>number {i}</b>\nsecond".encode()) for i in range(COUNT)]
    write("caption", texts, COUNT - 1)
    write("meta", [(0.0, b'{"a": 1}')] * COUNT)
    depth = np.arange(HEIGHT * WIDTH, dtype=np.uint16).reshape(HEIGHT, WIDTH)
    write("depth", [(0.0, cv2.imencode(".png", depth)[1].tobytes())] * COUNT)
    return prefix


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return str(write_set(tmp_path_factory.mktemp("fields") / "set"))


@pytest.fixture
def pack(prefix):
    shown = ShownPack(prefix)
    shown.locations.survey()
    yield shown
    shown.close()


@pytest.fixture
def browser(prefix):
    pytest.importorskip("starlette", reason="the extra view is not installed")
    from starlette.testclient import TestClient

    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site

    site = Site(open_packs([prefix]))
    site.packs["set"].locations.survey()
    with TestClient(application(site, "token", 80), base_url="http://localhost") as client:
        client.get("/?token=token")
        yield client
    site.close()


def picture(browser, address, **parameters):
    answer = browser.get(address, params=parameters)
    assert answer.status_code == 200, answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)).convert("RGB"))


def test_kinds_are_told_by_what_is_stored(pack):
    kinds = {name: type(kind).__name__ for name, kind in pack.fields.kinds.items()}
    assert kinds == {
        "boxes": "Boxes", "caption": "Text", "depth": "Image", "mask": "Mask", "meta": "Json",
        "points": "Keypoints",
    }  # fmt: skip
    assert pack.fields.drawn == ["boxes", "mask", "points"] and not pack.fields.notes
    assert set(pack.fields.whole()) == {"boxes", "mask", "points"}  # a caption is missing


def test_a_picture_has_what_the_sheet_of_its_batch_has(browser, prefix):
    """The one drawing: of stored fields, and of the same fields that an iterator delivers."""
    fields = {"boxes": Boxes(), "mask": Mask(), "points": Keypoints()}
    settings = {"data_shape": (3, HEIGHT, WIDTH), "batch_size": 1, "dtype": "uint8"}
    with iterators.ImageRecordIter(path_imgrec=f"{prefix}.rec", fields=fields, **settings) as one:
        sheet = one.show(classes={})
    corner = sheet.height - 16 - 4 - HEIGHT
    expected = np.asarray(sheet.crop((4, corner, 4 + WIDTH, corner + HEIGHT)))
    assert np.array_equal(picture(browser, "/pack/set/image/0/224"), expected)
    assert not np.array_equal(expected, GREY)


def test_masks_have_a_colour_for_each_value_and_stripes_where_they_are_ignored(browser):
    for number in (0, 1, 3):
        shown = picture(browser, f"/pack/set/image/{number}/224", hide="points,boxes")
        half = np.rint((np.array(COLOURS[number]) + 100) / 2)
        assert np.array_equal(shown[20, 25], half)
        assert np.array_equal(shown[10, 25], COLOURS[number])  # its edge
        assert (shown[:9] == 100).all()
        ignored = shown[32:, 52:]
        assert (np.ptp(ignored, axis=-1) == 0).all() and 1 < len(np.unique(ignored)) < 5


def test_each_drawing_is_switched_off(browser):
    everything = picture(browser, "/pack/set/image/0/224")
    for name in ("mask", "points", "boxes"):
        assert not np.array_equal(picture(browser, "/pack/set/image/0/224", hide=name), everything)
    bare = picture(browser, "/pack/set/image/0/224", hide="mask,points,boxes")
    assert np.array_equal(bare, GREY)
    for odd in ("caption", "nothing", "../x"):
        assert browser.get("/pack/set/image/0/224", params={"hide": odd}).status_code == 404
    for page in ("/pack/set/", "/pack/set/record/0"):
        text = html.unescape(browser.get(page).text)
        link = re.search(r'href="([^"]+)" aria-label="Hide mask"', text)[1]
        text = html.unescape(browser.get(link).text)
        assert "hide=mask" in re.search(r'<img src="(/pack/set/image/[^"]+)"', text)[1]
        link = re.search(r'href="([^"]+)" aria-label="Show mask"', text)[1]
        text = html.unescape(browser.get(link).text)
        assert "hide=" not in re.search(r'<img src="(/pack/set/image/[^"]+)"', text)[1]
    text = html.unescape(browser.get("/pack/set/", params={"hide": "mask", "n": 2}).text)
    assert re.search(r'href="[^"]*hide=mask[^"]*"[^>]*>Next', text)
    assert re.search(r'class="tile" href="/pack/set/record/0\?hide=mask"', text)


def test_a_picture_is_sent_again_only_when_it_differs(browser):
    answer = browser.get("/pack/set/image/0/224")
    tag = {"if-none-match": answer.headers["etag"]}
    assert browser.get("/pack/set/image/0/224", headers=tag).status_code == 304
    assert browser.get("/pack/set/image/0/224?hide=mask", headers=tag).status_code == 200


def test_the_page_of_a_record_explains_its_fields(browser):
    text = browser.get("/pack/set/record/2").text
    assert "mask: png, 60 x 48" in text and "JSON: {" in text
    assert "key points: 1 instance of 2 points, 1 seen, 1 hidden" in text
    assert "boxes: 1 object" in text
    assert '<p class="text">&lt;b&gt;number 2&lt;/b&gt;\nsecond</p>' in text
    assert "<b>number" not in text
    legend = re.search(r'<p class="legend">.*', text)[0]
    assert 'swatch m2"></span>3 <span class="small">21%' in legend
    assert 'swatch ignored"></span>ignored' in legend
    depth = picture(browser, "/pack/set/field/depth/2/224")
    assert depth.shape[:2] == (HEIGHT, WIDTH) and depth[0, 0, 0] == 0 and depth[-1, -1, 0] == 255
    assert 'src="/pack/set/field/depth/2/1280"' in text


def test_the_grid_has_captions(browser):
    assert "&lt;b&gt;number 0&lt;/b&gt;" in browser.get("/pack/set/").text


def test_damaged_and_missing_fields_leave_the_image(browser):
    text = browser.get(f"/pack/set/record/{COUNT - 1}").text
    assert "its field caption is missing" in text
    assert re.search(r"Field mask</th><td>[^<]*(truncated|cut|damaged|ends)", text), text
    shown = picture(browser, f"/pack/set/image/{COUNT - 1}/224", hide="points,boxes")
    assert np.array_equal(shown, GREY)
    assert "cannot be decoded" in browser.get("/pack/set/field/caption/0/224").text
    assert "cannot be decoded" in browser.get("/pack/set/field/none/0/224").text


def test_fields_of_large_images_are_drawn_at_the_size_of_the_picture(tmp_path):
    """A mask by the nearest pixel, points and boxes in fractions."""
    image = np.full((600, 900, 3), 100, np.uint8)
    mask = np.zeros((600, 900), np.uint8)
    mask[:, :450] = 7
    write_rows(tmp_path / "a.rec", [(0, 0.0, encode(image, ".png"))], keys=[0])
    write_rows(tmp_path / "a.mask.rec", [(0, 0.0, encode(mask, ".png"))], keys=[0])
    write_rows(tmp_path / "a.at.rec", [(0, [2, 3, 0.75, 0.5, 2], b"")], keys=[0])
    shown = ShownPack(str(tmp_path / "a"))
    layers = shown.fields.layers(0, (150, 225, 3))
    assert (layers[1].values == np.where(np.arange(225) < 112, 7, 0)).mean() > 0.99
    assert layers[0].values.tolist() == [[[168.75, 75, 2]]]
    shown.close()


def test_training_shows_fields_before_and_after(browser, prefix, pack):
    settings = usual(pack)
    assert set(settings.keywords["fields"]) == {"boxes", "mask", "points"}
    answer = browser.get("/pack/set/training")
    assert answer.status_code == 200 and "SHA-256" not in answer.text
    call = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", answer.text, re.S)[1])
    answer = browser.get("/pack/set/training", params={"call": call})
    assert answer.status_code == 422 and "set.mask.rec" in answer.text  # a damaged one
    skipping = call[:-1] + ", on_error='skip')"
    answer = browser.get("/pack/set/training", params={"call": skipping})
    assert answer.status_code == 200 and "SHA-256" in answer.text, answer.text
    query = dict(answer.url.params)
    shown = picture(browser, "/pack/set/training/sample", **query, slot=0)
    with iterators.ImageRecordIter(
        path_imgrec=f"{prefix}.rec", on_error="skip", **settings.keywords
    ) as provider:
        batch = provider.next()
        provider.reset()
    for name in ("mask", "boxes", "points"):
        found = browser.get("/pack/set/training/batch.npy", params={**query, "what": name})
        assert np.load(io.BytesIO(found.content)).tobytes() == batch[name].tobytes()
    pixels = np.clip(np.rint(batch["data"][0].transpose(1, 2, 0)), 0, 255).astype(np.uint8)
    values = batch["mask"][0].astype(int)
    boxes = batch["boxes"][0].copy()
    boxes[:, 1:] /= (WIDTH, HEIGHT, WIDTH, HEIGHT)
    layers = [
        Layer("boxes", boxes), Layer("mask", np.where(values == 255, -1, values)),
        Layer("points", batch["points"][0]),
    ]  # fmt: skip
    assert np.array_equal(shown, np.asarray(drawn(Tile(pixels, layers=layers))))
    answer = browser.get("/pack/set/training", params={**query, "record": 1})
    assert answer.text.count("<polygon") == 16
    assert 'src="/pack/set/image/1/1280"' in answer.text
    after = picture(browser, "/pack/set/training/sample", **{**query, "record": 1}, slot=0)
    assert after.shape == (HEIGHT, WIDTH, 3) and (np.ptp(after, axis=-1) > 0).any()


def test_views_and_captions_are_shown(browser, prefix):
    call = (
        "ImageRecordIter(data_shape=(3, 24, 24), batch_size=2, views=[{}, {}], on_error='skip', "
        "fields={'mask': iterators.fields.Mask(ignore=255), 'caption': Text(line='first')})"
    )
    answer = browser.get("/pack/set/training", params={"call": call})
    assert answer.status_code == 200 and "SHA-256" in answer.text, answer.text
    assert "&lt;b&gt;number 0&lt;/b&gt;" in answer.text and "mask1 as .npy" in answer.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{'mask': open('/etc/passwd')}", "executes nothing"),
        ("{'mask': Mask(ignore=open('x'))}", "executes nothing"),
        ("{'mask': Mask(255)}", "executes nothing"),
        ("{'mask': Mask}", "executes nothing"),
        ("{**x}", "executes nothing"),
        ("{f(): Mask()}", "executes nothing"),
        ("{'mask': Mask(ignore=256)}", "ignore=256 does not fit dtype='uint8'"),
        ("{'mask': Mask(**{})}", "Mask"),
        ("{'mask': Mask(depth=3)}", "depth"),
    ],
)
def test_kinds_of_fields_are_read_and_nothing_else(text, reason):
    call = f"ImageRecordIter(batch_size=1, data_shape=(3, 8, 8), fields={text})"
    with pytest.raises(CallError, match=reason):
        parse_call(call)
    with pytest.raises(CallError, match=reason):
        parse_fields({"kind": "ImageRecordIter", "fields": text})


def test_settings_with_fields_are_an_address_and_a_call():
    fields = {"mask": Mask(ignore=3), "points": Keypoints(swap=[(0, 1)]), "t": Text(line="first")}
    settings = Settings(keywords={"fields": fields, "batch_size": 3})
    assert parse_fields(settings.query()) == settings
    assert parse_call(settings.text())[0] == settings
    for given in (["mask"], {"mask": None}):  # the pack says which kinds
        assert (
            parse_call(Settings(keywords={"fields": given}).text())[0].keywords["fields"] == given
        )


def test_the_colours_of_pages_are_those_of_pictures():
    style = (HERE / "static" / "view.css").read_text()
    for number, colour in enumerate(COLOURS):
        assert f".m{number} {{ --c: rgb({' '.join(map(str, colour))}); }}" in style
    assert f".m{len(COLOURS)} " not in style


def test_what_is_said_of_fields_is_shown(prefix, tmp_path):
    """Kinds, names and skeletons of ``PREFIX.fields.json``, which its first records do not tell."""
    for file in Path(prefix).parent.glob("set.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    described = {
        "mask": FieldMeta(kind="mask", ignore=3, classes={1: "cat", 255: "<b>dog"}),
        "points": FieldMeta(kind="keypoints", points=["a", "b"], skeleton=[(0, 1)], swap=[(0, 1)]),
        "boxes": FieldMeta(kind="boxes", classes={1: "tree"}),
        "meta": FieldMeta(kind="bytes"),
        "depth": FieldMeta(kind="mask", dtype="uint16", ignore=0),
    }
    (tmp_path / "set.fields.json").write_bytes(format_fields(described))
    shown = ShownPack(str(tmp_path / "set"))
    fields = shown.fields
    assert list(fields.kinds) == ["boxes", "depth", "mask", "points"]  # no caption, and no bytes
    assert fields.kinds["points"].swap == ((0, 1),) and fields.kinds["mask"].ignore == 3
    layers = {name: fields.layers(KEYS[2], (HEIGHT, WIDTH, 3), {*fields.drawn} - {name})[0]
              for name in fields.drawn}  # fmt: skip
    assert layers["boxes"].names == {1: "tree"} and list(layers["points"].lines) == [(0, 1)]
    assert (layers["mask"].values == -1).sum() == 600
    legend = {one.name for field in fields.on_page(KEYS[0], None) for one in field.legend}
    assert {"cat", "<b>dog"} <= legend
    settings = Settings(keywords={**usual(shown).keywords, "on_error": "skip", "batch_size": 2})
    tile = Trainer().batch(shown, settings, 0, 0).tiles[0]
    found = {layer.kind: layer for layer in tile.layers}
    assert found["boxes"].names == {1: "tree"} and list(found["points"].lines) == [(0, 1)]
    shown.close()


def test_a_damaged_description_is_said_and_images_are_shown(prefix, tmp_path):
    for suffix in ("rec", "idx", "mask.rec", "mask.idx"):
        (tmp_path / f"set.{suffix}").write_bytes(Path(f"{prefix}.{suffix}").read_bytes())
    (tmp_path / "set.fields.json").write_text("{")
    shown = ShownPack(str(tmp_path / "set"))
    assert shown.fields.drawn == [] and "no JSON" in shown.fields.notes[0]
    shown.close()
