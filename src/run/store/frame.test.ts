import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { dice, randomTree } from '../../../test/random-tree.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import type { Tree } from '../../base/core/tree.ts'
import { decodeFrame, encodeFrame, toJson } from './frame.ts'
import { putTexts } from './long-texts.ts'
import { treeFromFrame, treeToFrame, treeToRunFrame } from './tree-frame.ts'

const store = (seed: number) => encodeFrame(treeToFrame(randomTree(seed)))

describe('frames', () => {
  it('give back random trees exactly', () => {
    for (let seed = 0; seed < 300; seed++) {
      const tree = randomTree(seed)
      const again = treeFromFrame(decodeFrame(store(seed), 0))
      expect(again.nodes).toEqual(tree.nodes)
      expect(again.trajectories).toEqual(tree.trajectories)
    }
  })

  it('H4: keep their numbers, whatever digits a secret has, and no secret in a text', () => {
    keepSecret('40718293')
    const header = { entropy: 0.40718293, text: 'it is 40718293', count: 40718293 }
    const again = decodeFrame(encodeFrame({ header, arrays: [] }), 0)
    expect(again.header).toEqual({ ...header, text: 'it is [redacted]' })
  })

  it('of a journal hold what any writer of JSON would have put there, long texts included', () => {
    const long = 'é "漢"\n'.repeat(100)
    const parts = [{ type: 'text', text: long }] as const
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: long } } as const
    const said: readonly Message[] = [
      { role: 'system', content: long },
      { role: 'user', content: parts },
      { role: 'assistant', content: null, reasoning_content: long, tool_calls: [call] },
      { role: 'tool', content: `${long}.`, tool_call_id: 'a' },
    ]
    const made = { turn: 0, id: 'a', tool: 'f', seconds: 0.25 }
    const calls = [
      { ...made, input: { at: { deep: [long] }, when: new Date(0) }, output: 'short' },
      { ...made, input: long, output: long },
      { ...made, input: { count: 3 }, output: 'short' },
    ]
    const events = [{ kind: 'guard', turn: 0, detail: long }]
    const views = [{ turn: 0, by: 'a condenser', shown: said, from: 1 }]
    for (let seed = 0; seed < 40; seed++) {
      const { trajectories, ...rest } = randomTree(seed)
      const more = seed % 2 === 0 ? {} : { messages: said, calls, events, views, report: { long } }
      const tree: Tree = { ...rest, trajectories: trajectories.map(each => ({ ...each, ...more })) }
      const { header, arrays } = treeToFrame(tree)
      const plain = JSON.parse(JSON.stringify({ kind: 'tree', tree: header })) as object
      const again = decodeFrame(encodeFrame(treeToRunFrame(tree)), 0)
      expect(again.header).toEqual(plain)
      expect(again.arrays).toEqual(arrays)
    }
  })

  it('refuse damage with its place and reason', () => {
    const bytes = store(2)
    const { below } = dice(7)
    for (let trial = 0; trial < 50; trial++) {
      const copy = Buffer.from(bytes)
      const at = 8 + below(bytes.length - 8)
      copy[at] = copy[at]! ^ (1 + below(255))
      expect(() => decodeFrame(copy, 77)).toThrow(
        /damaged frame at byte 77: checksum is [0-9a-f]+, not [0-9a-f]+/,
      )
    }
  })

  it('keep arrays of every kind, empty ones included', () => {
    const arrays = [
      new Int32Array(0),
      Float32Array.of(0.1),
      Float64Array.of(1e-300),
      Uint8Array.of(1, 2, 3),
    ]
    const bytes = encodeFrame({ header: { text: '\ud800 é 漢' }, arrays })
    const frame = decodeFrame(bytes, 0)
    expect(frame).toEqual({ header: { text: '\ud800 é 漢' }, arrays })
  })

  it('keep long texts as they are, each once, and leave the header alone', () => {
    const long = 'é "漢"\n\u0000'.repeat(100)
    const half = `${'x'.repeat(500)}\ud800`
    const said = { role: 'tool', content: long }
    const own = JSON.parse(`{"__proto__": ${JSON.stringify(long)}, "": null}`) as object
    const header = { said: [said, null, half], again: { ...said }, own, when: new Date(0) }
    const before = JSON.stringify(header)
    const bytes = encodeFrame({ header, arrays: [Uint8Array.of(1, 2, 3)] })
    expect(JSON.stringify(header)).toBe(before)
    expect(JSON.stringify(decodeFrame(bytes, 0).header)).toBe(before)
    expect(bytes.toString('utf8').split(long)).toHaveLength(2)
    expect(decodeFrame(encodeFrame({ header: long, arrays: [] }), 0).header).toBe(long)
  })

  it('put texts only where some were left out', () => {
    const texts = ['text']
    expect(putTexts({ a: [null] }, texts, [[['a', 0], 0]])).toEqual({ a: ['text'] })
    for (const places of [
      [[['__proto__', 'toString'], 0]],
      [[['constructor'], 0]],
      [[['a', 1], 0]],
      [[['a', 'length'], 0]],
      [[['a', 0], 7]],
      [[['a', 0], 'length']],
      [[['a', 0, 'x'], 0]],
      [['a', 0]],
      null,
    ]) {
      expect(() => putTexts({ a: [null] }, texts, places)).toThrow(TypeError)
    }
  })
})

it('what JSON cannot hold is written as text, and only that', () => {
  const inner = { count: 5n, list: [1, 2] }
  const outer: Record<string, unknown> = { inner, again: inner }
  outer.self = outer
  const plain = { count: '5', list: [1, 2] }
  expect(JSON.parse(toJson(outer))).toEqual({ inner: plain, again: plain, self: '[itself]' })
})
