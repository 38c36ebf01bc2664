import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readGenerated, readGeneratedBody } from '../servers/sglang-answer.ts'
import { ListCutter } from './list-cutter.ts'
import { readPairs } from './pair-list.ts'
import { parseJson } from './reading.ts'

const runs = process.env.ESPALIER_SOAK ? 20_000 : 400

function answerWith(list: string, more: object = {}): string {
  const meta = { id: 'a', finish_reason: { type: 'stop' }, cached_tokens: 3, ...more }
  const ids = (JSON.parse(list) as readonly number[][]).map(([, id]) => id)
  return `{"text":"","output_ids":[${ids}],"meta_info":{${JSON.stringify(meta).slice(1, -1)},"output_token_logprobs":${list}}}`
}

/** What reading gives, or the words in which it refuses. */
function outcome(read: () => object): unknown {
  try {
    return read()
  } catch (error) {
    return String(error)
  }
}

function expectSame(text: string): void {
  const here = 'POST /generate'
  expect(outcome(() => readGeneratedBody(Buffer.from(text), here, 0))).toEqual(
    outcome(() => readGenerated(parseJson(text, here), here, 0)),
  )
}

/** What is taken from the list `a` of this text. */
function takeFrom(text: string) {
  const lists = new ListCutter(Buffer.from(text))
  const taken = lists.take('a', readPairs)
  return taken && { ...taken, rest: lists.parseRest() }
}

/** Numbers as servers write them: doubles, 32-bit floats as doubles, few digits, exponents. */
const number = fc.oneof(
  fc.double({ min: -8999, max: 0, noNaN: true }).map(value => JSON.stringify(value)),
  fc.float({ min: -100, max: 0, noNaN: true }).map(value => JSON.stringify(value)),
  fc.float({ min: Math.fround(-1e-6), max: 0, noNaN: true }).map(value => JSON.stringify(value)),
  fc.constantFrom('0', '-0', '0.0', '-0.0', '-1', '-12.5', '-1e-05', '-1.5E+2', '-0.1234567'),
  // Between two 32-bit floats, a hair to one side or the other.
  fc
    .tuple(
      fc.integer({ min: 2 ** 23, max: 2 ** 24 - 1 }),
      fc.constantFrom('5', '49999999', '50000001'),
    )
    .map(
      ([whole, rest]) =>
        `-${Math.floor(whole / 2 ** 13)}.${String((whole % 2 ** 13) * 1220703125).padStart(13, '0')}${rest}`,
    ),
)
const pair = fc
  .tuple(number, fc.integer({ min: 0, max: 2 ** 31 - 1 }))
  .map(([logprob, id]) => `[${logprob},${id},null]`)
const list = fc.array(pair, { maxLength: 40 }).map(pairs => `[${pairs.join(',')}]`)

describe('pair list', () => {
  it('reads numbers as JSON does, to the last bit', () => {
    fc.assert(
      fc.property(list, text => {
        const taken = takeFrom(`{"a":${text}}`)
        const pairs = JSON.parse(text) as [number, number, null][]
        expect(taken?.rest).toEqual({ a: [] })
        expect(taken?.logprobs).toEqual(Float32Array.from(pairs, ([logprob]) => logprob))
        expect(taken?.ids).toEqual(Int32Array.from(pairs, ([, id]) => id))
      }),
      { seed: 11, numRuns: runs },
    )
  })

  it('takes lists that are longer than what it keeps room for', () => {
    const pairs = Array.from({ length: 3000 }, (_, index) => `[-${index / 7},${index},null]`)
    expect(takeFrom(`{"a":[${pairs.join(',')}]}`)?.ids.at(-1)).toBe(2999)
  })

  it('leaves alone what is not of its form', () => {
    for (const text of [
      ...['[[.5,1,null]]', '[[-1.,1,null]]', '[[-01,1,null]]', '[[--1,1,null]]', '[[-1,1,"a"]]'],
      ...['[[-1,1]]', '[[-1,1,null]', '[[-1,1.5,null]]', '[[NaN,1,null]]', '[[1,1,null]]'],
      ...['[[-1,-1,null]]', '[ [-1,1,null]]', '[[-1,1,null],]', '[-1,1,null]', '[[-99999,1,null]]'],
    ]) {
      expect(takeFrom(`{"a":${text}}`), text).toBeUndefined()
    }
    expect(takeFrom('{"a":[[-1,1,null]],"b":{"a":[[-1,1,null]]}}')).toBeUndefined()
  })

  it('answers are read, and refused in the same words, whatever is wrong with them', () => {
    const damage = fc.record({
      at: fc.nat(),
      by: fc.constantFrom('', ' ', '0', '.', ',', ']', 'e', '"'),
    })
    fc.assert(
      fc.property(list, fc.option(damage), fc.nat(60), (text, broken, count) => {
        const whole = answerWith(text, count > 40 ? {} : { completion_tokens: count })
        const at = (broken?.at ?? 0) % whole.length
        expectSame(broken ? whole.slice(0, at) + broken.by + whole.slice(at + 1) : whole)
      }),
      { seed: 12, numRuns: runs },
    )
  })

  it('does not take a list of that name from another place', () => {
    const list = '[[-1,1,null]]'
    expectSame(
      `{"other":{"output_token_logprobs":${list}},"meta_info":{"finish_reason":{"type":"stop"}}}`,
    )
    expectSame(`{"output_token_logprobs":${list},"meta_info":null}`)
    const meta = `"meta_info":{"finish_reason":{"type":"stop"},"output_token_logprobs":${list}}`
    for (const ids of ['[2]', '[1,1]', '[]', 'null', '[1]', '[01]', '"[1]"']) {
      expectSame(`{"output_ids":${ids},${meta}}`)
      expectSame(`{"other":{"output_ids":[1]},"output_ids":${ids},${meta}}`)
      expectSame(`{"output_ids":${ids},${meta.slice(0, -1)},"output_ids":[1]}}`)
    }
  })
})
