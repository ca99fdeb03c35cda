"""Picture files of objects, small enough for a map."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

from PIL import Image

from nearer.errors import InvalidInput

__all__ = ["PICTURES", "as_data_url", "read_thumbnail"]

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")  # all are read


def read_thumbnail(file: str | os.PathLike[str], pixels: int) -> Image.Image:
    """A picture of at most so many pixels on its longer side, upright."""
    from PIL import ImageOps  # noqa: PLC0415

    if not isinstance(file, str | os.PathLike):
        raise InvalidInput(
            f"pictures: {repr(file)[:60]} is no path; give the path of an image file, or None for "
            "an object that has none"
        )
    try:
        with Image.open(Path(file)) as picture:
            picture.draft("RGB", (2 * pixels, 2 * pixels))  # a large photograph is read coarsely
            small = ImageOps.exif_transpose(picture).convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InvalidInput(
            f"{file}: is no picture that can be read: {error}; give the path of a file in a common "
            "format such as .png, or None for an object that has none"
        ) from error
    small.thumbnail((pixels, pixels))
    return small


def as_data_url(picture: Image.Image) -> str:
    """The picture as text that a page can hold."""
    sink = io.BytesIO()
    picture.save(sink, "WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(sink.getvalue()).decode("ascii")
