import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readers } from '../../src/run/sinks/readers/registry.ts'
import { encodeFrame } from '../../src/run/store/frame.ts'
import { journalMagic, readJournal } from '../../src/run/store/read-journal.ts'
import { type Attack, damagedBytes, damagedJson, hold, oneOf } from './attack.ts'

const folder = (): string => mkdtempSync(join(tmpdir(), 'espalier-attack-'))

/** Journals with bytes damaged: frames that were written, in order, and then an end or a refusal. */
export const journals: Attack = {
  name: 'journals',
  promise: 'P1',
  share: 10,
  async open() {
    const path = join(folder(), 'journal.frames')
    const frames = Array.from({ length: 5 }, (_, index) => ({
      header: { kind: 'x', index },
      arrays: [Int32Array.of(index, 7), Float32Array.of(index / 2)],
    }))
    const whole = Buffer.concat([journalMagic, ...frames.map(frame => encodeFrame(frame))])
    const written = new Set(frames.map(({ header }) => JSON.stringify(header)))
    return async draw => {
      writeFileSync(path, damagedBytes(whole, draw))
      let last = -1
      try {
        for await (const { frame } of readJournal(path)) {
          const header = frame.header as { readonly index: number }
          hold(written.has(JSON.stringify(header)), `a frame that nobody wrote: ${header}`)
          last = header.index
        }
      } catch (cause) {
        const message = (cause as Error).message
        hold(message.includes(path), `${message} names no place, behind frame ${last}`)
      }
    }
  },
}

const line = {
  ...{ run: 'r', group: 'g', tree: 'g/0', trajectory: 'g/0/0', row: 0, rows: 1, task: 't' },
  ...{ member: 0, ids: [1, 2, 3], mask: [0, 1, 1], logprobs: [0, -1, -2], reward: 1 },
  ...{ origins: [[0, 1, 'prompt']], versions: [[1, 3, 0]], rewards: { right: 1 }, advantage: 0.5 },
  ...{ messages: [{ role: 'user', content: 'hi' }], tools: [], outcome: { kind: 'completed' } },
  ...{ prompt_ids: [1], completion_ids: [2, 3], tokens: [1, 2, 3], response: 'x', prompt: 'y' },
}

/** Rows of other systems with a place damaged: read, or refused in words. */
export const archives: Attack = {
  name: 'archives',
  promise: 'O1',
  share: 10,
  async open() {
    return async draw => {
      const reader = oneOf(readers, draw)
      const records = Array.from({ length: 2 }, () => damagedJson(line, draw))
      async function* all() {
        for (const each of records) yield each as never
      }
      try {
        for await (const read of reader.read(all())) hold(read !== undefined, reader.name)
      } catch (cause) {
        const isTold = cause instanceof Error && cause.message !== ''
        hold(isTold && !(cause instanceof RangeError), `${reader.name}: ${String(cause)}`)
      }
    }
  },
}
