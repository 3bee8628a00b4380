"""The pages of `recordio view` in a real browser: the main ways, without a mouse, on a phone."""

import re

import pytest

pytestmark = pytest.mark.browser

BATCH = "show=1&kind=ImageRecordIter&data_shape=(3,64,64)&batch_size=16&shuffle=True&rand_crop=True"
PAGES = [
    "/",
    "/side",
    "/pack/photos/",
    "/pack/photos/?where=label+%3D%3D+1",
    "/pack/photos/?where=label+%3D+1",
    "/pack/photos/record/7",
    "/pack/photos/numbers",
    "/pack/photos/search?q=cat",
    f"/pack/photos/training?{BATCH}",
    f"/pack/photos/training?{BATCH}&record=7",
    "/pack/damaged/damage",
    "/pack/damaged/record/2",
    "/pack/damaged/record/6",
    "/pack/harmful/",
    "/pack/harmful/record/1",
    "/pack/harmful/record/2",
    "/pack/fields/",
    "/pack/fields/record/2",
    "/pack/fields/record/2?hide=mask",
    "/pack/fields/training",
    "/nowhere",
]
PHONE = {"viewport": {"width": 375, "height": 760}}


def positions(page):
    links = page.locator("[data-grid] a.tile").evaluate_all("list => list.map(a => a.pathname)")
    return [int(link.rpartition("/")[2]) for link in links]


def loaded(page):
    """Wait for all pictures that are on the screen; their sizes."""
    page.wait_for_load_state("networkidle")
    return page.locator("main img").evaluate_all(
        "list => list.filter(i => i.complete).map(i => i.naturalWidth)"
    )


def test_the_printed_address_leads_to_the_packs(open_tab):
    page = open_tab("/").page
    assert page.locator(".card").count() == 4
    page.click("text=photos")
    page.wait_for_url("**/pack/photos/")
    assert positions(page) == list(range(60))
    sizes = loaded(page)
    assert len(sizes) >= 20 and all(sizes)
    assert "token" not in page.url


def test_the_grid_is_walked_without_a_mouse(open_tab):
    page = open_tab().page

    def focused():
        return page.evaluate("document.activeElement.pathname")

    page.keyboard.press("ArrowRight")
    assert focused() == "/pack/photos/record/0"
    page.keyboard.press("ArrowRight")
    assert focused() == "/pack/photos/record/1"
    page.keyboard.press("ArrowDown")
    below = focused()
    assert int(below.rpartition("/")[2]) > 2
    page.keyboard.press("ArrowUp")
    assert focused() == "/pack/photos/record/1"
    page.keyboard.press("Enter")
    page.wait_for_url("**/record/1")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/record/2")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/record/1")
    page.keyboard.press("u")
    page.wait_for_url("**/pack/photos/")


def test_pages_and_forms_have_keys(open_tab):
    page = open_tab().page
    page.keyboard.press("n")
    page.wait_for_url("**?at=60")
    page.keyboard.press("p")
    page.wait_for_url("**/pack/photos/")
    page.keyboard.press("g")
    page.keyboard.type("100")
    page.keyboard.press("Enter")
    page.wait_for_url("**?at=100")
    assert positions(page) == list(range(100, 150))
    page.keyboard.press("/")
    page.keyboard.type("img_033")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=img_033")
    page.click("text=IMG_033.jpg")
    page.wait_for_url("**/record/33")
    page.keyboard.press("?")
    assert page.locator("dialog[open] h2").inner_text() == "Keys"
    page.keyboard.press("Escape")
    assert not page.locator("dialog[open]").count()


def test_a_filter_is_an_address(open_tab):
    page = open_tab().page
    page.keyboard.press("f")
    page.keyboard.type("label == 2 and width > 200")
    page.keyboard.press("Enter")
    page.wait_for_url("**where=label**")
    found = positions(page)
    assert found and all(n % 3 == 2 and 120 + n > 200 for n in found)
    again = open_tab(page.url.partition("/pack")[1] + page.url.partition("/pack")[2]).page
    assert positions(again) == found


def test_numbers_fill_while_they_are_looked_at_and_lead_to_records(open_tab):
    page = open_tab("/pack/photos/numbers").page
    page.wait_for_selector("#live:not([data-live])")
    assert "150 of 150 records" in page.inner_text("#live")
    page.click("table.classes >> text=rocket")
    page.wait_for_url("**where=label+%3D%3D+2**")
    assert len(positions(page)) == 50
    page.go_back()
    bar = page.locator(".chart a").first
    count = int(bar.get_attribute("aria-label").rpartition(": ")[2])
    bar.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**where=**width**")
    assert len(positions(page)) == count


