import { openTokenizer } from '@espalier/text/tokenizers'
import { unitOfByte } from '../../packages/text/src/tokenizers/byte-level/byte-alphabet.ts'
import { type Attack, damagedJson, hold, oneOf, piecesOf } from './attack.ts'

const flags = { special: true, lstrip: false, rstrip: false, single_word: false, normalized: true }
const controls = ['<|im_end|>', '<|im_start|>', '<s>', ']~!b[', '[e~[', '<END>']
const pieces = [
  ...controls,
  '<|',
  'im_',
  'end',
  '|>',
  ']~!b',
  '[',
  'e~[',
  '＜s＞',
  'ＥＮＤ',
  ' ',
  'a',
]

function definitionOf(normalizer: object | null) {
  const units = Array.from(unitOfByte, unit => String.fromCharCode(unit))
  return {
    normalizer,
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(units.map((unit, id) => [unit, id])),
      merges: [],
    },
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    decoder: { type: 'ByteLevel' },
    added_tokens: controls.map((content, index) => ({ id: 300 + index, content, ...flags })),
  }
}

/** Halves of control strings beside a template's own ones: those of messages stay text. */
export const foreignText: Attack = {
  name: 'foreign text',
  promise: 'T6',
  share: 130,
  async open() {
    const tokenizers = [null, { type: 'NFKC' }, { type: 'Lowercase' }].map(each =>
      openTokenizer({ tokenizer: definitionOf(each) }),
    )
    return draw => {
      const tokenizer = oneOf(tokenizers, draw)
      const known = new Set(tokenizer.controls.map(({ id }) => id))
      const [before, foreign, after] = [0, 1, 2].map(() => piecesOf(pieces, 4, draw))
      const start = before!.length
      const range = [start, start + foreign!.length] as const
      const ids = tokenizer.encode(before! + foreign! + after!, { foreign: [range] })
      const count = (list: ArrayLike<number>): number =>
        Array.from(list).filter(id => known.has(id)).length
      // With nothing between the two, the string they form is the template's own.
      const parts = foreign === '' ? [before! + after!] : [before!, after!]
      const own = parts.reduce((sum, part) => sum + count(tokenizer.encode(part)), 0)
      hold(count(ids) <= own, `${JSON.stringify([before, foreign, after])} became control tokens`)
    }
  },
}

/** Files of tokenizers with a place damaged: opened, or refused in words. */
export const tokenizerFiles: Attack = {
  name: 'tokenizer files',
  promise: 'H6',
  share: 10,
  async open() {
    const right = definitionOf({ type: 'NFKC' })
    return draw => {
      const damaged = damagedJson(right, draw)
      try {
        openTokenizer({ tokenizer: damaged }).encode('a <s> b')
      } catch (cause) {
        const isTold = cause instanceof Error && !(cause instanceof ReferenceError)
        hold(isTold && cause.message !== '', String(cause))
      }
    }
  },
}
