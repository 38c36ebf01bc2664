import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readVocabulary } from '../vocabulary.ts'
import { fromBytes } from './byte-alphabet.ts'
import { Characters } from './characters.ts'
import { join } from './joiner.ts'
import { readMerges } from './merges.ts'

const utf8 = new TextEncoder()
const texts = ['一', '丁', '中', 'é', 'è', '😀', ' ']

/** Merges as training makes them: of parts that stand side by side in some text, also across characters. */
const anyMerges = fc
  .array(fc.tuple(fc.constantFrom(...texts), fc.constantFrom(...texts), fc.nat(6)), {
    maxLength: 30,
  })
  .map(places => {
    const tokens = Array.from({ length: 256 }, (_, byte) => fromBytes(Uint8Array.of(byte)))
    const pairs: (readonly [string, string])[] = []
    for (const [first, second, place] of places) {
      const parts = partsOf(first + second, pairs)
      const at = place % (parts.length - 1)
      if (parts.length < 2) continue
      pairs.push([parts[at]!, parts[at + 1]!])
      if (!tokens.includes(parts[at]! + parts[at + 1]!)) tokens.push(parts[at]! + parts[at + 1]!)
    }
    const vocabulary = readVocabulary(Object.fromEntries(tokens.map((token, id) => [token, id])))
    return { merges: readMerges(pairs, vocabulary), vocabulary }
  })

/** The tokens of a text as the merges so far leave them. */
function partsOf(text: string, pairs: readonly (readonly [string, string])[]): string[] {
  const parts = Array.from(utf8.encode(text), byte => fromBytes(Uint8Array.of(byte)))
  for (const [left, right] of pairs) {
    for (let at = 0; at < parts.length - 1; at++) {
      if (parts[at] === left && parts[at + 1] === right) parts.splice(at, 2, left + right)
    }
  }
  return parts
}

it('makes of characters and bytes what bytes alone give', () => {
  let fewer = 0
  fc.assert(
    fc.property(
      anyMerges,
      fc.array(fc.constantFrom(...texts), { minLength: 1, maxLength: 8 }),
      ({ merges, vocabulary }, piece) => {
        const text = piece.join('')
        const bytesOfText = utf8.encode(text)
        const idOf = (byte: number) => vocabulary.idOf(fromBytes(Uint8Array.of(byte)))!
        const idOfByte = Int32Array.from({ length: 256 }, (_, byte) => idOf(byte))
        const units = Uint16Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
        const symbols = new Int32Array(bytesOfText.length)
        const characters = new Characters(idOfByte, merges)
        const count = characters.toSymbols(units, 0, units.length, symbols)
        if (count < bytesOfText.length) fewer++
        const whole = Int32Array.from(bytesOfText, byte => idOfByte[byte]!)
        expect(joined(symbols.subarray(0, count))).toEqual(joined(whole))

        function joined(given: Int32Array): readonly number[] {
          const ranks = Int32Array.from(given, (symbol, at) =>
            at + 1 < given.length ? merges.rank(symbol, given[at + 1]!) : 0,
          )
          const length = join({ symbols: given, ranks }, given.length, merges)
          return [...given.subarray(0, length)]
        }
      },
    ),
    { numRuns: process.env.ESPALIER_SOAK ? 20_000 : 600, seed: 7 },
  )
  expect(fewer).toBeGreaterThan(100)
})
