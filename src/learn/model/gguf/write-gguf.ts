import { fromBytes } from '@espalier/text/tokenizers'
import type { Checkpoint } from '../checkpoint.ts'
import type { ModelShape } from '../shape.ts'
import type { Tensor } from '../tensor.ts'

/** Types of values in a GGUF file, by their number in the format. */
const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const

/** Kinds of tokens, by their number in the format. */
const tokenKinds = { normal: 1, control: 3, userDefined: 4 } as const

/** Where each tensor begins: at a multiple of so many bytes. */
const alignment = 32

/** Names of tensors, as Hugging Face has them and as GGUF does; `N` is a layer's number. */
const names: readonly (readonly [RegExp, string])[] = [
  [/^model\.embed_tokens\.weight$/, 'token_embd.weight'],
  [/^model\.norm\.weight$/, 'output_norm.weight'],
  [/^model\.layers\.(\d+)\.input_layernorm\.weight$/, 'blk.$1.attn_norm.weight'],
  [/^model\.layers\.(\d+)\.post_attention_layernorm\.weight$/, 'blk.$1.ffn_norm.weight'],
  [/^model\.layers\.(\d+)\.self_attn\.([qkv])_proj\.weight$/, 'blk.$1.attn_$2.weight'],
  [/^model\.layers\.(\d+)\.self_attn\.o_proj\.weight$/, 'blk.$1.attn_output.weight'],
  [/^model\.layers\.(\d+)\.mlp\.(gate|up|down)_proj\.weight$/, 'blk.$1.ffn_$2.weight'],
]

/**
 * An embedded model as a GGUF file, which llama.cpp and Ollama run. Its words become tokens that match
 * anywhere, so a server may tokenize unknown words of a text differently than we do; for the same
 * ids it computes the same.
 */
