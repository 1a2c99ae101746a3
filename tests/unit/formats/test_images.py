"""Placeholders of attachments."""

from __future__ import annotations

import base64
import hashlib

import pytest

from omcli.formats.values import data_in, image_from_text, image_text
from omcli.memory.message import attachment


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (12, "[image png 12 B]"),
        (1024, "[image png 1 KB]"),
        (657_408, "[image png 642 KB]"),
        (3_250_586, "[image png 3.1 MB]"),
    ],
)
def test_sizes_are_shown_in_the_unit_that_fits(size: int, shown: str) -> None:
    assert attachment("image", "image/png", size) == shown


def test_the_digest_is_that_of_the_image_not_of_its_encoding() -> None:
    """F64: the same picture is the same, however the producer broke its lines."""
    picture = bytes(range(256))
    encoded = base64.b64encode(picture).decode()
    broken = base64.encodebytes(picture).decode()
    assert image_from_text(encoded, "image/png").sha256 == hashlib.sha256(picture).hexdigest()
    assert image_from_text(encoded, "image/png") == image_from_text(broken, "image/png")


def test_a_broken_encoding_is_measured_as_it_stands() -> None:
    assert image_text(image_from_text("iVBOR", "image/png")) == "[image png 5 B]"


def test_only_data_urls_hold_an_image() -> None:
    data = data_in("data:image/gif;base64,R0lGODlh")
    assert data is not None
    image = image_from_text(*data)
    assert (image.media_type, image.size) == ("image/gif", 6)
    assert data_in("https://example.com/a.png") is None
