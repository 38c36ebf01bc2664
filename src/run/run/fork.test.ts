import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { acting, book, page, settingsOf } from '../../../test/long-book.ts'
import { call, dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import type { Environment } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { Policy, TokenSample } from '../../base/core/policy.ts'
import { disposalSeconds } from '../../base/core/process/deadline.ts'
import { idsTo, lengthTo } from '../../base/core/tree.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { keywordCondenser } from '../../engine/condensers/keyword.ts'
import { keyValue } from '../../engine/environments/built-in/key-value.ts'
import { environment } from '../../engine/environments/environment.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { groupRows } from '../rows/row-record.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { type ForkAt, forkTrajectory, parseForkAt } from './fork.ts'
import { rollIntoRun } from './open-run-folder.ts'
import type { RollParts } from './roll-groups.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })
const folder = mkdtempSync(join(tmpdir(), 'espalier-fork-'))
let count = 0
const scratch = (): string => join(folder, String(count++))

/** A policy that puts something into the store by its seed, until it answers. */
function storing(): Policy {
  const policy = dicePolicy(renderer)
  const draw = (seed: number, maxTokens: number, prompt: number): TokenSample => {
    const next = random(seedOf('store', seed))
    const pick = (): string => String(Math.floor(next() * 5))
    const said =
      next() < 0.7 ? call('put', { key: pick(), value: pick() }) : `done ${pick()}<|im_end|>`
    const ids = renderer.tokenizer.encode(said).slice(0, maxTokens)
    return tokenSample(ids, { prompt })
  }
  return {
    ...policy,
    sample: async ({ seed, maxTokens, prompt }) => draw(seed, maxTokens, prompt.ids.length),
    sampleSeveral: async ({ maxTokens, prompt }, seeds) =>
      seeds.map(seed => draw(seed, maxTokens, prompt.ids.length)),
  }
}

function partsOf(world: Environment = keyValue()): RollParts {
  return {
    environment: world,
    policy: storing(),
    renderer,
    estimate: makeEstimate('grpo'),
    group: 3,
    seed: 4,
    limits: { turns: 8 },
  }
}

const tasks = [0, 1].map(id => ({ id, prompt: 'Put something in.', store: { a: 'b' }, want: {} }))

async function roll(parts: RollParts): Promise<string> {
  const out = scratch()
  for await (const _ of rollIntoRun(tasks, parts, { out, kind: 'roll', config: {} }));
  return out
}

async function groupsOf(run: string): Promise<readonly Group[]> {
  const groups: Group[] = []
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) groups.push(group)
  return groups
}

const run = await roll(partsOf())
const groups = await groupsOf(run)
const members = groups.flatMap(group => group.members)
const long = members.find(
  ({ trajectory }) => trajectory.turns.length >= 3 && trajectory.outcome.kind === 'completed',
)!
const fork = (at: ForkAt, more: { edit?: Int32Array; samples?: number } = {}, parts = partsOf()) =>
  forkTrajectory(run, parts, {
    id: long.trajectory.id,
    at,
    samples: 4,
    out: scratch(),
    config: {},
    ...more,
  })

