import type { ModelFiles } from '@espalier/text/chat'
import { chatTemplate, controlTokens } from './template.ts'

/**
 * Words with the one character before them, numbers of up to three digits, runs of punctuation, white
 * space. Numbers do not include a space, so that a number is the same token in a text and in a call.
 */
const piecePattern =
  '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'

/** What a vocabulary is made from. */
export interface VocabularyOptions {
  /** Pieces that occur less often are spelled in bytes. @default 1 */
  readonly times?: number
  /** The most words. @default 4096 */
  readonly words?: number
}

/** Whole words of the texts, and all bytes for everything else. */
export interface Vocabulary {
  /** Tokens by their id: control tokens, bytes, then words, the most frequent first. */
  readonly tokens: readonly string[]
}

/** Builds a vocabulary from texts as a chat template writes them, control tokens included. */
export function buildVocabulary(
  texts: Iterable<string>,
  options: VocabularyOptions = {},
): Vocabulary {
  const { times = 1, words = 4096 } = options
  const counts = new Map<string, number>()
  const expression = new RegExp(piecePattern, 'gu')
  for (const text of texts) {
    for (const part of splitAtControls(text)) {
      for (const [piece] of part.matchAll(expression)) {
        counts.set(piece, (counts.get(piece) ?? 0) + 1)
      }
    }
  }
  const reserved = [...controlTokens, ...byteTokens]
  const known = new Set(reserved)
  const found = [...counts]
    .filter(([piece, count]) => count >= times && !known.has(piece))
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, words)
    .map(([piece]) => piece)
  return { tokens: [...reserved, ...found] }
}

function splitAtControls(text: string): readonly string[] {
  return controlTokens.reduce<readonly string[]>(
    (parts, control) => parts.flatMap(part => part.split(control)),
    [text],
  )
}

const byteTokens = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
)

/** Whether an id is a byte of a text that the vocabulary has no word for. */
export function isByteToken(token: string | undefined): boolean {
  return token !== undefined && /^<0x[0-9A-F]{2}>$/.test(token)
}

/** The tokenizer and template files of a model that writes with this vocabulary. */
export function tokenizerFiles({ tokens }: Vocabulary): ReadonlyMap<string, Uint8Array> {
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: controlTokens.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Split',
      pattern: { Regex: piecePattern },
      behavior: 'Isolated',
      invert: false,
    },
    post_processor: null,
    decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] },
    model: {
      type: 'WordLevel',
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      unk_token: '<|end|>',
      byte_fallback: true,
    },
  }
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    eos_token: '<|end|>',
    pad_token: '<|end|>',
    clean_up_tokenization_spaces: false,
  }
  const utf8 = new TextEncoder()
  return new Map([
    ['tokenizer.json', utf8.encode(`${JSON.stringify(tokenizer)}\n`)],
    ['tokenizer_config.json', utf8.encode(`${JSON.stringify(config, undefined, 2)}\n`)],
    ['chat_template.jinja', utf8.encode(chatTemplate)],
  ])
}

/** A model's tokenizer and template files as a renderer takes them. */
export function toModelFiles(name: string, files: ReadonlyMap<string, Uint8Array>): ModelFiles {
  const text = (file: string): string => {
    const bytes = files.get(file)
    if (!bytes) throw new Error(`The model "${name}" came without ${file}.`)
    return new TextDecoder().decode(bytes)
  }
  const config = JSON.parse(text('tokenizer_config.json')) as Record<string, unknown>
  const { chat_template: inside } = config
  return {
    name,
    tokenizer: JSON.parse(text('tokenizer.json')),
    config,
    template:
      typeof inside === 'string' && !files.has('chat_template.jinja')
        ? inside
        : text('chat_template.jinja'),
    endIds: [],
  }
}
