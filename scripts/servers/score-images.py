"""Scores tokens with images by transformers: `python score-images.py MODEL`, one JSON list [ids, from, [files]] per line in, log-probabilities out."""
import json
import sys

import torch
from PIL import Image, ImageOps
from transformers import AutoModelForImageTextToText, AutoProcessor

model = AutoModelForImageTextToText.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
images = AutoProcessor.from_pretrained(sys.argv[1]).image_processor
print("ready", flush=True)
for line in sys.stdin:
    ids, start, files = json.loads(line)
    row = torch.tensor([ids])
    shown = {}
    if files:
        opened = [ImageOps.exif_transpose(Image.open(file)).convert("RGB") for file in files]
        shown = dict(images(opened, return_tensors="pt"))
        shown["mm_token_type_ids"] = (row == model.config.image_token_id).int()
    with torch.no_grad():
        logits = model(input_ids=row, **shown).logits[0, :-1].float()
    own = logits.log_softmax(-1).gather(1, row[0, 1:, None])[:, 0]
    print(json.dumps(own[start - 1 :].tolist()), flush=True)
