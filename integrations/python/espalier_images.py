"""Images of an export as a model's own processor sees them: the tensors that trainers of vision models take.

An export writes files beside itself; `pixels_of` opens them and runs the processor of the model folder,
`AutoProcessor.from_pretrained(DIR)`. The tokens of a row stay what they were: only pixels come from here.
"""

import os


def images_of(files, beside):
    """The pictures of a row, turned as EXIF says, in the order of their tokens."""
    from PIL import Image, ImageOps

    folder = os.path.dirname(os.path.abspath(beside))
    return [ImageOps.exif_transpose(Image.open(os.path.join(folder, file))).convert("RGB") for file in files]


def pixels_of(processor, files, beside):
    """`pixel_values`, `image_grid_thw` and whatever else the processor makes; nothing for a row without images."""
    if not files:
        return {}
    if processor is None:
        raise ValueError("the rows show images: give the processor of their model, AutoProcessor.from_pretrained(DIR)")
    return dict(processor.image_processor(images=images_of(files, beside), return_tensors="pt"))


def check_tokens(processor, ids, pixels):
    """Throws unless a row has as many tokens of images as the model makes embeddings of these pixels."""
    grid = pixels.get("image_grid_thw")
    token = getattr(processor, "image_token_id", None)
    if grid is None or token is None:
        return
    merge = processor.image_processor.merge_size**2
    wanted, found = int(grid.prod(-1).sum()) // merge, sum(id == token for id in ids)
    if wanted != found:
        raise ValueError(f"a row has {found} tokens of images and its pixels make {wanted}: is this its model's processor?")