describe('a forked trajectory', () => {
  it('is found by the end of its id, where no other ends so', async () => {
    const out = scratch()
    const named = [{ ...tasks[0]!, id: 'desk/train/7' }]
    for await (const _ of rollIntoRun(named, partsOf(), { out, kind: 'roll', config: {} }));
    const at = { kind: 'turn', turn: 0 } as const
    const options = { at, samples: 1, config: {} }
    const short = { ...options, id: '7/0/0', out: scratch() }
    const { group } = await forkTrajectory(out, partsOf(), short)
    expect(group.id).toBe('desk/train/7')
    await expect(
      forkTrajectory(out, partsOf(), { ...options, id: '8/0/0', out: scratch() }),
    ).rejects.toThrow('no trajectory "8/0/0"')
  })

  it.each([0, 1, 2])(
    '[R5] goes on at turn %i from its tokens, its messages and its world',
    async turn => {
      const { group, given, value, before } = await fork({ kind: 'turn', turn })
      const { tree, trajectory } = long
      const begun = trajectory.turns[turn]!
      const prefix = idsTo(tree, tree.nodes[begun.from]!.parent)
      expect(given).toBe(prefix.length)
      expect(before).toBe(long.reward.total)
      expect(value).toMatchObject({ samples: 4 })
      expect(new Set(group.members.map(member => member.tree)).size).toBe(1)
      expect(group.members).toHaveLength(4)
      const puts = trajectory.calls.filter(record => record.turn < turn)
      for (const member of group.members) {
        const path = idsTo(member.tree, member.trajectory.end)
        expect([...path.slice(0, prefix.length)]).toEqual([...prefix])
        expect(member.trajectory.messages.slice(0, begun.messages)).toEqual(
          trajectory.messages.slice(0, begun.messages),
        )
        expect(member.trajectory.calls.slice(0, puts.length)).toEqual(puts)
        expect(member.trajectory.report).toEqual({ store: stored(member.trajectory.calls) })
      }
      // Different samples, as their seeds differ.
      expect(
        new Set(group.members.map(each => JSON.stringify(each.trajectory.messages))).size,
      ).toBeGreaterThan(1)
    },
  )

  it('[R5] trains nothing that came before, and all that came after', async () => {
    const { group, given } = await fork({ kind: 'turn', turn: 2 })
    const rows = groupRows(group)
    expect(rows.length).toBeGreaterThan(0)
    for (const { row } of rows) {
      expect(row.mask.slice(0, given).every(bit => bit === 0)).toBe(true)
      expect(
        row.origins.filter(({ end }) => end <= given).every(({ value }) => value !== 'sampled'),
      ).toBe(true)
    }
    const trained = rows.reduce((sum, { row }) => sum + row.mask.filter(Boolean).length, 0)
    const sampled = group.members.reduce((sum, { trajectory }) => sum + trajectory.usage.sampled, 0)
    expect(trained).toBe(sampled)
  })

  it('[R5] goes on inside a turn, whose first tokens are given', async () => {
    const { tree, trajectory } = long
    const last = trajectory.turns.length - 1
    const start = tree.nodes[trajectory.turns[last]!.from]!.start
    const at = start + 2
    const text = renderer.tokenizer.encode('!<|im_end|>')
    const parts = partsOf()
    const ending = { ...storing(), ...answering(text) }
    const { group, turn } = await fork(
      { kind: 'token', token: at },
      {},
      { ...parts, policy: ending },
    )
    expect(turn).toBe(last)
    const head = renderer.decode(idsTo(tree, trajectory.end).slice(start, at))
    for (const member of group.members) {
      const said = member.trajectory.messages[trajectory.turns[last]!.messages]!
      expect(said.content).toBe(`${head}!`)
      expect(member.trajectory.usage.sampled).toBe(text.length)
      expect(lengthTo(member.tree, member.trajectory.end)).toBe(at + text.length)
    }
  })

  it('[R5] takes an edit that ends the turn as what was done, and observes it', async () => {
    const edit = renderer.tokenizer.encode(call('put', { key: 'x', value: 'edited' }))
    const { group, given } = await fork({ kind: 'turn', turn: 1 }, { edit })
    for (const { trajectory, tree } of group.members) {
      expect(trajectory.calls.some(record => record.turn === 1 && record.tool === 'put')).toBe(true)
      expect(trajectory.calls[1]!.input).toEqual({ key: 'x', value: 'edited' })
      const node = tree.nodes[trajectory.turns[1]!.from]!
      expect(node.segment.origin).toBe('observed')
      expect(node.start + edit.length).toBe(given)
    }
  })

  it('continues an edit that does not end the turn', async () => {
    const edit = renderer.tokenizer.encode('I think ')
    const policy = { ...storing(), ...answering(renderer.tokenizer.encode('so.<|im_end|>')) }
    const { group } = await fork({ kind: 'turn', turn: 0 }, { edit }, { ...partsOf(), policy })
    for (const { trajectory } of group.members) {
      expect(trajectory.messages.at(-1)!.content).toBe('I think so.')
    }
  })

  it('[S1] is the same for the same seed', async () => {
    const one = await fork({ kind: 'turn', turn: 1 })
    const two = await fork({ kind: 'turn', turn: 1 })
    const saidIn = ({ group }: typeof one) =>
      group.members.map(({ trajectory }) => trajectory.messages)
    expect(saidIn(one)).toEqual(saidIn(two))
  })

  it('names places that there are', async () => {
    await expect(fork({ kind: 'turn', turn: 99 })).rejects.toThrow('it can be forked at 0 to')
    await expect(fork({ kind: 'token', token: 0 })).rejects.toThrow('turn 0 has t')
    expect(parseForkAt('t12')).toEqual({ kind: 'token', token: 12 })
    expect(() => parseForkAt('-1')).toThrow('no place "-1"')
  })
})

function answering(ids: Int32Array): Pick<Policy, 'sample' | 'sampleSeveral'> {
  const sample = (): TokenSample => tokenSample(ids)
  return { sample: async () => sample(), sampleSeveral: async (_, seeds) => seeds.map(sample) }
}

/** What the store holds after these calls. */
function stored(calls: readonly { readonly input: unknown }[]): Record<string, string> {
  const entries = new Map([['a', 'b']])
  for (const { input } of calls) {
    const { key, value } = input as { key: string; value: string }
    entries.set(key, value)
  }
  return Object.fromEntries([...entries].sort())
}

