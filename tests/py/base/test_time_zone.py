"""The machine's time zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.base.time import local_zone


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/America/Lima", "America/Lima"),
        ("CET-1CEST", "UTC"),  # rules without a name
        ("../../etc/passwd", "UTC"),
        ("", "UTC"),
    ],
)
def test_the_environment_says_it_first(said: str, zone: str) -> None:
    assert local_zone({"TZ": said}, "/nowhere") == zone


def test_else_the_link_leads_to_it(tmp_path: Path) -> None:
    place = tmp_path / "zoneinfo" / "Europe" / "Rome"
    place.parent.mkdir(parents=True)
    place.touch()
    link = tmp_path / "localtime"
    link.symlink_to(place)
    assert local_zone({}, str(link)) == "Europe/Rome"
