import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reserve, sampleCalls } from '../../../../test/fixtures/tool-calls.ts'
import { openParser, reasoningFormats, type TextPiece, toolFormats } from './parser.ts'

const runs = process.env.ESPALIER_SOAK ? 2000 : 100

/** What formats of reasoning set thoughts, answers and calls apart with. */
const frames = [
  ...['<think>', '</think>', '<mm:think>', '</mm:think>', '[THINK]', '[/THINK]'],
  ...['◁think▷', '◁/think▷', '<|channel>thought\n', '<channel|>', '<tool_call>'],
  ...['<|inner_prefix|>', '<|inner_suffix|>', '<|tools_prefix|>', '<|tools_suffix|>'],
  ...['<|START_THINKING|>', '<|END_THINKING|>', '<|START_TEXT|>', '<|END_TEXT|>'],
  ...['<|start|>assistant', '<|channel|>analysis<|message|>', '<|channel|>final<|message|>'],
  ...['<|end|>', '<|return|>', '<|call|>', '<|message_model|>', '<|content_thinking|>'],
  ...['<|content_text|>', '<|end_message|>', '<|open|>think<|sep|>', '<|close|>think<|sep|>'],
  ...['<|open|>response<|sep|>', '<|close|>response<|sep|>', '<|close|>message<|sep|>'],
]
const damage = ['"', "'", '\\', '{', '[', '<', '\n', ' ', '}}', '"}', 'Hm. ', '</s>', '<|im_end|>']

/** What vocabularies have as one token, of all that occurs here. */
const token = /(<[^<>\s]{1,40}>|\[\/?[A-Z_]+\]|◁\/?think▷)/
const everything = [...frames, ...damage, ...Object.values(sampleCalls)].join('')
const controls = [...new Set(everything.split(token).filter((_, index) => index % 2 === 1))]

const text = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...frames) },
      { weight: 3, arbitrary: fc.constantFrom(...damage) },
      { weight: 2, arbitrary: fc.constantFrom(...Object.values(sampleCalls)) },
      fc
        .tuple(fc.constantFrom(...Object.values(sampleCalls)), fc.nat(), fc.nat())
        .map(([sample, from, length]) => sample.slice(from % sample.length).slice(0, length % 99)),
    ),
    { maxLength: 9 },
  )
  .map(fragments => fragments.join(''))

const lengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 30 })

/** A text as tokens decode to it; every `spelled`-th control string was spelled in letters. */
const toPieces = (whole: string, spelled: number): TextPiece[] =>
  whole
    .split(token)
    .map((piece, index) => ({ text: piece, control: index % 2 === 1 && index % spelled !== 0 }))

/** The same pieces, those of text cut into smaller ones. */
function cut(pieces: readonly TextPiece[], cuts: readonly number[]): TextPiece[] {
  let turn = 0
  return pieces.flatMap(piece => {
    if (piece.control) return [piece]
    const smaller: TextPiece[] = []
    for (let index = 0; index < piece.text.length; ) {
      const end = index + cuts[turn++ % cuts.length]!
      smaller.push({ text: piece.text.slice(index, end), control: false })
      index = end
    }
    return smaller
  })
}

describe.each(reasoningFormats)('an output with reasoning %s', reasoning => {
  const tools = fc.constantFrom(undefined, ...toolFormats)
  const inside = fc.constantFrom({}, { opensInReasoning: true }, { opensInReasoning: false })

  it('says the same whole and in pieces, as text and as tokens', () => {
    const byTokens = fc.constantFrom({}, { controls })
    const spelled = fc.constantFrom(3, 5, 1001)
    fc.assert(
      fc.property(
        fc.record({ tools, inside, byTokens, text, lengths, spelled }),
        ({ tools, inside, byTokens, text, lengths, spelled }) => {
          const schemas = [reserve]
          const parser = openParser({ tools, reasoning, schemas, ...inside, ...byTokens })
          const pieces = toPieces(text, spelled)
          const stream = parser.open()
          for (const piece of cut(pieces, lengths)) stream.push([piece])
          expect(stream.end().output).toEqual(parser.parse(pieces))
        },
      ),
      { seed: 19, numRuns: runs },
    )
  })
})
