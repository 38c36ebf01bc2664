import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HiddenContents, type Hole, markedSourceOf } from '../../jinja/hidden.ts'
import { hiddenOf } from '../../jinja/text.ts'
import { unitOfByte } from '../../tokenizers/byte-level/byte-alphabet.ts'
import { openTokenizer, type Tokenizer } from '../../tokenizers/tokenizer.ts'
import { makeHoleEncoder, type Outline } from './hole-encoder.ts'

const runs = process.env.ESPALIER_SOAK ? 2000 : 150

/** Few characters, so that control strings arise where texts meet, overlap and take white space. */
const letters = fc.constantFrom('<', '>', 'a', 'b', ' ', '\n', '🎉')
const halves = fc.constantFrom('\ud83c', '\udf89')
const words = fc.string({ unit: fc.oneof(letters, halves), maxLength: 5 })

const controls = fc.uniqueArray(
  fc.record({
    content: fc.oneof(
      fc.constantFrom('<a>', '<b>', '<a>b', '>', '<<', '  ', 'a>\n'),
      fc.string({ unit: letters, minLength: 1, maxLength: 4 }),
    ),
    special: fc.boolean(),
    lstrip: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean()),
    rstrip: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean()),
    single_word: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.boolean()),
    normalized: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean()),
  }),
  { selector: ({ content }) => content, minLength: 1, maxLength: 5 },
)

/** The text between holes, rich in control strings. */
const told = fc
  .array(fc.oneof(words, fc.constantFrom('<a>', '<b>', '<a>b', '>')), { maxLength: 4 })
  .map(parts => parts.join(''))

type Added = readonly { readonly content: string }[]

const idsFrom = (added: Added, first: number) =>
  added.map((token, index) => ({ id: first + index, ...token }))

function openBytes(added: Added): Tokenizer {
  const units = Array.from(unitOfByte, unit => String.fromCharCode(unit))
  const vocab = Object.fromEntries([...units, 'aa', '<a', 'a>', '>>'].map((unit, id) => [unit, id]))
  const merges = ['a a', '< a', 'a >', '> >']
  return openTokenizer({
    tokenizer: {
      model: { type: 'BPE', vocab, merges },
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
      decoder: { type: 'ByteLevel' },
      added_tokens: idsFrom(added, 260),
    },
  })
}

/** A model that treats the beginning of a text in a way of its own. */
function openPieces(added: Added): Tokenizer {
  const pieces = ['<unk>', '▁', '▁a', 'a', 'b', '<', '>', '▁<', '\n', 'ab']
  const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first' }
  return openTokenizer({
    tokenizer: {
      model: { type: 'Unigram', unk_id: 0, vocab: pieces.map((piece, id) => [piece, -id / 4]) },
      normalizer: { type: 'Prepend', prepend: 'b' },
      pre_tokenizer: metaspace,
      decoder: metaspace,
      added_tokens: idsFrom(added, pieces.length),
    },
  })
}

/** Holes between these texts, the first filled from the first text. */
function outlineOf(parts: readonly string[]): Outline & { holes: Hole[] } {
  const contents = new HiddenContents([])
  const holes: Hole[] = []
  let text = parts[0]!
  parts.slice(1).forEach((part, index) => {
    const [hole] = hiddenOf(contents.hide(index, 100))!.holes
    holes.push({ ...hole!, at: text.length })
    text += part
  })
  return { text, holes, foreign: [] }
}

describe('the encoder of a text with holes', () => {
  it.each([
    ['byte-level', openBytes],
    ['unigram', openPieces],
  ])('gives what the whole text is encoded to, for any control tokens (%s)', (_, open) => {
    fc.assert(
      fc.property(
        controls,
        fc.array(told, { minLength: 1, maxLength: 4 }),
        fc.array(fc.array(words, { minLength: 3, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
        (added, parts, fillings) => {
          const tokenizer = open(added)
          const outline = outlineOf(parts)
          const encode = makeHoleEncoder(tokenizer, outline)
          const read = markedSourceOf(outline, outline.holes)
          for (const texts of [['', '', ''], ...fillings]) {
            const { text, foreign } = read(texts)
            expect(encode(texts)).toEqual(tokenizer.encode(text, { foreign }))
          }
        },
      ),
      { seed: 5, numRuns: runs },
    )
  })

  const flags = { special: true, lstrip: false, rstrip: false, single_word: false }

  it.each([
    ['white space before it', { lstrip: true }, ['<b>', '<a>'], 'x '],
    ['white space behind it', { rstrip: true }, ['<a>', '<b>'], ' x'],
    ['no word beside it', { single_word: true }, ['<b>', '<a>'], 'x'],
    ['the normalized text', { normalized: true }, ['a', 'b<a>a'], 'x'],
  ])('leaves a control token that wants %s to the tokenizer', (_, flag, parts, filling) => {
    const added = [
      { content: '<a>', ...flags, ...flag },
      { content: '<b>', ...flags },
    ]
    for (const tokenizer of [openBytes(added), openPieces(added)]) {
      const encode = makeHoleEncoder(tokenizer, outlineOf(parts))
      encode(['b'])
      const foreign = [[parts[0]!.length, parts[0]!.length + filling.length]] as const
      expect(encode([filling])).toEqual(tokenizer.encode(parts.join(filling), { foreign }))
    }
  })

  it('encodes only what lies between the control tokens around a hole', () => {
    const tokenizer = openBytes(['<a>', '<b>'].map(content => ({ content, ...flags })))
    const seen: unknown[] = []
    const watched: Tokenizer = {
      ...tokenizer,
      encodeParts: parts => {
        seen.push(...parts.flatMap(part => ('text' in part ? [part.text] : [])))
        return tokenizer.encodeParts(parts)
      },
    }
    const encode = makeHoleEncoder(watched, outlineOf(['a<a>x<a>user ', ' end<b>b', 'b<b>']))
    encode(['1', '2'])
    expect(encode(['one', 'two'])).toEqual(tokenizer.encode('a<a>x<a>user one end<b>btwob<b>'))
    expect(seen).toEqual(['user one end', 'btwob'])
  })
})
