import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Filter, Group } from '../../base/core/group.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { RunEvent } from '../watch/events.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import { rollIntoRun } from './open-run-folder.ts'
import { type RollParts, rollGroups } from './roll-groups.ts'

const renderer = await openByteRenderer()
const end = renderer.stopIds[0]!
const tasks = Array.from({ length: 60 }, (_, id) => ({ id, prompt: `task ${id}`, answer: 'x' }))

/** Drops every group whose task is not a multiple of three. */
const thirds: Filter = {
  name: 'thirds',
  judge: group =>
    new Map(
      Number(group.task) % 3 === 0
        ? []
        : group.members.map(({ trajectory }) => [
            trajectory.id,
            { reason: 'not a third', from: 'loss' } as const,
          ]),
    ),
}

function partsOf(more: Partial<RollParts>, delay: (task: number) => number = () => 0) {
  const { policy, counts } = openCountingPolicy({
    length: () => 5,
    delay: ({ key }) => delay(Number(key.task)),
    end,
  })
  const heard: RunEvent[] = []
  const parts: RollParts = {
    environment: singleTurn(),
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    reward: { member: ({ trajectory }) => Number(trajectory.id.split('/')[1]) },
    group: 2,
    concurrency: 16,
    listen: event => heard.push(event),
    ...more,
  }
  return { parts, counts, heard }
}

async function take(groups: AsyncGenerator<Group>) {
  const taken: string[] = []
  try {
    for await (const group of groups) taken.push(group.task)
  } catch (error) {
    if (error instanceof RunStoppedError) return { taken, error }
    throw error
  }
  return { taken, error: undefined }
}

describe('a quota', () => {
  it('is refilled for what filters empty, and ends the run when it is met', async () => {
    const { parts, counts } = partsOf({ keep: 5, filters: [thirds] })
    const { taken, error } = await take(rollGroups(tasks, parts))
    expect(taken.filter(task => Number(task) % 3 === 0)).toHaveLength(5)
    expect(error?.kind).toBe('keep')
    expect(counts.requests).toBeLessThanOrEqual(2 * 15)
  })

  it('gives up refilling at its limit', async () => {
    const none: Filter = {
      ...thirds,
      judge: group => thirds.judge({ ...group, task: '1' as never }),
    }
    const { parts, counts } = partsOf({ keep: 4, refill: 1, filters: [none] })
    const { taken, error } = await take(rollGroups(tasks, parts))
    expect([taken.length, counts.requests, error?.kind]).toEqual([8, 16, 'refill'])
    expect(error?.message).toContain('8 groups were rolled for 4 wanted, and filters left 0')
  })

  it('with over-sampling does not wait for the slow, whose attempts go on when it is resumed', async () => {
    const out = join(mkdtempSync(join(tmpdir(), 'espalier-quota-')), 'run')
    // Whoever waited for it would wait for ever.
    const slow = (task: number): number => (task === 1 ? Number.POSITIVE_INFINITY : 0)
    const { parts, heard } = partsOf({ keep: 6, overSample: 1.5 }, slow)
    const record = { out, kind: 'roll', config: {} }
    const { taken } = await take(rollIntoRun(tasks, parts, record))
    expect(taken).toHaveLength(6)
    expect(taken).not.toContain('1')
    expect(heard.find(({ kind }) => kind === 'early-stop')).toMatchObject({ kept: 6 })
    expect(await readManifest(out)).toMatchObject({
      status: 'stopped',
      reason: expect.stringContaining('6 groups are kept'),
    })
    // Without over-sampling all that are begun are waited for, whoever is first.
    const again = partsOf({ keep: 20 })
    const { taken: more } = await take(
      rollIntoRun(tasks, again.parts, { ...record, resumes: true }),
    )
    expect(more).toContain('1')
    await using reader = await openRunReader(out)
    expect(reader.usage.kept).toBeGreaterThanOrEqual(20)
  })
})
