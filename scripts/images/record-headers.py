"""Records small images of every kind and what Pillow says of them: python record-headers.py > ../../test/fixtures/image-headers.jsonl (needs pillow)."""
import base64
import io
import json

from PIL import Image, ImageOps


def record(name, image, kind, **saving):
    target = io.BytesIO()
    image.save(target, kind, **saving)
    data = target.getvalue()
    opened = Image.open(io.BytesIO(data))
    frames = getattr(opened, "n_frames", 1)
    shown = ImageOps.exif_transpose(opened)
    row = {"name": name, "kind": kind.lower(), "stored": [opened.width, opened.height], "shown": [shown.width, shown.height], "animated": frames > 1}
    print(json.dumps({**row, "bytes": base64.b64encode(data).decode()}))


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


for mode in ("RGB", "L", "RGBA", "P", "1", "CMYK", "LA", "I;16"):
    image = Image.new(mode, (13, 7))
    for kind in ("PNG", "JPEG", "WEBP", "GIF"):
        try:
            record(f"{mode} {kind}", image, kind)
        except (OSError, ValueError, KeyError):
            pass
for orientation in range(1, 9):
    for kind in ("PNG", "JPEG", "WEBP"):
        record(f"orientation {orientation} {kind}", Image.new("RGB", (9, 5)), kind, exif=turned(orientation))
for kind in ("PNG", "WEBP", "GIF"):
    frames = [Image.new("RGB", (6, 4), colour) for colour in ("red", "green", "blue")]
    record(f"animated {kind}", frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
record("lossless WEBP", Image.new("RGB", (300, 2)), "WEBP", lossless=True)
record("lossy WEBP", Image.new("RGB", (300, 2)), "WEBP", quality=10)
record("progressive JPEG", Image.new("RGB", (640, 3)), "JPEG", progressive=True)
record("wide PNG", Image.new("1", (5000, 1)), "PNG")