def test_a_batch_and_the_sixteen_epochs_of_a_record(open_tab):
    page = open_tab("/pack/photos/training").page
    page.fill("[name=data_shape]", "(3, 48, 48)")
    page.fill("[name=batch_size]", "10")
    page.fill("[name=in_epoch]", "2")
    page.click("text=Show the batch")
    page.wait_for_selector("text=Epoch 2, batch 0 of 15")
    assert all(size == 48 for size in loaded(page))
    digest = page.inner_text(".digest")
    page.click("text=Next >> nth=0")
    page.wait_for_selector("text=Epoch 2, batch 1 of 15")
    assert page.inner_text(".digest") != digest
    page.click("[data-grid] a.tile >> nth=3")
    page.wait_for_selector("text=in epochs 2 to 17")
    assert page.locator(".crops polygon").count() == 16
    tile = page.locator(".epochs .tile").nth(4)
    tile.hover()
    assert page.locator(".crops .on").get_attribute("data-epoch") == "6"
    assert all(size for size in loaded(page))


PIXELS = """i => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [i.naturalWidth, i.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(i, 0, 0);
    return [...context.getImageData(100, 80, 1, 1).data];
}"""


def test_fields_are_drawn_and_switched_off(open_tab):
    page = open_tab("/pack/fields/record/2").page
    loaded(page)
    picture = page.locator(".content .picture img").first
    drawn = picture.evaluate(PIXELS)
    assert "a cat" in page.inner_text(".text") and "ignored" in page.inner_text(".legend")
    page.click("text=mask >> nth=0")
    page.wait_for_url("**?hide=mask")
    loaded(page)
    assert picture.evaluate(PIXELS) != drawn
    page.keyboard.press("ArrowRight")  # it stays switched off
    page.wait_for_url("**/record/3?hide=mask")
    page.click("text=As training sees it")
    page.wait_for_selector("text=in epochs 0 to 15")
    assert all(loaded(page))
    page.click("text=Show a batch")
    page.wait_for_selector(".digest")
    assert page.locator("text=mask as .npy").count() == 1


def test_a_call_is_pasted(open_tab):
    page = open_tab("/pack/photos/training").page
    page.fill(
        "textarea",
        "mx.io.ImageRecordIter(path_imgrec=my_path, data_shape=(3, 32, 32), batch_size=4, "
        "preprocess_threads=8, rand_mirror=True)",
    )
    page.click("text=Use this call")
    page.wait_for_selector("text=batch 0 of 38")
    assert "makes no difference" in page.inner_text(".note >> nth=1")
    page.fill("textarea", "ImageRecordIter(batch_size=open('/etc/passwd'))")
    page.click("text=Use this call")
    page.wait_for_selector(".wrong")
    assert "executes nothing" in page.inner_text(".wrong")


def test_damage_is_found_and_opened(open_tab):
    page = open_tab("/pack/damaged/damage").page
    page.click("text=Check, and decode every image")
    page.wait_for_selector("#live:not([data-live]) table")
    text = page.inner_text("#live")
    assert "no record begins here" in text and "truncated" in text
    page.click('table a:text-is("6")')
    page.wait_for_url("**/record/6")
    assert "cannot be decoded" in page.inner_text(".wrong")
    assert loaded(page) == [224]
    page.goto(page.url.replace("/record/6", "/record/2"))
    assert "The record is damaged" in page.inner_text(".wrong")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(open_tab, path):
    page = open_tab(path, **PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_can_be_read_aloud(open_tab, path):
    page = open_tab(path).page
    assert page.locator("h1").count() == 1 and page.locator("html[lang=en] main").count() == 1
    bare = "list => list.filter(i => !i.hasAttribute('alt')).length"
    assert page.locator("img").evaluate_all(bare) == 0
    unnamed = """list => list.filter(f => f.type !== "hidden" && !f.labels?.length &&
        !f.ariaLabel).map(f => f.outerHTML)"""
    assert page.locator("input, select, textarea").evaluate_all(unnamed) == []
    assert page.locator("svg.chart a:not([aria-label]), a:not([href])").count() == 0


def contrast(colours):
    """The ratio of WCAG between two colours."""

    def light(text):
        parts = [int(n) / 255 for n in re.findall(r"\d+", text)[:3]]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(light, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(open_tab, scheme):
    page = open_tab("/pack/photos/record/7", color_scheme=scheme).page

    def colour(selector, name="color"):
        return page.eval_on_selector(selector, f"e => getComputedStyle(e).{name}")

    paper = colour("body", "backgroundColor")
    assert (contrast([paper, "rgb(0, 0, 0)"]) < 2) == (scheme == "dark")
    for selector in ("h1", ".facts th", ".labels a"):
        assert contrast([paper, colour(selector)]) >= 4.5, selector


def test_everything_works_without_scripts(open_tab):
    page = open_tab(java_script_enabled=False).page
    page.click("text=Next >> nth=0")
    page.wait_for_url("**?at=60")
    page.click(".tile >> nth=0")
    page.wait_for_url("**/record/60")
    page.click("text=As training sees it")
    page.wait_for_selector("text=in epochs 0 to 15")
