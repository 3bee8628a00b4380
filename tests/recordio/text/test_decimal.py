"""Decimal text against Python's float(), bit by bit, and the table of powers against integers."""

import re
import struct
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from recordio import TextFormatError, read_csv

DIGITS = st.text("0123456789", min_size=1, max_size=40)
SIGNS = st.sampled_from(["", "-", "+"])


@st.composite
def decimals(draw):
    """Any notation, with long mantissas and exponents far outside of the range."""
    whole, fraction = draw(st.just("") | DIGITS), draw(st.just("") | DIGITS)
    if not whole and not fraction:
        whole = "0"
    zeros = draw(st.sampled_from(["", "0" * 25, "0" * 330]))
    text = draw(SIGNS) + draw(
        st.sampled_from([whole or "0", f"{whole}.{fraction}", f"{whole}.{zeros}{fraction}1"])
    )
    exponent = draw(st.none() | st.integers(-400, 400) | st.integers(-(10**30), 10**30))
    return text if exponent is None else f"{text}{draw(st.sampled_from('eE'))}{exponent}"


@st.composite
def near_ties(draw):
    """Points half way between two doubles, all digits written, and their closest neighbours."""
    bits = draw(st.integers(0, (0x7FF << 52) - 2) | st.integers(0, 1 << 53))
    low, high = struct.unpack("2d", struct.pack("2Q", bits, bits + 1))
    with localcontext() as context:
        context.prec = 1200
        half = format((Decimal(low) + Decimal(high)) / 2, draw(st.sampled_from("ef")))
    if "e" not in half and "." in half:
        half += draw(st.sampled_from(["", "0", "1", "0" * 40 + "1", "0" * 800 + "1"]))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(half.partition("e")[0]) - 1))
        if half[place].isdigit():
            half = half[:place] + draw(st.sampled_from("0123456789")) + half[place + 1 :]
    return half


def same_as_float(folder, texts):
    path = folder / "numbers.csv"
    path.write_text("".join(f"{text}\n" for text in texts))
    expected = np.array([[float(text)] for text in texts])
    doubles = read_csv(path, (1,), "float64", threads=1)
    assert doubles.tobytes() == expected.tobytes()
    with np.errstate(over="ignore", under="ignore"):
        assert read_csv(path, (1,), threads=1).tobytes() == expected.astype(np.float32).tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("decimal")


@settings(max_examples=80, deadline=None)
@given(st.lists(decimals() | near_ties(), min_size=1, max_size=30))
def test_any_decimal_is_read_as_float_reads_it(folder, texts):
    same_as_float(folder, texts)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=200), st.integers(1, 20))
def test_any_double_in_any_precision_is_read_as_float_reads_it(folder, values, precision):
    same_as_float(folder, [repr(value) for value in values])
    same_as_float(folder, [f"{value:.{precision}g}" for value in values])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**16), st.integers(0, 18), SIGNS)
def test_every_split_of_digits_at_the_point(folder, digits, point, sign):
    text = str(digits).rjust(point, "0")
    same_as_float(folder, [f"{sign}{text[:cut]}.{text[cut:]}" for cut in range(len(text) + 1)])


def test_numbers_that_have_broken_parsers(folder):
    same_as_float(
        folder,
        [
            "0",
            "-0",
            "-0.0",
            "0e999999999999999999999999",
            "5.",
            ".5",
            "+.5e+0",
            "1e309",
            "-1e309",
            "1e-400",
            "1.7976931348623157e308",
            "1.7976931348623158e308",
            "1.7976931348623159e308",
            "2.2250738585072011e-308",
            "2.2250738585072014e-308",
            "4.9e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "2.5e-324",
            "9007199254740993",
            "9007199254740992.99999999999999999999999999",
            "6.631236846766476e-316",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "0." + "0" * 400 + "1e400",
            "1" + "0" * 400 + "e-400",
            "0" * 1000 + "1",
            "1" * 1000,
            "1e0000000000000000000000000000001",
            "1e-00000000000000000000000000000000001",
            "3.4028235e38",
            "3.4028236e38",
            "1.17549435e-38",
            "1e-45",
            "7e-46",
            "16777217",
        ],
    )


def test_infinity_and_nan_in_any_case_and_with_any_sign(folder):
    words = ["inf", "INF", "Infinity", "iNfInItY", "nan", "NaN", "NAN"]
    same_as_float(folder, [sign + word for word in words for sign in ("", "-", "+")])


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "-",
        "+",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e-x",
        "--1",
        "+-1",
        "1_000",
        "0x10",
        "1.2.3",
        "in",
        "infi",
        "infinitx",
        "infinityx",
        "na",
        "nanx",
        "nan(1)",
        "1f",
        "1d5",
        "１",
        "1,",
        "'1'",
    ],
)
def test_what_is_no_decimal_is_refused(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(f"1;2;3\n1;{text};3\n", encoding="utf-8")
    with pytest.raises(TextFormatError) as caught:
        read_csv(path, (3,), delimiter=";")
    assert (caught.value.line, caught.value.column) == (2, 2)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers_up_to_the_limits_of_their_type_and_not_beyond(tmp_path, dtype):
    path = tmp_path / "a.csv"
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.min + 1, -1 if limits.min else 0, 0, 1, 9, limits.max):
        for zeros in ("", "0", "0" * 30):
            sign = "-" if value < 0 else ""
            path.write_text(f"{sign}{zeros}{abs(value)}\n+0\n")
            assert read_csv(path, dtype=dtype).tolist() == [[value], [0]]
    for value in (limits.min - 1, limits.max + 1, limits.max * 10, 2**64, 10**30, -(10**30)):
        path.write_text(f"7\n{value}\n")
        with pytest.raises(TextFormatError, match=f"does not fit into {dtype}") as caught:
            read_csv(path, dtype=dtype)
        assert caught.value.line == 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_integers_of_any_length(folder, values):
    path = folder / "integers.csv"
    path.write_text("\n".join(map(str, values)))
    assert read_csv(path, (1,), "int64", threads=1).ravel().tolist() == values


@pytest.mark.parametrize("text", ["1.0", "1.", "1e3", "nan", "inf", "0x1", "1 2", "-", "+", "--1"])
def test_integer_columns_take_nothing_but_integers(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(f"1\n{text}\n")
    with pytest.raises(TextFormatError, match="is not a decimal integer"):
        read_csv(path, dtype="int32")


def power_of_five(exponent):
    """128 bits, as the algorithm defines them: rounded up from 5**-27 to 5**-1, else cut off."""
    if exponent >= 0:
        power = 5**exponent
        shift = power.bit_length() - 128
        return power >> shift if shift >= 0 else power << -shift
    power = 5**-exponent
    return (1 << (power.bit_length() + 127)) // power + (exponent >= -27)


def test_table_of_powers_is_that_of_exact_integers():
    header = Path(recordio.__file__).parent / "text" / "powers_of_five.h"
    if not header.is_file():
        header = Path(__file__).parents[3] / "recordio" / "text" / header.name
    pairs = re.findall(r"\{0x(\w{16}), 0x(\w{16})\}", header.read_text())
    assert [int(high + low, 16) for high, low in pairs] == [
        power_of_five(exponent) for exponent in range(-342, 309)
    ]
