import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { agent } from '../../engine/capture/agent.ts'
import { functionSpeaker, speakingPolicy } from '../../engine/policies/speaking-policy.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { Rollouts } from './rollouts.ts'
import type { FinishedGroup } from './rollouts-api.ts'
import type { RolloutsOptions } from './rollouts-options.ts'
import { openRolloutsRecord } from './rollouts-record.ts'

const renderer = await openByteRenderer()
const opened: Rollouts[] = []
afterAll(async () => {
  for (const rollouts of opened) await rollouts[Symbol.asyncDispose]()
})

/** One hides a number, the other seeks it; what one wins the other loses. */
const guess = agent({
  name: 'guess',
  seats: ['hider', 'seeker'],
  task: z.object({ most: z.int() }),
  async run({ task: { most }, seats, signal }) {
    const ask = { role: 'user', content: `A number up to ${most}.` } as const
    const hidden = await seats.hider.speaker.say([ask], { signal })
    const found = await seats.seeker.speaker.say([ask], { signal })
    return { isFound: hidden.message.content === found.message.content }
  },
  reward: { won: ({ seat, report }) => (report.isFound === (seat === 'seeker') ? 1 : -1) },
})

async function start(more: Partial<RollParts> = {}, options: Partial<RolloutsOptions> = {}) {
  const parts: RollParts = {
    environment: guess as RollParts['environment'],
    policy: script(renderer, ['3<|im_end|>', '3<|im_end|>']),
    renderer,
    estimate: makeEstimate('grpo'),
    group: 2,
    ...more,
  }
  const rollouts = new Rollouts({
    parts,
    openPolicy: () => Promise.reject(new Error('there is no other')),
    findTask: async () => undefined,
    ...options,
  })
  opened.push(rollouts)
  await rollouts.restore()
  return rollouts
}

async function takeAll(rollouts: Rollouts, id: string): Promise<readonly FinishedGroup[]> {
  const all: FinishedGroup[] = []
  for (;;) {
    const after = all.at(-1)?.cursor ?? 0
    const { groups, state } = await rollouts.take(id, { after, wait: 10 })
    all.push(...groups)
    if (groups.length === 0 && state !== 'running') return all
  }
}

const body = { id: 'game', tasks: [{ most: 9 }, { most: 8 }] }
const names = ['game/0@hider', 'game/0@seeker', 'game/1@hider', 'game/1@seeker']

describe('rollouts of attempts with several seats', () => {
  it('give a group for every seat, with its name and its reward', async () => {
    const rollouts = await start()
    expect(await rollouts.submit(body)).toMatchObject({ groups: 4 })
    const groups = await takeAll(rollouts, 'game')
    expect(groups.map(({ group }) => group).sort()).toEqual(names)
    for (const { group, index, seat, rewards, rows } of groups) {
      expect(group).toBe(`game/${index}@${seat}`)
      expect(rewards).toEqual(seat === 'seeker' ? [1, 1] : [-1, -1])
      expect(rows.map(row => row.seat)).toEqual([seat, seat])
    }
    expect(rollouts.status('game')).toMatchObject({ state: 'finished', finished: 4, taken: 4 })
    expect(rollouts.counts).toMatchObject({ queued: 0, running: 0, waiting: 0, finished: 4 })
  })

  it('give none for a seat whose player does not learn', async () => {
    const player = { policy: speakingPolicy(functionSpeaker('three', () => '3')), renderer }
    const rollouts = await start({ seats: new Map([['hider', player]]) })
    expect(await rollouts.submit(body)).toMatchObject({ groups: 2 })
    const groups = await takeAll(rollouts, 'game')
    expect(groups.map(({ seat }) => seat)).toEqual(['seeker', 'seeker'])
  })

  it('are rolled although there is room for fewer results than a task has seats', async () => {
    const rollouts = await start({}, { results: 1 })
    await rollouts.submit(body)
    expect(await takeAll(rollouts, 'game')).toHaveLength(4)
  })

  it('P1: keep their cursors when the service is started again', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'espalier-seats-')), 'submissions.jsonl')
    const groups = new Map<string, Group>()
    const writer = {
      writeTree: async () => undefined,
      writeGroup: async (group: Group) => void groups.set(group.id, group),
      writeSent: async () => undefined,
      complete: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    }
    const begin = async (): Promise<Rollouts> => {
      const record = await openRolloutsRecord(path)
      return await start({ writer }, { record, findGroup: async id => groups.get(id) })
    }
    const before = await begin()
    await before.submit(body)
    await vi.waitFor(() => expect(before.status('game').finished).toBe(4), 30_000)
    const all = (await before.take('game')).groups
    await before.take('game', { after: 1 })
    await vi.waitFor(() => expect(readFileSync(path, 'utf8')).toContain('"kind":"taken"'))
    // One group never reached the disk: it is rolled again, the others are as they were.
    groups.delete(all[3]!.group)
    const after = await begin()
    const rest = await takeAll(after, 'game')
    expect(rest.slice(0, 2)).toEqual(all.slice(1, 3))
    expect(rest[2]).toMatchObject({ cursor: 4, group: all[3]!.group, rewards: all[3]!.rewards })
    expect(rest).toHaveLength(3)
    expect(after.status('game')).toMatchObject({ groups: 4, finished: 4 })
  })
})
