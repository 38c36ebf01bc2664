import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { promptBody } from './prompt-body.ts'

const frame = { head: '{"input_ids":[', tail: '],"stop":["ä"]}' }
const expected = (ids: Int32Array): string => `${frame.head}${ids.join(',')}${frame.tail}`

describe('the body of a prompt', () => {
  it('[T3] has the ids that it was given', () => {
    const id = fc.oneof(fc.integer({ min: 0, max: 2 ** 31 - 1 }), fc.integer({ min: 0, max: 1001 }))
    fc.assert(
      fc.property(fc.array(id, { maxLength: 300 }), list => {
        const ids = Int32Array.from(list)
        expect(promptBody(ids, frame).toString()).toBe(expected(ids))
      }),
      { seed: 7, numRuns: process.env.ESPALIER_SOAK ? 2000 : 60 },
    )
    const edges = Int32Array.from({ length: 10 }, (_, power) => 10 ** power)
    const ids = Int32Array.from([0, 2 ** 31 - 1, ...edges, ...edges.map(edge => edge - 1)])
    expect(promptBody(ids, frame).toString()).toBe(expected(ids))
  })

  it('is refused for what is no id', () => {
    expect(() => promptBody(Int32Array.of(1, -1), frame)).toThrow('Token 1 of the prompt is -1')
  })
})