export function writeGguf({ shape, tensors, files }: Checkpoint, name: string): Uint8Array {
  const writer = openWriter()
  const stored = tensors.map(tensor => toStored(tensor, shape))
  const facts = [...modelFacts(shape, name), ...tokenizerFacts(files)]
  writer.bytes(Buffer.from('GGUF'))
  writer.u32(3)
  writer.u64(stored.length)
  writer.u64(facts.length)
  for (const [key, type, value] of facts) {
    writer.string(key)
    writer.typed(type, value)
  }
  let offset = 0
  for (const { name: key, shape: sizes, data } of stored) {
    writer.string(key)
    writer.u32(sizes.length)
    for (const size of [...sizes].reverse()) writer.u64(size)
    // Type 0: 32-bit floats.
    writer.u32(0)
    writer.u64(offset)
    offset = aligned(offset + data.byteLength)
  }
  for (const { data } of stored) {
    writer.pad(alignment)
    writer.bytes(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
  }
  return writer.result()
}

function aligned(offset: number): number {
  return Math.ceil(offset / alignment) * alignment
}

function toStored({ name, shape: sizes, data }: Tensor, shape: ModelShape): Tensor {
  const found = names.find(([pattern]) => pattern.test(name))
  if (!found) throw new Error(`The tensor ${name} has no name in a GGUF file.`)
  const isRotated = /\.self_attn\.[qk]_proj\.weight$/.test(name)
  return {
    name: name.replace(found[0], found[1]),
    shape: sizes,
    data: isRotated ? interleaved(data, shape) : data,
  }
}

/** Hugging Face rotates the halves of a head, GGUF's llama rotates neighbours: rows change places. */
function interleaved(data: Float32Array, { width, heads }: ModelShape): Float32Array {
  const size = width / heads
  const rows = new Float32Array(data.length)
  for (let row = 0; row < width; row++) {
    const within = row % size
    const half = within < size / 2 ? 0 : 1
    const place = row - within + 2 * (within - (half * size) / 2) + half
    rows.set(data.subarray(row * width, (row + 1) * width), place * width)
  }
  return rows
}

type Fact = readonly [key: string, type: keyof typeof types | ListType, value: unknown]
type ListType = 'strings' | 'integers'

function modelFacts(shape: ModelShape, name: string): readonly Fact[] {
  return [
    ['general.architecture', 'string', 'llama'],
    ['general.name', 'string', name],
    ['general.alignment', 'u32', alignment],
    ['llama.vocab_size', 'u32', shape.vocabulary],
    ['llama.context_length', 'u32', shape.context],
    ['llama.embedding_length', 'u32', shape.width],
    ['llama.block_count', 'u32', shape.layers],
    ['llama.feed_forward_length', 'u32', shape.hidden],
    ['llama.attention.head_count', 'u32', shape.heads],
    ['llama.attention.head_count_kv', 'u32', shape.heads],
    ['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-6],
    ['llama.rope.dimension_count', 'u32', shape.width / shape.heads],
    ['llama.rope.freq_base', 'f32', 10_000],
  ]
}

/** What the tokenizer's file says, as far as it matters here. */
interface TokenizerFile {
  readonly model: { readonly vocab: Readonly<Record<string, number>> }
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[]
}

function tokenizerFacts(files: Checkpoint['files']): readonly Fact[] {
  const read = (name: string): string => {
    const bytes = files.get(name)
    if (!bytes) throw new Error(`The model folder has no ${name}, which a GGUF file needs.`)
    return Buffer.from(bytes).toString('utf8')
  }
  const { model, added_tokens: added } = JSON.parse(read('tokenizer.json')) as TokenizerFile
  const tokens: string[] = []
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token
  for (const { id, content } of added) tokens[id] = content
  const controls = new Set(added.map(({ id }) => id))
  const kinds = tokens.map((token, id) => {
    if (controls.has(id)) return tokenKinds.control
    return byteOf(token) === undefined ? tokenKinds.userDefined : tokenKinds.normal
  })
  const words = new Set(tokens)
  const end = tokens.indexOf(
    (JSON.parse(read('tokenizer_config.json')) as { eos_token: string }).eos_token,
  )
  return [
    // Bytes in GPT-2's alphabet without merges: words are matched as whole tokens.
    ['tokenizer.ggml.model', 'string', 'gpt2'],
    ['tokenizer.ggml.pre', 'string', 'gpt-2'],
    ['tokenizer.ggml.tokens', 'strings', tokens.map(token => nameOf(token, words))],
    ['tokenizer.ggml.merges', 'strings', []],
    ['tokenizer.ggml.token_type', 'integers', kinds],
    ['tokenizer.ggml.bos_token_id', 'u32', end],
    ['tokenizer.ggml.eos_token_id', 'u32', end],
    ['tokenizer.ggml.add_bos_token', 'bool', false],
    ['tokenizer.ggml.add_eos_token', 'bool', false],
    ['tokenizer.ggml.add_space_prefix', 'bool', false],
    ['tokenizer.chat_template', 'string', read('chat_template.jinja')],
  ]
}

/** The byte that a token such as `<0x20>` stands for. */
function byteOf(token: string): number | undefined {
  const found = /^<0x([0-9A-F]{2})>$/.exec(token)
  return found ? Number.parseInt(found[1]!, 16) : undefined
}

/** A token's name in the file. Names must be unique, so a byte that is also a word keeps its `<0x…>` name. */
function nameOf(token: string, words: ReadonlySet<string>): string {
  const byte = byteOf(token)
  if (byte === undefined) return token
  const character = fromBytes(Uint8Array.of(byte))
  return words.has(character) ? token : character
}

/** Collects a file piece by piece. */
function openWriter() {
  const pieces: Buffer[] = []
  let length = 0
  const bytes = (piece: Buffer): void => {
    pieces.push(piece)
    length += piece.length
  }
  const u32 = (value: number): void => {
    const piece = Buffer.alloc(4)
    piece.writeUInt32LE(value)
    bytes(piece)
  }
  const u64 = (value: number): void => {
    const piece = Buffer.alloc(8)
    piece.writeBigUInt64LE(BigInt(value))
    bytes(piece)
  }
  const string = (text: string): void => {
    const piece = Buffer.from(text, 'utf8')
    u64(piece.length)
    bytes(piece)
  }
  const f32 = (value: number): void => {
    const piece = Buffer.alloc(4)
    piece.writeFloatLE(value)
    bytes(piece)
  }
  const scalars = {
    u32,
    i32: u32,
    f32,
    bool: (value: boolean) => bytes(Buffer.of(Number(value))),
    string,
  } as const
  const lists = { strings: 'string', integers: 'i32' } as const
  return {
    bytes,
    u32,
    u64,
    string,
    typed(type: Fact[1], value: unknown): void {
      const of = type in lists ? lists[type as ListType] : undefined
      if (of) {
        const list = value as readonly never[]
        u32(types.array)
        u32(types[of])
        u64(list.length)
        for (const each of list) scalars[of](each)
      } else {
        u32(types[type as keyof typeof types])
        scalars[type as keyof typeof scalars](value as never)
      }
    },
    pad(to: number): void {
      bytes(Buffer.alloc((to - (length % to)) % to))
    },
    result: () => Buffer.concat(pieces),
  }
}
