import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openVocabulary } from '../vocabulary.ts'
import { fromBytes } from './byte-alphabet.ts'
import { Characters } from './characters.ts'
import { join } from './joiner.ts'
import { openMerges } from './merges.ts'

const utf8 = new TextEncoder()
const texts = ['一', '丁', '与', '万', '中', ' ']
const bytes = [...new Set(texts.flatMap(text => [...utf8.encode(text)]))]

/** Merges as training makes them, of parts that are there already, also across characters. */
const anyMerges = fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 40 }).map(places => {
  const tokens = bytes.map(byte => fromBytes(Uint8Array.of(byte)))
  const pairs = new Map<string, readonly [string, string]>()
  for (const [first, second] of places) {
    const left = tokens[first % tokens.length]!
    const right = tokens[second % tokens.length]!
    if (tokens.includes(left + right) || left.length + right.length > 7) continue
    pairs.set(`${left} ${right}`, [left, right])
    tokens.push(left + right)
  }
  const vocabulary = openVocabulary(Object.fromEntries(tokens.map((token, id) => [token, id])))
  return { merges: openMerges([...pairs.values()], vocabulary), vocabulary }
})

it('encodes from characters on only where bytes give the same', () => {
  let fromCharacters = 0
  fc.assert(
    fc.property(
      anyMerges,
      fc.array(fc.constantFrom(...texts), { minLength: 1, maxLength: 8 }),
      ({ merges, vocabulary }, piece) => {
        const text = piece.join('')
        const idOf = (byte: number) => vocabulary.idOf(fromBytes(Uint8Array.of(byte))) ?? -1
        const idOfByte = Int32Array.from({ length: 256 }, (_, byte) => idOf(byte))
        const units = Uint16Array.from(text, unit => unit.charCodeAt(0))
        const symbols = new Int32Array(units.length)
        const characters = new Characters(idOfByte, merges, vocabulary.size)
        if (!characters.toSymbols(units, 0, units.length, symbols)) return
        fromCharacters++
        const whole = Int32Array.from(utf8.encode(text), byte => idOfByte[byte]!)
        expect(joined(symbols)).toEqual(joined(whole))

        function joined(given: Int32Array): readonly number[] {
          const ranks = Int32Array.from(given, (symbol, at) =>
            at + 1 < given.length ? merges.rank(symbol, given[at + 1]!) : 0,
          )
          const count = join({ symbols: given, ranks }, given.length, merges)
          return [...given.subarray(0, count)]
        }
      },
    ),
    { numRuns: 1500, seed: 7 },
  )
  expect(fromCharacters).toBeGreaterThan(10)
})
