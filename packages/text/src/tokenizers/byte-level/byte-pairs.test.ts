import fc from 'fast-check'
import { expect, it } from 'vitest'
import { IdBuffer, toUnits } from '../buffers.ts'
import { readVocabulary, type Vocabulary } from '../vocabulary.ts'
import { fromBytes } from './byte-alphabet.ts'
import { BytePairs } from './byte-pairs.ts'
import { readMerges } from './merges.ts'

const utf8 = new TextEncoder()
const bytes = Array.from({ length: 256 }, (_, byte) => fromBytes(Uint8Array.of(byte)))

/** What words are made of here: few letters, so that merges find something to join. */
const letters = ['a', 'b', ' ', '\n', '0', 'é', 'ש', '一', '丁', '—', '😀', '👍', '🏽', '\u200d']
const anyWord = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 90, size: 'max' })

interface Model {
  readonly pairs: readonly (readonly [string, string])[]
  readonly vocabulary: Vocabulary
  /** Words that are tokens, though no merge makes them. */
  readonly wholes: readonly (readonly string[])[]
}

/** Merges of tokens that are there already, in any order of ranks: also such as no training gives. */
const anyModel: fc.Arbitrary<Model> = fc
  .tuple(
    fc.array(fc.tuple(fc.nat(), fc.nat(), fc.boolean()), { maxLength: 40, size: 'max' }),
    fc.array(fc.nat(), { maxLength: 5 }),
    fc.array(anyWord, { maxLength: 4 }),
  )
  .map(([choices, moves, wholes]) => {
    const common = [...new Set([...utf8.encode(letters.join(''))])].map(byte => bytes[byte]!)
    const tokens = [...common]
    const pairs: [string, string][] = []
    for (const [left, right, isNew] of choices) {
      const from = isNew ? Math.max(0, tokens.length - 8) : 0
      const pick = (choice: number) => tokens[from + (choice % (tokens.length - from))]!
      pairs.push([pick(left), pick(right)])
      tokens.push(pairs.at(-1)!.join(''))
    }
    for (const place of moves) {
      if (pairs.length > 0) pairs.unshift(...pairs.splice(place % pairs.length, 1))
    }
    const words = wholes.map(word => fromBytes(utf8.encode(word.join(''))))
    const names = [...new Set([...bytes, ...tokens, ...words])]
    return {
      pairs,
      wholes,
      vocabulary: readVocabulary(Object.fromEntries(names.map((name, id) => [name, id]))),
    }
  })

/** The definition: bytes, and of all pairs the one of the lowest rank and most to the left is joined next. */
function encodePlainly(text: string, { pairs, vocabulary }: Model): number[] {
  const ranks = new Map(pairs.map((pair, rank) => [pair.join(' '), rank]))
  const parts = Array.from(utf8.encode(text), byte => bytes[byte]!)
  for (;;) {
    const found = parts.slice(1).map((part, at) => ranks.get(`${parts[at]} ${part}`) ?? Infinity)
    const best = Math.min(...found)
    if (best === Infinity) return parts.map(part => vocabulary.idOf(part)!)
    const at = found.indexOf(best)
    parts.splice(at, 2, parts[at]! + parts[at + 1]!)
  }
}

/** With `ignoreMerges`, a word that is a token is that one, unless it is forbidden: here every fifth. */
const isForbidden = (id: number) => id % 5 === 0

function encodeWhole(text: string, { vocabulary }: Model): number[] | undefined {
  const id = vocabulary.idOf(fromBytes(utf8.encode(text)))
  return id === undefined || isForbidden(id) ? undefined : [id]
}

it.each([false, true])(
  'makes of any word what joining its bytes one pair at a time does, first and again (ignoreMerges: %s)',
  ignoreMerges => {
    fc.assert(
      fc.property(anyModel, fc.array(anyWord, { minLength: 1, maxLength: 4 }), (model, words) => {
        const ids = new IdBuffer()
        const { vocabulary } = model
        const merges = readMerges(model.pairs, vocabulary)
        const pairs = new BytePairs({ vocabulary, merges, ignoreMerges, isForbidden }, ids)
        for (const word of [...words, ...words, ...model.wholes, ...model.wholes]) {
          const text = word.join('')
          const encoded = ids.gather(() => pairs.encode(toUnits(text), 0, text.length))
          const whole = ignoreMerges ? encodeWhole(text, model) : undefined
          expect(Array.from(encoded), text).toEqual(whole ?? encodePlainly(text, model))
        }
      }),
      { numRuns: process.env.ESPALIER_SOAK ? 10_000 : 30, seed: 23 },
    )
  },
)

it('joins all the same where two tokens have one id, or a byte has none', () => {
  const model = { a: 0, b: 1, ab: 2, Ċ: 2 }
  const vocabulary = readVocabulary(model)
  const merges = readMerges(['a b'], vocabulary)
  const ids = new IdBuffer()
  const isForbidden = () => false
  const pairs = new BytePairs({ vocabulary, merges, ignoreMerges: false, isForbidden }, ids)
  const text = 'a-b\n'.repeat(30)
  const encoded = ids.gather(() => pairs.encode(toUnits(text), 0, text.length))
  expect(Array.from(encoded)).toEqual(Array.from({ length: 60 }, () => 2))
})
