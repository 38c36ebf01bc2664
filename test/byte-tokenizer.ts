/** A tokenizer of bytes for the small pretrained models among the fixtures, which have a hundred tokens. */
export const byteTokenizer = {
  'tokenizer.json': JSON.stringify({
    version: '1.0',
    added_tokens: [{ id: 99, content: '<end>', special: true }],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    model: {
      type: 'BPE',
      merges: [['!', '"']],
      vocab: Object.fromEntries(
        Array.from({ length: 98 }, (_, id) => [String.fromCharCode(33 + id), id]),
      ),
    },
  }),
  'tokenizer_config.json': '{"eos_token":{"content":"<end>"}}',
} as const
