import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeBodyMemory } from './body-memory.ts'
import { BodyReader, type KnownBody } from './known-body.ts'

/** Reads a body that comes in pieces of so many bytes; tells what was parsed to do so. */
function read(text: string, before?: KnownBody, piece = 7) {
  const reader = new BodyReader(before)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += piece) {
    reader.take(Buffer.from(bytes.subarray(at, at + piece)))
  }
  let parsed = 0
  const result = reader.read(json => {
    parsed += json.length
    return JSON.parse(json) as unknown
  })
  return { ...result, parsed }
}

const message = fc.record({
  role: fc.constantFrom('user', 'assistant'),
  content: fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 3 })),
})
const entry = fc.oneof({ weight: 8, arbitrary: message }, fc.jsonValue({ maxDepth: 2 }))
const list = fc.constantFrom('messages', 'input', 'contents', 'others')

/** A request and how it is written. */
const request = fc.record({
  before: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
  list,
  entries: fc.array(entry),
  after: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
  space: fc.constantFrom('', ' ', '\t'),
})

describe('a body that begins like the one before', () => {
  it('is what JSON says it is, whatever came before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(request, fc.nat(6), fc.boolean()), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 64 }),
        (requests, piece) => {
          let known: KnownBody | undefined
          let history: unknown[] = []
          let first = requests[0]![0]
          for (const [given, kept, isOther] of requests) {
            // Most go on from what was said; some change how they begin, too.
            if (isOther) first = given
            history = [...history.slice(0, history.length - kept), ...given.entries]
            const body = { ...first.before, [first.list]: history, ...given.after }
            const text = JSON.stringify(body, null, first.space)
            const { value, known: next } = read(text, known, piece)
            expect(value).toEqual(JSON.parse(text))
            known = next
          }
        },
      ),
      { seed: 11, numRuns: 300 },
    )
  })

  it('costs what is new in it', () => {
    const said = (count: number): string =>
      JSON.stringify({
        model: 'any',
        messages: Array.from({ length: count }, () => ({ content: 'é"\\'.repeat(500) })),
      })
    const { known } = read(said(20))
    const again = read(said(21), known)
    expect(again.value).toEqual(JSON.parse(said(21)))
    expect(again.parsed).toBeLessThan(said(2).length)
    expect(read(said(20), again.known).parsed).toBeLessThan(100)
  })

  it('is read whole where a second list of the name takes its place', () => {
    const { known } = read('{"messages":[{"a":1},{"b":2}]}')
    const twice = '{"messages":[{"a":1},{"b":2}],"messages":[{"c":3}]}'
    expect(read(twice, known).value).toEqual({ messages: [{ c: 3 }] })
  })

  it('is forgotten with the sender who was silent longest', () => {
    const memory = makeBodyMemory(100)
    const { known } = read(`{"messages":[{"a":"${'x'.repeat(40)}"}]}`)
    memory.keep('one', known!)
    memory.keep('two', known!)
    expect(memory.take('one')).toBeUndefined()
    expect(memory.take('two')).toBe(known)
    expect(memory.take('two')).toBeUndefined()
  })
})
