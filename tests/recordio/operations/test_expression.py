"""Expressions that choose records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import ExpressionError
from recordio.operations.expression import NAMES, Condition

KNOWN = {
    "label": np.array([0, 1, 2, np.nan], np.float32),
    "objects": np.array([0, 1, 2, 0]),
    "width": np.array([10.0, 20, np.nan, 40]),
    "height": np.array([40.0, 30, np.nan, 10]),
    "bytes": np.array([5, 6, 7, 8], np.uint32),
    "format": np.array(["jpeg", "png", "other", "jpeg"]),
    "decodable": np.array([True, True, False, False]),
    "id": np.array([0, 5, 2**63, 2**64 - 1], np.uint64),
    "key": np.array([-1, 0, 1, 2]),
}
COUNTS, LABELS = np.array([1, 2, 0, 3]), np.array([7, 1, 2, 3, 7, 2], np.float32)


def column(name, rows):
    if name != "labels":
        return KNOWN[name][rows]
    ends = np.cumsum(COUNTS)
    chosen = [LABELS[ends[row] - COUNTS[row] : ends[row]] for row in rows.tolist()]
    return COUNTS[rows], np.concatenate([np.empty(0, np.float32), *chosen])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label == 1", "0100"),
        (" label >= 1 ", "0110"),
        ("label != 1", "1011"),
        ("0 < label <= 2", "0110"),
        ("label in (0, 2)", "1010"),
        ("label not in [0, 2]", "0101"),
        ("width >= 20 and height < 40", "0101"),
        ("width < 20 or decodable", "1100"),
        ("not decodable", "0011"),
        ("not (width > 15)", "1010"),
        ("width * height == 400", "1001"),
        ("width / height > 1", "0001"),
        ("max_", None),
        ("min", None),
        ("bytes - 6 < 0", "1000"),
        ("-bytes < -6", "0011"),
        ("abs(bytes - 6) <= 1", "1110"),
        ("bytes % 2 == 0 and bytes // 2 == 3", "0100"),
        ("format == 'jpeg'", "1001"),
        ('format in {"png", "other"}', "0110"),
        ("id == 18446744073709551615", "0001"),
        ("id > 4", "0111"),
        ("id == -1", "0000"),
        ("id - 10 < 0", "1100"),
        ("id % 2 == 1", "0101"),
        ("id + 1 == 9223372036854775809", "0010"),
        ("id * id > 9223372036854775808 * 9223372036854775808", "0001"),
        ("-id == -9223372036854775808", "0010"),
        ("key * 9223372036854775807 < key - 1", "1000"),
        ("key == -1", "1000"),
        ("objects", None),
        ("objects > 0", "0110"),
        ("7 in labels", "1001"),
        ("2 in labels and 3 not in labels", "0100"),
        ("-1 in labels", "0000"),
        ("len(labels) > 1", "0101"),
        ("True", "1111"),
        ("decodable == False", "0011"),
        ("1 < 2", "1111"),
        ("not not not decodable", "0011"),
    ],
)
def test_what_is_true(text, expected):
    if expected is None:
        with pytest.raises(ExpressionError):
            Condition(text)
        return
    assert "".join(map(str, Condition(text)(4, column).astype(int))) == expected


#: Two classes have the same name.
CLASSES = {0: "cat", 1: "dog", 2: "class 'x'", 3: "hen", 7: "hen"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class == 1", "0100"),
        ("label == 'dog'", "0100"),
        (" class == 'dog' ", "0100"),
        ("'dog' == class", "0100"),
        ("class != 'dog'", "1011"),
        ("class in ('cat', 'dog', 9)", "1100"),
        ("class not in ('cat', 'dog')", "0011"),
        ("'dog' in labels", "0100"),
        ("'dog' not in labels and len(labels) > 1", "0001"),
        ("class == \"class 'x'\"", "0010"),
        ("class == 'class \\'x\\''", "0010"),
        ("format == 'class' or class == 'cat' == label", "1000"),
        ("class == 'dog' and format == 'png'", "0100"),
    ],
)
def test_classes_by_name(text, expected):
    condition = Condition(text, CLASSES)
    assert "".join(map(str, condition(4, column).astype(int))) == expected
    later = Condition(text)
    assert later.names_classes == condition.names_classes == (text != "class == 1")
    found = later.with_classes(CLASSES)(4, column)
    assert "".join(map(str, found.astype(int))) == expected


def test_names_of_classes_that_cannot_be_used():
    for text, reason in (
        ("class == 'hen'", "column 10: the classes 3 and 7 are called 'hen': use their numbers"),
        ("class == 'dgo'", "column 10: no class is called 'dgo' (did you mean 'dog'?): "),
        ("len(labels) > 1 and 'horse' in labels", "column 21: no class is called 'horse': "),
    ):
        with pytest.raises(ExpressionError) as caught:
            Condition(text, CLASSES)
        assert str(caught.value).startswith(reason)
        assert repr(text) in str(caught.value)
    with pytest.raises(ExpressionError, match="the pack has no names of classes"):
        Condition("class == 'cat'", {})
    with pytest.raises(ExpressionError, match="not known"):
        Condition("class == 'cat'")(4, column)
    assert not Condition("class == 3 and format == 'png'").names_classes


def test_a_number_that_no_float_holds_is_an_error():
    condition = Condition("id" + " * id" * 16 + " / 1.5 > 0")
    with pytest.raises(ExpressionError, match="too large"):
        condition(4, column)
    assert condition(1, column).tolist() == [False]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("label ==", None),
        ("label = 3", None),
        ("label > 3 and lable < 4", 15),
        ("  lable < 4", 3),
        ("'ü' == format and lable", 19),
        ("label > 'a'", 9),
        ("format < 'a'", 1),
        ("format", 1),
        ("label", 1),
        ("label + format > 1", 9),
        ("labels == 3", 1),
        ("label in labels", 1),
        ("label in 3", 10),
        ("label in (1, None)", 14),
        ("width == 'cat'", 10),
        ("'cat' < class", 9),
        ("class + 'cat' == 3", 9),
        ("class.name == 'cat'", 1),
        ("  class ==", None),
        ("label is 3", 1),
        ("decodable > False", 1),
        ("label < 3 < format", 13),
        ("label ** 2 > 4", 1),
        ("label << 2 > 4", 1),
        ("~label == 1", 1),
        ("not label", 5),
        ("label and decodable", 1),
        ("len(label) > 1", 5),
        ("len(labels, labels) > 1", 1),
        ("len() > 1", 1),
        ("abs(x=1) > 1", 1),
        ("max(labels) > 1", 1),
        ("label.real == 1", 1),
        ("labels[0] == 1", 1),
        ("__import__('os').system('x') == 0", 1),
        ("(lambda: 1)() == 1", 1),
        ("[label for label in labels] == 1", 1),
        ("f'{label}' == 'a'", 1),
        ("label if decodable else label", 1),
        ("(x := 3) > 2", 2),
        ("label == 3j", 10),
        ("label == None", 10),
        ("label == b'a'", 10),
        ("label == ...", 10),
        ("label == 10000000000000000000000", 10),
        ("label; label", None),
        ("label\0", None),
        ("await label", None),
        ("(" * 3000, None),
        ("not " * 1000 + "decodable", None),
        ("-" * 1000 + "label > 1", None),
        ("label > " + "1" * 5000, 1),
        ("label > 9" + "+9" * 2000, None),
    ],
)
def test_what_has_no_meaning(text, place):
    with pytest.raises(ExpressionError) as caught:
        Condition(text)
    assert caught.value.column is not None
    if place is not None:
        assert caught.value.column == place, caught.value


def test_division_by_zero():
    for text in ("1 / label > 1", "bytes % 0 == 0", "1 // (bytes - 5) > 1", "1 / 0 > 1"):
        with pytest.raises(ExpressionError, match="divided"):
            Condition(text)(4, column)


def test_records_are_asked_about_only_as_far_as_needed():
    asked = []

    def watched(name, rows):
        asked.append((name, rows.tolist()))
        return column(name, rows)

    Condition("format == 'jpeg' and (bytes < 6 or decodable)")(4, watched)
    assert asked == [("format", [0, 1, 2, 3]), ("bytes", [0, 3]), ("decodable", [3])]
    assert Condition("label == 9 and decodable")(4, watched).sum() == 0
    assert Condition("decodable")(0, column).tolist() == []


numbers = st.recursive(
    st.one_of(
        st.sampled_from(["label", "width", "bytes", "objects", "key", "len(labels)"]),
        st.integers(-3, 50).map(str),
    ),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=4,
)
conditions = st.recursive(
    st.builds("{} {} {}".format, numbers, st.sampled_from(["<", "<=", "==", "!=", ">"]), numbers),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=5,
)


@given(text=conditions)
def test_it_means_what_python_means(text):
    found = Condition(text)(4, column).tolist()
    for row in range(4):
        known = {name: values[row].item() for name, values in KNOWN.items()}
        known["labels"] = column("labels", np.array([row]))[1].tolist()
        assert found[row] == eval(text, {"len": len}, known), (text, row)


@given(text=st.text(alphabet="labelsidky 0123456789.()[]<>=!+-*/%'\",andornti\n\t\\ü"))
def test_any_text_is_a_condition_or_an_error(text):
    try:
        condition = Condition(text)
    except ExpressionError as error:
        assert error.column >= 1
    else:
        assert condition.names <= set(NAMES)
        with np.errstate(all="ignore"):
            try:
                assert condition(4, column).shape == (4,)
            except ExpressionError as error:
                assert "divided" in error.reason
