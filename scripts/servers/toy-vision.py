"""Makes a toy vision-language model of the Qwen2-VL shape with a byte-level tokenizer: python toy-vision.py OUT (needs torch, transformers, pillow)."""
import json
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen2VLImageProcessor, Qwen2VLProcessor,
)
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

out = sys.argv[1]
controls = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>",
]
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {letter: index for index, letter in enumerate(letters)}
tokenizer = Tokenizer(models.BPE(vocabulary, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(controls)
template = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{%- set content = message.content -%}
{{- '\\n' -}}
{%- if content is string -%}{{- content -}}
{%- elif content -%}
{%- for part in content -%}
{%- if 'image' in part or 'image_url' in part or part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{- part.text -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- for call in message.tool_calls or [] -%}<tool_call>{{- call.function | tojson -}}</tool_call>{%- endfor -%}
<|im_end|>{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant{{- '\\n' -}}{%- endif -%}"""
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=template,
    model_max_length=4096, additional_special_tokens=controls,
)
ids = {name: fast.convert_tokens_to_ids(name) for name in controls}
size = len(letters) + len(controls)
config = Qwen2VLConfig(
    text_config=dict(
        vocab_size=size, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
        bos_token_id=ids["<|im_start|>"], eos_token_id=ids["<|im_end|>"], pad_token_id=ids["<|endoftext|>"],
    ),
    vision_config=dict(
        depth=2, embed_dim=64, hidden_size=128, num_heads=2, mlp_ratio=2, patch_size=14, spatial_merge_size=2,
        temporal_patch_size=2, in_channels=3,
    ),
    image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
    vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
    vision_token_id=ids["<|vision_pad|>"], tie_word_embeddings=False,
)
torch.manual_seed(7)
model = Qwen2VLForConditionalGeneration(config).eval()
with torch.no_grad():
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            weight.normal_(0, 0.12)
    # Tokens that only templates write, and the rows that no text has, are never likely.
    head = model.lm_head.weight
    head[len(letters):] = 0
    head[ids["<|im_end|>"]].normal_(0, 0.12)
model.save_pretrained(out)
images = Qwen2VLImageProcessor(min_pixels=28 * 28 * 4, max_pixels=28 * 28 * 64)
Qwen2VLProcessor(images, fast, Qwen2VLVideoProcessor(), chat_template=template).save_pretrained(out)
print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()), **ids}))
