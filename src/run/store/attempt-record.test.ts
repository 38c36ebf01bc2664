import { describe, expect, it } from 'vitest'
import type { TreeId } from '../../base/core/ids.ts'
import { sampled } from '../../base/core/segment.ts'
import { type AttemptEntry, entriesFromFrame, entriesToFrame } from './attempt-record.ts'
import { decodeFrame, encodeFrame, type Frame, type WrittenFrame } from './frame.ts'

const tree = 'task/0' as TreeId
const written = (frame: Frame | WrittenFrame): Frame => decodeFrame(encodeFrame(frame), 0)

function sampleOf(ids: readonly number[]): Extract<AttemptEntry, { kind: 'sample' }> {
  const segment = sampled({
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(ids, id => -id),
    entropies: Float32Array.from(ids, id => id / 2),
    version: { from: 1, to: 2 },
  })
  const usage = { prompt: 3, sampled: ids.length, seconds: 0.5 }
  const sample = { kind: 'tokens', segment, finish: { kind: 'stop' }, usage } as const
  return { kind: 'sample', tree, key: `7:3:${ids.length}`, sample }
}

const step: AttemptEntry = {
  kind: 'step',
  tree,
  turn: 0,
  transition: { messages: [{ role: 'user', content: 'go on' }], done: false, calls: [] },
} as unknown as AttemptEntry

describe('the record of an attempt', () => {
  it('[P1] gives back entries that were written together, each with its own numbers', () => {
    const entries = [sampleOf([5, 6, 7]), step, sampleOf([8]), { kind: 'restart', tree } as const]
    expect(entriesFromFrame(written(entriesToFrame(entries)))).toEqual(entries)
  })

  it('[P1] reads frames of one entry, as format 1 has them', () => {
    const entry = sampleOf([5, 6, 7])
    const { segment, ...rest } = entry.sample as Extract<typeof entry.sample, { kind: 'tokens' }>
    const tokens = { basis: segment.basis, version: segment.version, logprobs: 1, entropies: 2 }
    const header = { ...entry, sample: { ...rest, tokens } }
    const arrays = [segment.ids, segment.logprobs!, segment.entropies!]
    expect(entriesFromFrame(written({ header, arrays }))).toEqual([entry])
    expect(entriesFromFrame(written({ header: step, arrays: [] }))).toEqual([step])
  })
})
