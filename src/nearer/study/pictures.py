"""Pictures decoded: to know that they are whole, and to show what browsers do not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageOps, UnidentifiedImageError

from nearer.errors import InvalidInput

__all__ = ["as_png", "check_picture"]

_MAX_PIXELS = 50_000_000


def check_picture(name: str, content: bytes) -> None:
    """Refuse a picture that is damaged or too large."""
    with _opened(name, content) as image:
        image.load()


def as_png(name: str, content: bytes) -> bytes:
    """A picture in a form that every browser shows: 8 bits a channel, upright, one page."""
    with _opened(name, content) as image:
        if getattr(image, "n_frames", 1) > 1:
            raise InvalidInput(f"{name}: has several pages; save each as a file of its own")
        turned, profile = ImageOps.exif_transpose(image), image.info.get("icc_profile")
        if turned.mode.startswith("I;16"):
            turned = turned.convert("I").point(lambda value: value / 256).convert("L")
        elif turned.mode in ("I", "F"):
            raise InvalidInput(
                f"{name}: has values of mode {turned.mode}, whose range is not known; save as PNG"
            )
        elif turned.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            turned, profile = turned.convert("RGB"), None
        out = io.BytesIO()
        turned.save(out, "PNG", icc_profile=profile)
        return out.getvalue()


@contextmanager
def _opened(name: str, content: bytes) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise InvalidInput(
                    f"{name}: is {image.width} x {image.height} pixels; at most {_MAX_PIXELS} "
                    "in all are taken, make it smaller"
                )
            yield image
    except InvalidInput:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InvalidInput(f"{name}: the picture is damaged: {error}") from error
    except Image.DecompressionBombError as error:
        raise InvalidInput(f"{name}: {error}") from error
