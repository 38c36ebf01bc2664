import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { environment } from '../../engine/environments/environment.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { exportRun } from '../exchange/export.ts'
import { readJournal } from '../store/read-journal.ts'
import { readManifest, runPaths } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { rollIntoRun } from './open-run-folder.ts'
import type { RollParts } from './roll-groups.ts'

const renderer = await openByteRenderer()
const end = renderer.stopIds[0]!
const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-run-')), 'run')

/** A conversation of four turns with a user outside. */
function talk(asked: string[]) {
  return environment({
    name: 'talk',
    task: z.object({ prompt: z.string() }),
    open({ data }) {
      let turns = 0
      return {
        opening: [{ role: 'user', content: data.prompt }],
        respond: {
          effects: 'outside',
          respond(text) {
            asked.push(text)
            return ++turns < 4 ? `turn ${turns}` : undefined
          },
          recall: () => void turns++,
        },
      }
    },
    reward: { turns: ({ trajectory }) => trajectory.turns.length },
  })
}

const tasks = Array.from({ length: 12 }, (_, id) => ({ id, prompt: `task ${id}` }))

function partsOf(asked: string[], more: Partial<RollParts> = {}) {
  const { policy, counts } = openCountingPolicy({ length: ({ seed }) => 4 + (seed % 9), end })
  const parts: RollParts = {
    environment: talk(asked),
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    group: 2,
    concurrency: 6,
    seed: 3,
    ...more,
  }
  return { parts, counts }
}

async function rollInto(out: string, parts: RollParts, resumes = false): Promise<number> {
  let groups = 0
  const record = { out, kind: 'roll', config: {}, resumes }
  for await (const _ of rollIntoRun(tasks, parts, record)) groups++
  return groups
}

async function rowsOf(run: string): Promise<number[][]> {
  const reader = await openRunReader(run)
  const rows: number[][] = []
  for await (const { group } of reader.groups()) {
    for (const { tree } of group.members)
      rows.push(tree.nodes.flatMap(({ segment }) => [...segment.ids]))
  }
  await reader[Symbol.asyncDispose]()
  return rows
}

const reference = scratch()
const undisturbed = partsOf([])
await rollInto(reference, undisturbed.parts)

describe('a run', () => {
  it('that a budget stopped goes on with a larger one, and pays for nothing twice', async () => {
    const run = scratch()
    const asked: string[] = []
    const { parts, counts } = partsOf(asked)
    await rollInto(run, { ...parts, budget: { tokens: 300 } })
    expect(await readManifest(run)).toMatchObject({
      status: 'stopped',
      reason: expect.stringContaining('the budget of 300 tokens is spent'),
    })
    expect(counts.sampled).toBe(300)
    const before = counts.sampled
    await rollInto(run, { ...parts, budget: { tokens: 400 } }, true)
    // The sample that the first budget cut is drawn again; all else is kept.
    expect(counts.sampled - before).toBeLessThanOrEqual(100 + 12)
    await rollInto(run, parts, true)
    expect(await readManifest(run)).toMatchObject({ status: 'finished' })
    expect(existsSync(runPaths(run).unfinished)).toBe(false)
    expect(await rowsOf(run)).toEqual(await rowsOf(reference))
    expect(counts.sampled).toBeLessThan(undisturbed.counts.sampled + 8 * 12)
  })

  it('does not ask users again for what they had answered', async () => {
    const run = scratch()
    const asked: string[] = []
    const { parts } = partsOf(asked)
    await rollInto(run, { ...parts, budget: { tokens: 300 } })
    await rollInto(run, parts, true)
    expect(asked.length).toBe(12 * 2 * 4)
  })

  it('begins an attempt again where its world does not repeat itself', async () => {
    const run = scratch()
    let opened = 0
    const world = environment({
      name: 'moody',
      task: z.object({ prompt: z.string() }),
      async open({ data }) {
        const opening = [{ role: 'user', content: `${data.prompt} ${opened++}` } as const]
        return { opening, respond: () => (opened % 3 === 0 ? undefined : 'go on') }
      },
      reward: { one: () => 1 },
    })
    const { parts } = partsOf([], { environment: world as never })
    await rollInto(run, { ...parts, budget: { tokens: 100 } })
    await rollInto(run, parts, true)
    expect(await readManifest(run)).toMatchObject({ status: 'finished' })
    expect(await rowsOf(run)).toHaveLength(24)
  })

  it('that failed before an attempt was finished keeps what was sampled for it', async () => {
    const run = scratch()
    let isStuck = true
    let fail = (): void => {}
    const failed = new Promise<void>(resolve => {
      fail = resolve
    })
    const world = environment({
      name: 'stuck',
      task: z.object({ prompt: z.string() }),
      open({ data }) {
        let turns = 0
        return {
          opening: [{ role: 'user', content: data.prompt }],
          respond() {
            if (++turns === 1) return 'go on'
            if (!isStuck) return undefined
            fail()
            return new Promise<never>(() => {})
          },
        }
      },
      reward: { one: () => 1 },
    })
    const { parts, counts } = partsOf([], { environment: world as never, group: 1 })
    async function* broken() {
      yield tasks[0]!
      await failed
      throw new Error('the list of tasks broke')
    }
    const record = { out: run, kind: 'roll', config: {} }
    const rolling = async (): Promise<void> => {
      for await (const _ of rollIntoRun(broken(), parts, record));
    }
    await expect(rolling()).rejects.toThrow('the list of tasks broke')
    const before = counts.sampled
    expect(before).toBeGreaterThan(0)
    isStuck = false
    for await (const _ of rollIntoRun(tasks.slice(0, 1), parts, { ...record, resumes: true }));
    expect(await readManifest(run)).toMatchObject({ status: 'finished' })
    expect(counts.sampled).toBe(before)
  })

  it('refuses a folder that holds one, and a folder that is none', async () => {
    const { parts } = partsOf([])
    await expect(rollInto(reference, parts)).rejects.toThrow(
      /already holds a run: (`(npx )?espalier resume|name another)/,
    )
    await expect(rollInto(scratch(), parts, true)).rejects.toThrow(/is not a run|cannot be written/)
    await expect(rollInto('/proc/version/run', parts)).rejects.toThrow('cannot be written')
  })

  it('is exported from a folder whose journal has not been begun', async () => {
    const run = scratch()
    const { parts } = partsOf([])
    for await (const _ of rollIntoRun([], parts, { out: run, kind: 'roll', config: {} }));
    const { rows } = await exportRun(run, { to: 'jsonl', out: `${run}.jsonl` })
    expect(rows).toBe(0)
  })
})

it('a tree damaged while a run is read is told to who comes to its group, and to nobody who stops before it', async () => {
  const out = scratch()
  const { parts } = partsOf([])
  expect(await rollInto(out, parts)).toBe(12)
  await using reader = await openRunReader(out)
  const { journal } = runPaths(out)
  const bytes = readFileSync(journal)
  for await (const { frame, place } of readJournal(journal)) {
    if (!JSON.stringify(frame.header).includes('"task":"11","member":1')) continue
    bytes[place.offset + place.size - 1]! ^= 1
  }
  writeFileSync(journal, bytes)
  const read = async (most: number): Promise<number> => {
    let groups = 0
    for await (const _ of reader.groups()) if (++groups === most) break
    return groups
  }
  expect(await read(11)).toBe(11)
  await expect(read(12)).rejects.toThrow('checksum')
})
