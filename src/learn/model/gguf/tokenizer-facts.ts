import { ggufCutOf } from '@espalier/text/gguf'
import { fromBytes } from '@espalier/text/tokenizers'
import type { Fact } from './write-gguf.ts'

/** Kinds of tokens, by their number in the format. */
const tokenKinds = { normal: 1, control: 3, userDefined: 4, unused: 5 } as const

/** What `tokenizer.json` says, as far as it matters here. */
interface TokenizerFile {
  readonly normalizer?: unknown
  readonly pre_tokenizer?: unknown
  readonly post_processor?: { readonly single?: readonly object[] } | null
  readonly model: {
    readonly type: string
    readonly vocab: Readonly<Record<string, number>>
    readonly merges?: readonly (string | readonly [string, string])[]
    readonly byte_fallback?: boolean
  }
  readonly added_tokens: readonly {
    readonly id: number
    readonly content: string
    readonly special: boolean
  }[]
}

/** What a GGUF file says of a tokenizer; one that GGUF has no name for is refused. */
export function tokenizerFacts(
  files: ReadonlyMap<string, Uint8Array>,
  vocabulary: number,
): readonly Fact[] {
  const text = files.get('tokenizer.json')
  if (!text) throw new Error('The model has no tokenizer.json, which a GGUF file needs.')
  const tokenizer = JSON.parse(Buffer.from(text).toString()) as TokenizerFile
  const isWords = tokenizer.model.type === 'WordLevel'
  const cut = isWords ? 'gpt-2' : ggufCutOf(tokenizer)
  if (tokenizer.model.type !== 'BPE' && !isWords) throw new Error(refusal(tokenizer.model.type))
  if (cut === undefined) throw new Error(refusal('a way of cutting texts'))
  const tokens = isWords ? wordsOf(tokenizer) : namesOf(tokenizer, vocabulary)
  const { merges = [] } = tokenizer.model
  return [
    ['tokenizer.ggml.model', 'string', 'gpt2'],
    ['tokenizer.ggml.pre', 'string', cut],
    ['tokenizer.ggml.tokens', 'strings', tokens.map(({ name }) => name)],
    [
      'tokenizer.ggml.merges',
      'strings',
      merges.map(merge => (typeof merge === 'string' ? merge : merge.join(' '))),
    ],
    ['tokenizer.ggml.token_type', 'integers', tokens.map(({ kind }) => kind)],
    ...specialFacts(files, tokenizer),
  ]
}

function refusal(what: string): string {
  return `The model's tokenizer has ${what} that GGUF files have no name for: export it to safetensors.`
}

interface Named {
  readonly name: string
  readonly kind: number
}

/** Tokens by their ids; a vocabulary may be padded behind them. */
function namesOf({ model, added_tokens: added }: TokenizerFile, vocabulary: number): Named[] {
  const tokens = Array.from({ length: vocabulary }, (_, id): Named => {
    return { name: `[PAD${id}]`, kind: tokenKinds.unused }
  })
  for (const [name, id] of Object.entries(model.vocab))
    tokens[id] = { name, kind: tokenKinds.normal }
  for (const { id, content, special } of added) {
    tokens[id] = { name: content, kind: special ? tokenKinds.control : tokenKinds.userDefined }
  }
  return tokens
}

/**
 * Words as tokens that match anywhere, and bytes in GPT-2's alphabet without merges: a server may tokenize unknown
 * words of a text differently than we do; for the same ids it computes the same.
 */
function wordsOf({ model, added_tokens: added }: TokenizerFile): Named[] {
  const names = Object.keys(model.vocab)
  const words = new Set(names)
  const controls = new Set(added.map(({ id }) => id))
  return names
    .sort((a, b) => model.vocab[a]! - model.vocab[b]!)
    .map(token => {
      const byte = byteOf(token)
      const character = byte === undefined ? undefined : fromBytes(Uint8Array.of(byte))
      const plain = byte === undefined ? tokenKinds.userDefined : tokenKinds.normal
      return {
        // Names must be unique, so a byte that is also a word keeps its `<0x…>` name.
        name: character === undefined || words.has(character) ? token : character,
        kind: controls.has(model.vocab[token]!) ? tokenKinds.control : plain,
      }
    })
}

/** The byte that a token such as `<0x20>` stands for. */
function byteOf(token: string): number | undefined {
  const found = /^<0x([0-9A-F]{2})>$/.exec(token)
  return found ? Number.parseInt(found[1]!, 16) : undefined
}

/** Settings of a tokenizer, of which a template may ask. */
interface TokenizerConfig {
  readonly chat_template?: unknown
  readonly [name: string]: unknown
}

function specialFacts(
  files: ReadonlyMap<string, Uint8Array>,
  { model, added_tokens: added, post_processor: around }: TokenizerFile,
): readonly Fact[] {
  const settings = files.get('tokenizer_config.json')
  const config = (settings ? JSON.parse(Buffer.from(settings).toString()) : {}) as TokenizerConfig
  const ids = new Map([
    ...Object.entries(model.vocab),
    ...added.map(({ content, id }) => [content, id] as const),
  ])
  const idOf = (name: string): number | undefined => {
    const said = config[`${name}_token`]
    const content = typeof said === 'string' ? said : (said as { content?: string } | null)?.content
    return content === undefined ? undefined : ids.get(content)
  }
  const named = { bos: 'bos', eos: 'eos', pad: 'padding', unk: 'unknown' }
  const begins = around?.single?.[0] !== undefined && 'SpecialToken' in around.single[0]
  const template = files.get('chat_template.jinja')
  const shown = template ? Buffer.from(template).toString() : config.chat_template
  return [
    ...Object.entries(named).flatMap(([name, key]): Fact[] => {
      const id = idOf(name)
      return id === undefined ? [] : [[`tokenizer.ggml.${key}_token_id`, 'u32', id]]
    }),
    ['tokenizer.ggml.add_bos_token', 'bool', begins],
    ['tokenizer.ggml.add_eos_token', 'bool', false],
    ['tokenizer.ggml.add_space_prefix', 'bool', false],
    ...(typeof shown === 'string'
      ? [['tokenizer.chat_template', 'string', shown] satisfies Fact]
      : []),
  ]
}