describe('a world that does not repeat itself', () => {
  it('[R4] gives no tree but a failure that names the turn', async () => {
    let drawn = 0
    const moody = environment({
      name: 'moody',
      task: z.object({ prompt: z.string() }),
      open: ({ data }) => ({
        opening: [{ role: 'user' as const, content: data.prompt }],
        tools: { put: tool({ inputSchema: z.object({}), execute: () => `${drawn++}` }) },
      }),
      reward: { one: () => 1 },
    })
    const out = await roll(partsOf(moody))
    const [group] = await groupsOf(out)
    const { trajectory } = group!.members.find(each => each.trajectory.turns.length >= 2)!
    const forked = await forkTrajectory(out, partsOf(moody), {
      id: trajectory.id,
      at: { kind: 'turn', turn: 1 },
      samples: 2,
      out: scratch(),
      config: {},
    })
    expect(forked.value).toBeUndefined()
    expect(forked.group.unscored[0]!.outcome).toMatchObject({
      kind: 'failed',
      boundary: 'environment',
      message: expect.stringContaining('turn 0'),
    })
  })
})

describe('a trajectory that was condensed', () => {
  const condense = settingsOf(keywordCondenser({ minimum: 100 }))
  const reading = (speak: Parameters<typeof acting>[0]): RollParts => ({
    ...partsOf(book),
    policy: acting(speak),
    group: 1,
    limits: { turns: 12, context: 1500 },
    condense,
  })

  const turning = reading(({ key }) =>
    key.turn < 8 ? call('turn_page', {}) : 'The end.<|im_end|>',
  )

  async function rollBook() {
    const out = scratch()
    const record = { out, kind: 'roll', config: {} }
    const books = [{ id: 0, pages: 9 }]
    for await (const _ of rollIntoRun(books, turning, record));
    const [group] = await groupsOf(out)
    return { out, ...group!.members[0]! }
  }

  it('goes on with its recall, and with what was condensed before', async () => {
    const { out, trajectory, tree } = await rollBook()
    const { turn } = trajectory.views![0]!
    const recalling = reading(({ key }) =>
      key.turn === turn ? call('recall', { block: 1 }) : 'The end.<|im_end|>',
    )
    const forked = await forkTrajectory(out, recalling, {
      id: trajectory.id,
      at: { kind: 'turn', turn },
      samples: 2,
      out: scratch(),
      config: {},
    })
    expect(forked.group.members).toHaveLength(2)
    for (const member of forked.group.members) {
      expect(member.tree.tools).toEqual(tree.tools)
      expect(member.trajectory.calls.at(-1)).toMatchObject({
        turn,
        tool: 'recall',
        isRecall: true,
        output: page(0),
      })
    }
  })

  it('is condensed on when it grows', async () => {
    const { out, trajectory } = await rollBook()
    const at = { kind: 'turn', turn: 2 } as const
    const forking = { id: trajectory.id, at, samples: 1, out: scratch(), config: {} }
    const forked = await forkTrajectory(out, turning, forking)
    const [member] = forked.group.members
    expect(trajectory.views!.length).toBeGreaterThan(0)
    expect(member!.trajectory.views).toEqual(trajectory.views)
  })
})

describe('worlds that hang', () => {
  const { id } = long!.trajectory
  const fork = (parts: RollParts, out: string) =>
    forkTrajectory(run, parts, { id, at: { kind: 'turn', turn: 1 }, samples: 2, out, config: {} })

  it('while they are opened are left when the fork is stopped, and its run says why', async () => {
    const stop = new AbortController()
    const hanging: Environment = {
      ...keyValue(),
      open() {
        queueMicrotask(() => stop.abort(new Error('interrupted')))
        return new Promise(() => {})
      },
    }
    const out = scratch()
    await expect(fork({ ...partsOf(hanging), signal: stop.signal }, out)).rejects.toThrow(
      'interrupted',
    )
    expect(await readManifest(out)).toMatchObject({
      status: 'stopped',
      reason: expect.stringContaining('interrupted') as string,
    })
  })

  it('while they are disposed of are left after a while, and what they gave counts', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const inner = keyValue()
    let disposing = 0
    const hanging: Environment = {
      ...inner,
      async open(task, opening) {
        const { fork: _fork, ...world } = await inner.open(task as never, opening)
        const dispose = (): Promise<void> => {
          disposing++
          return new Promise<void>(() => {})
        }
        return { ...world, [Symbol.asyncDispose]: dispose }
      },
    }
    const forked = fork(partsOf(hanging), scratch())
    await vi.waitUntil(() => disposing === 2)
    await vi.advanceTimersByTimeAsync(disposalSeconds * 1000)
    expect((await forked).value?.samples).toBe(2)
  })
})
