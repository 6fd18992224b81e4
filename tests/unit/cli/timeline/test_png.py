"""The picture: a PNG of the expected size, the same each time, that shows what it should."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from io import BytesIO

import pytest
from PIL import Image

from fivespot.cli.timeline.period import read_period
from fivespot.cli.timeline.png import DPI, MOST_DAYS, draw, size
from fivespot.runtime import ConfigError
from fivespot.schedule import load_zone
from unit.cli.timeline.samples import NIGHT, OFFICE, Json, forecast, timebased

NOW = datetime(2027, 1, 4, tzinfo=UTC)


def picture(spec: Json, start: str, end: str, title: str = "TimeBasedSpotSchedule hours") -> bytes:
    zone = load_zone("Europe/Berlin")
    period = read_period(start, end, zone, NOW)
    return draw(title, forecast([timebased(spec=spec)], period.start), period, zone)


def shares(data: bytes) -> dict[tuple[int, ...], float]:
    """Return the share of each colour in a picture; fail on a damaged file."""
    with Image.open(BytesIO(data)) as image:
        image.verify()
    with Image.open(BytesIO(data)) as image:
        assert image.format == "PNG"
        plain = image.convert("RGB")
        found: list[tuple[int, tuple[int, ...]]] = plain.getcolors(1 << 24)  # type: ignore[assignment]
        return {colour: count / (plain.width * plain.height) for count, colour in found}


def pixels(data: bytes) -> tuple[int, int]:
    with Image.open(BytesIO(data)) as image:
        return image.size


def test_it_is_a_valid_picture_of_the_expected_size_with_the_right_share_of_colour() -> None:
    half = {"timezone": "UTC", "windows": [{"days": ["mon-sun"], "start": "06:00", "end": "18:00"}]}
    data = picture(half, "2027-01-04", "+7d")
    assert pixels(data) == tuple(int(inches * DPI) for inches in size(7))
    found = shares(data)
    active, empty = found[0x1B, 0x7F, 0x5C], found[0xEE, 0xF1, 0xF3] + found[0xE2, 0xE7, 0xEA]
    assert active == pytest.approx(empty, rel=0.1), "twelve hours of each day"
    assert active > 0.1
    assert found[255, 255, 255] > 0.2


def test_the_same_schedule_gives_the_same_bytes_and_another_one_others() -> None:
    first = picture(NIGHT, "2027-03-22", "+14d")
    assert first == picture(NIGHT, "2027-03-22", "+14d")
    assert first != picture(OFFICE, "2027-03-22", "+14d")


@pytest.mark.parametrize(("days", "most"), [(1, 320), (35, 1400), (100, 1800), (366, 2700)])
def test_long_periods_become_pictures_that_still_fit_a_screen_or_a_page(days: int, most: int) -> None:
    width, height = size(days)
    assert 250 < height * DPI <= most
    assert width * DPI == 1320


def test_a_year_and_a_name_with_odd_characters_can_be_drawn() -> None:
    data = picture(NIGHT, "2027-01-01", "2028-01-01", title=f"TimeBasedSpotSchedule a$b_{'long-' * 40}$x^2$")
    assert pixels(data) == tuple(int(inches * DPI) for inches in size(365))


def test_too_many_days_are_refused_with_what_to_do() -> None:
    with pytest.raises(
        ConfigError, match=f"--png: 401 days are too many for one picture, at most {MOST_DAYS}: shorten --to"
    ):
        picture(OFFICE, "2027-01-01", "+401d")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"--png: matplotlib is not installed; pip install 'fivespot\[plot\]'"):
        picture(OFFICE, "2027-01-01", "+1d")


def test_settings_of_the_user_do_not_change_it() -> None:
    import matplotlib as mpl  # noqa: PLC0415 - only this file's tests pay for the import

    before = picture(OFFICE, "2027-01-04", "+2d")
    with mpl.rc_context({"font.size": 30, "savefig.facecolor": "red", "text.usetex": True, "savefig.bbox": "tight"}):
        assert picture(OFFICE, "2027-01-04", "+2d") == before
        assert mpl.rcParams["font.size"] == 30, "and it leaves them as they were"
