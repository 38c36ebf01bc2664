import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readVocabulary } from '../vocabulary.ts'
import { NO_RANK } from './borders.ts'
import { join } from './joiner.ts'
import { type Merges, readMerges } from './merges.ts'

const letters = ['a', 'b', 'c']

/** Merges of random strings of a few letters, in any order: also such as no training gives. */
const anyMerges = fc
  .uniqueArray(
    fc.tuple(
      fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 3 }),
      fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 3 }),
    ),
    { maxLength: 12, selector: pair => pair.join(' ') },
  )
  .map(pairs => {
    const tokens = new Set([...letters, ...pairs.flat(), ...pairs.map(pair => pair.join(''))])
    const vocabulary = readVocabulary(
      Object.fromEntries([...tokens].map((token, id) => [token, id])),
    )
    return { merges: readMerges(pairs, vocabulary), vocabulary }
  })

/** The definition, one join at a time. */
function joinSlowly(symbols: readonly number[], merges: Merges): number[] {
  const ranks = symbols.slice(1).map((symbol, at) => merges.rank(symbols[at]!, symbol))
  const best = Math.min(NO_RANK, ...ranks)
  if (best === NO_RANK) return [...symbols]
  const at = ranks.indexOf(best)
  return joinSlowly(symbols.toSpliced(at, 2, merges.resultOf(best)), merges)
}

function joinAll(symbols: readonly number[], merges: Merges): number[] {
  const ranks = Int32Array.from(symbols, (symbol, at) =>
    at + 1 < symbols.length ? merges.rank(symbol, symbols[at + 1]!) : 0,
  )
  const work = { symbols: Int32Array.from(symbols), ranks }
  return Array.from(work.symbols.subarray(0, join(work, symbols.length, merges)))
}

it.each([
  ['short', 0, 40],
  ['long', 97, 160],
])('joins %s pieces as the definition does', (_, minLength, maxLength) => {
  const anyPiece = fc.array(fc.constantFrom(...letters), { minLength, maxLength })
  fc.assert(
    fc.property(anyMerges, anyPiece, ({ merges, vocabulary }, piece) => {
      const symbols = piece.map(letter => vocabulary.idOf(letter)!)
      expect(joinAll(symbols, merges)).toEqual(joinSlowly(symbols, merges))
    }),
    { numRuns: process.env.ESPALIER_SOAK ? 5000 : 150, seed: 3 },
  )
})

it('counts a merge that is listed twice where it stands last', () => {
  const vocabulary = readVocabulary({ a: 0, b: 1, ab: 2, bb: 3 })
  const merges = readMerges(['a b', 'b b', 'a b'], vocabulary)
  expect(joinAll([0, 1, 1], merges)).toEqual([0, 3])
})
