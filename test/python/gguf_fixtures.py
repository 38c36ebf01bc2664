"""Writes test/fixtures/gguf: blocks of every type as the package `gguf` reads them, and a small model of each architecture.
usage: python test/python/gguf_fixtures.py    needs: gguf numpy"""
import base64, json, os
import numpy as np
from gguf import GGMLQuantizationType as T, GGUFWriter, dequantize, quantize

out = os.path.join(os.path.dirname(__file__), '..', 'fixtures', 'gguf')
os.makedirs(out, exist_ok=True)
random = np.random.default_rng(1)
text = lambda array: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()

scales = {T.Q4_0: (18, [0]), T.Q4_1: (20, [0, 2]), T.Q8_0: (34, [0]), T.Q4_K: (144, [0, 2]), T.Q6_K: (210, [208])}
blocks = {}
for kind, (size, places) in scales.items():
    stored = random.integers(0, 256, (3, size), dtype=np.uint8)
    for place in places:  # a finite scale, one of them too small for a normal half
        stored[:, place:place + 2] = np.array([0.0123, -1.5, 3e-7], np.float16).view(np.uint8).reshape(3, 2)
    blocks[kind.name] = {'type': int(kind), 'bytes': text(stored), 'numbers': text(dequantize(stored, kind))}
halves = np.array([0, 1, -2.5, 65504, 6e-8, 0.1], np.float16)
blocks['F16'] = {'type': int(T.F16), 'bytes': text(halves), 'numbers': text(halves.astype(np.float32))}
json.dump(blocks, open(os.path.join(out, 'blocks.json'), 'w'), indent=1)

width, heads, keys, hidden, vocabulary = 64, 4, 2, 96, 40
size = width // heads

def numbers(seed, *shape):  # exact in a half; the test makes them again
    return ((np.arange(np.prod(shape)) * 7 + seed) % 13 - 6).reshape(shape).astype(np.float32) / 8

def turn(rows, count):
    return rows.reshape(count, 2, size // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)

def write(architecture, biases, norms):
    writer = GGUFWriter(os.path.join(out, f'{architecture}.gguf'), architecture)
    writer.add_block_count(1); writer.add_context_length(128); writer.add_embedding_length(width)
    writer.add_feed_forward_length(hidden); writer.add_head_count(heads); writer.add_head_count_kv(keys)
    writer.add_layer_norm_rms_eps(1e-5); writer.add_rope_freq_base(50000.0); writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model('gpt2'); writer.add_tokenizer_pre('smollm' if architecture == 'llama' else 'qwen2')
    tokens = ['<|end|>', '<|start|>'] + [chr(97 + i) for i in range(26)] + [chr(65 + i) for i in range(12)]
    writer.add_token_list(tokens); writer.add_token_types([3, 3] + [1] * 38); writer.add_token_merges([])
    writer.add_eos_token_id(0); writer.add_chat_template('{{ messages[0].content }}')
    isLlama = architecture == 'llama'
    tensors = {
        'token_embd.weight': numbers(0, vocabulary, width), 'output_norm.weight': numbers(1, width),
        'blk.0.attn_norm.weight': numbers(2, width), 'blk.0.ffn_norm.weight': numbers(3, width),
        'blk.0.attn_q.weight': numbers(4, width, width), 'blk.0.attn_k.weight': numbers(5, keys * size, width),
        'blk.0.attn_v.weight': numbers(6, keys * size, width), 'blk.0.attn_output.weight': numbers(7, width, width),
        'blk.0.ffn_gate.weight': numbers(8, hidden, width), 'blk.0.ffn_up.weight': numbers(9, hidden, width),
        'blk.0.ffn_down.weight': numbers(10, width, hidden),
    }
    if biases: tensors |= {'blk.0.attn_q.bias': numbers(11, width), 'blk.0.attn_k.bias': numbers(12, keys * size), 'blk.0.attn_v.bias': numbers(13, keys * size)}
    if norms: tensors |= {'blk.0.attn_q_norm.weight': numbers(14, size), 'blk.0.attn_k_norm.weight': numbers(15, size)}
    for name, tensor in tensors.items():
        if isLlama and name in ('blk.0.attn_q.weight', 'blk.0.attn_k.weight'):
            tensor = turn(tensor, heads if 'attn_q' in name else keys)
        if tensor.ndim == 1: writer.add_tensor(name, tensor)
        elif 'ffn' in name: writer.add_tensor(name, quantize(tensor, T.Q8_0), raw_dtype=T.Q8_0)
        else: writer.add_tensor(name, tensor.astype(np.float16))
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()

write('llama', False, False)
write('qwen2', True, False)
write('qwen3', False, True)
print(os.listdir(out))
