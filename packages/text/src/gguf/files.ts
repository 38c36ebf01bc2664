import type { Fact, GgufHeader } from './metadata.ts'

/** Kinds of tokens, by their number in the format. */
const kinds = { control: 3, userDefined: 4 } as const

/** How texts are cut before merging, by the name that a file gives it. */
interface Cut {
  /** Its pattern; without one the bytes of GPT-2's. */
  readonly pattern?: string
  readonly digits?: true
  readonly normalizer?: 'NFC'
  readonly ignoreMerges?: true
}

const words = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+`
const rest = String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
const llama3: Cut = { pattern: String.raw`${words}|\p{N}{1,3}|${rest}`, ignoreMerges: true }

/** The ways of cutting that are known to the letter. */
const cuts: Readonly<Record<string, Cut>> = {
  'gpt-2': {},
  smollm: { digits: true },
  qwen2: { pattern: String.raw`${words}|\p{N}|${rest}`, normalizer: 'NFC' },
  'llama-bpe': llama3,
  llama3,
}

/**
 * The tokenizer and template files that a GGUF file stands for, as a model folder has them; a tokenizer that cannot
 * be made exact is refused by name.
 */
export function ggufModelFiles(header: GgufHeader): ReadonlyMap<string, string> {
  const { path, facts } = header
  const model = facts.get('tokenizer.ggml.model')
  const name = facts.get('tokenizer.ggml.pre')
  const instead = 'name a folder with its tokenizer.json by --model DIR'
  if (model === undefined) throw new Error(`${path} has no tokenizer: ${instead}`)
  const cut = model === 'gpt2' && typeof name === 'string' ? cuts[name] : undefined
  if (!cut) {
    const known = Object.keys(cuts).join(', ')
    throw new Error(
      `${path} has a tokenizer of the kind ${String(model)}, cut by ${String(name ?? 'nothing named')}, which is not ` +
        `exact from a GGUF file (byte-level BPE cut by ${known} is): ${instead}`,
    )
  }
  const tokens = textsOf(header, 'tokenizer.ggml.tokens')
  const config = configOf(header, tokens)
  const end = facts.get('tokenizer.ggml.eos_token_id')
  const template = facts.get('tokenizer.chat_template')
  return new Map([
    ['tokenizer.json', JSON.stringify(tokenizerOf(header, tokens, cut))],
    ['tokenizer_config.json', JSON.stringify(config)],
    ['generation_config.json', JSON.stringify(end === undefined ? {} : { eos_token_id: end })],
    ...(typeof template === 'string' ? [['chat_template.jinja', template] as const] : []),
  ])
}

/** The name that GGUF files give to a tokenizer's way of cutting texts; undefined if they have none for it. */
export function ggufCutOf(tokenizer: {
  readonly pre_tokenizer?: unknown
  readonly normalizer?: unknown
}): string | undefined {
  const { pre_tokenizer: cutter, normalizer } = tokenizer
  const { pretokenizers = [cutter] } = (cutter ?? {}) as { pretokenizers?: readonly unknown[] }
  const { type = undefined } = (normalizer ?? {}) as { type?: unknown }
  const wanted = likeness(pretokenizers)
  return Object.keys(cuts).find(name => {
    return likeness(pieces(cuts[name]!)) === wanted && cuts[name]!.normalizer === type
  })
}

/** What of pieces changes ids: where their offsets begin does not, nor in which order they are described. */
function likeness(list: readonly unknown[]): string {
  return JSON.stringify(list, (key, value: unknown) => {
    if (key === 'trim_offsets') return undefined
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function textsOf({ path, facts }: GgufHeader, key: string): readonly string[] {
  const list = facts.get(key) ?? []
  if (Array.isArray(list) && list.every(each => typeof each === 'string')) return list as string[]
  throw new Error(`${path} has no texts in ${key}.`)
}

function tokenizerOf(header: GgufHeader, tokens: readonly string[], cut: Cut): object {
  const types = header.facts.get('tokenizer.ggml.token_type') as readonly Fact[] | undefined
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false }
  const added = tokens.flatMap((content, id) => {
    const kind = types?.[id]
    if (kind !== kinds.control && kind !== kinds.userDefined) return []
    return [{ id, content, ...plain, special: kind === kinds.control }]
  })
  const addedIds = new Set(added.map(({ id }) => id))
  // A vocabulary may be padded with names that nothing is merged to; added ones may stand in it or not.
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]))
  if (Object.keys(vocab).length !== tokens.length) {
    throw new Error(`${header.path} has two tokens of one name.`)
  }
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: cut.normalizer ? { type: cut.normalizer } : null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: pieces(cut) },
    post_processor: beginning(header, tokens, addedIds),
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: cut.ignoreMerges ?? false,
      vocab,
      merges: textsOf(header, 'tokenizer.ggml.merges'),
    },
  }
}

function pieces({ pattern, digits }: Cut): readonly object[] {
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true }
  if (pattern === undefined) {
    const apart = digits ? [{ type: 'Digits', individual_digits: true }] : []
    return [...apart, { ...bytes, use_regex: true }]
  }
  const split = { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false }
  return [split, { ...bytes, use_regex: false }]
}

/** What puts the first token before every text, if the file says so. */
function beginning(
  { facts }: GgufHeader,
  tokens: readonly string[],
  added: ReadonlySet<number>,
): object | null {
  const id = facts.get('tokenizer.ggml.bos_token_id')
  if (facts.get('tokenizer.ggml.add_bos_token') !== true) return null
  if (typeof id !== 'number' || !added.has(id)) return null
  const token = tokens[id]!
  const first = { SpecialToken: { id: token, type_id: 0 } }
  const text = { Sequence: { id: 'A', type_id: 0 } }
  return {
    type: 'TemplateProcessing',
    single: [first, text],
    pair: [first, text, { Sequence: { id: 'B', type_id: 0 } }],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  }
}

/** What a template asks of the tokenizer's settings. */
function configOf({ facts }: GgufHeader, tokens: readonly string[]): Record<string, unknown> {
  const named = { bos: 'bos', eos: 'eos', pad: 'padding', unk: 'unknown' }
  const special = Object.entries(named).flatMap(([name, key]) => {
    const id = facts.get(`tokenizer.ggml.${key}_token_id`)
    const token = typeof id === 'number' ? tokens[id] : undefined
    return token === undefined ? [] : [[`${name}_token`, token]]
  })
  return {
    add_prefix_space: false,
    clean_up_tokenization_spaces: false,
    ...Object.fromEntries(special),
  }
}
