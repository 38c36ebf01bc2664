import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { Counter } from '../../../test/counter.ts'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { type Policy, plainCapabilities } from '../../base/core/policy.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { Rollouts } from './rollouts.ts'
import type { RolloutsOptions } from './rollouts-options.ts'
import { openRolloutsRecord } from './rollouts-record.ts'

const renderer = await openByteRenderer()
const environment = calculator()
const opened: Rollouts[] = []
afterAll(async () => {
  for (const rollouts of opened) await rollouts[Symbol.asyncDispose]()
})

const task = (number: number) => ({ prompt: `${number} + 1`, answer: String(number + 1) })

/** A run folder as a service has it: the record of its submissions, and the groups of its journal. */
function openFolder(more: Partial<RollParts> = {}, same?: Folder) {
  const path =
    same?.path ?? join(mkdtempSync(join(tmpdir(), 'espalier-record-')), 'submissions.jsonl')
  const groups = same?.groups ?? new Map<string, Group>()
  const written: string[] = []
  const writer = {
    writeTree: async () => undefined,
    writeGroup: async (group: Group) => {
      written.push(group.id)
      groups.set(group.id, group)
    },
    writeSent: async () => undefined,
    complete: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
  const parts = {
    environment,
    policy: dicePolicy(renderer),
    renderer,
    estimate: makeEstimate('grpo'),
    group: 2,
    limits: { turns: 3 },
    writer,
    ...more,
  }
  /** Starts a service over the folder. The one before, if there is one, counts as killed. */
  const start = async (more: Partial<RolloutsOptions> = {}): Promise<Rollouts> => {
    const rollouts = new Rollouts({
      parts,
      openPolicy: async () => dicePolicy(renderer),
      findTask: async () => undefined,
      findGroup: async id => groups.get(id),
      record: await openRolloutsRecord(path),
      ...more,
    })
    opened.push(rollouts)
    await rollouts.restore()
    return rollouts
  }
  const text = (): string => readFileSync(path, 'utf8')
  return { path, groups, written, start, text }
}

interface Folder {
  readonly path: string
  readonly groups: Map<string, Group>
}

const asked = new Counter()

/** A policy that has said nothing when it is stopped. */
const silent: Policy = {
  name: 'silent',
  capabilities: plainCapabilities,
  async sample(_request, { signal }) {
    asked.raise()
    await once(signal, 'abort')
    throw signal.reason
  },
  [Symbol.asyncDispose]: async () => undefined,
}

/** Takes everything, until the service answers that nothing is left. */
async function takeAll(rollouts: Rollouts, id: string): Promise<number> {
  for (let cursor = 0; ; ) {
    const taken = await rollouts.take(id, { after: cursor, wait: 10 })
    cursor = taken.cursor
    if (taken.groups.length === 0 && taken.state !== 'running') return cursor
  }
}

describe('P1: after a restart', () => {
  const body = { id: 'big', tasks: [task(1), task(2), task(3)] }

  async function takenAndKilled() {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit(body)
    await takeAll(before, 'big')
    await vi.waitFor(() => expect(folder.text()).toContain('"kind":"taken","id":"big","cursor":3'))
    return folder
  }

  it('a submission that was completely taken is known: its last poll can be repeated, its groups stay', async () => {
    const folder = await takenAndKilled()
    const after = await folder.start()
    expect(await after.take('big', { after: 3, wait: 1 })).toEqual({
      groups: [],
      cursor: 3,
      state: 'finished',
    })
    expect(await after.submit(body)).toMatchObject({ state: 'finished', finished: 3, taken: 3 })
    await expect(after.submit({ ...body, tasks: [task(9)] })).rejects.toMatchObject({
      statusCode: 409,
    })
    expect(folder.written).toHaveLength(3)
  })

  it('that holds however often it is started, and the record has one line for it without its tasks', async () => {
    const folder = await takenAndKilled()
    await folder.start()
    expect(folder.text().split('\n')).toHaveLength(2)
    expect(folder.text()).not.toContain('1 + 1')
    const third = await folder.start()
    await expect(third.submit({ ...body, group: 4 })).rejects.toMatchObject({ statusCode: 409 })
    expect(await third.submit(body)).toMatchObject({ state: 'finished' })
  })

  it('what is left to take of others is still there when taken ones were shortened', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, id: 'half' })
    await vi.waitFor(() => expect(before.status('half').finished).toBe(3))
    await before.take('half', { after: 1 })
    await before.submit(body)
    await takeAll(before, 'big')
    await vi.waitFor(() => expect(folder.text()).toContain('"kind":"taken","id":"big","cursor":3'))
    await folder.start()
    const third = await folder.start()
    const rest = await third.take('half', { after: 1 })
    expect(rest.groups.map(({ cursor }) => cursor)).toEqual([2, 3])
    expect(await third.submit({ ...body, id: 'half' })).toMatchObject({ taken: 1 })
    expect(folder.written).toHaveLength(6)
  })

  it('groups have the cursors that clients saw, because a group is recorded before it is given', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, tasks: Array.from({ length: 12 }, (_, n) => task(n)) })
    const seen: { cursor: number; index: number }[] = []
    while (seen.length < 12) {
      const after = seen.length
      const { groups } = await before.take('big', { after, acknowledges: false, wait: 10 })
      seen.push(...groups)
      for (const { index } of groups) {
        expect(folder.text()).toContain(`{"kind":"finished","id":"big","index":${index}}`)
      }
    }
    const { groups } = await (await folder.start()).take('big')
    const order = (all: typeof seen) => all.map(({ cursor, index }) => [cursor, index])
    expect(order([...groups])).toEqual(order(seen))
  })

  it('a cancelled submission is still cancelled, a failed one still says why', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, id: 'stopped' })
    await before.cancel('stopped')
    expect(folder.text()).toContain('"cancelled"')
    const broken = await folder.start({
      weigh: () => {
        throw new Error('no such weights')
      },
    })
    await broken.submit({ ...body, id: 'broken' })
    await vi.waitFor(() => expect(folder.text()).toContain('no such weights'))
    const after = await folder.start()
    expect(after.status('stopped')).toMatchObject({ state: 'cancelled', groups: 3 })
    expect(after.status('broken')).toMatchObject({ state: 'failed', reason: 'no such weights' })
    await expect(after.submit({ ...body, id: 'broken', seed: 1 })).rejects.toThrow(/before/)
  })

  it('the same submission is the same one, also where the record hides a secret of it', async () => {
    keepSecret('swordfish-swordfish')
    const folder = openFolder()
    const secret = { id: 'quiet', tasks: [{ ...task(1), note: 'swordfish-swordfish' }] }
    const before = await folder.start()
    await before.submit(secret)
    await takeAll(before, 'quiet')
    await vi.waitFor(() => expect(folder.text()).toContain('"kind":"taken"'))
    expect(folder.text()).not.toContain('swordfish')
    const after = await folder.start()
    expect(await after.submit(secret)).toMatchObject({ state: 'finished' })
  })

  it('records of earlier services, which have no digests, are understood', async () => {
    const folder = openFolder()
    const lines = [
      { kind: 'submitted', submission: body },
      ...[0, 1, 2].map(index => ({ kind: 'finished', id: 'big', index })),
      { kind: 'ended', id: 'big', state: 'finished' },
      { kind: 'taken', id: 'big', cursor: 3 },
    ]
    writeFileSync(folder.path, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
    const after = await folder.start()
    expect(await after.submit(body)).toMatchObject({ state: 'finished', taken: 3 })
    await expect(after.submit({ ...body, seed: 2 })).rejects.toMatchObject({ statusCode: 409 })
  })

  it.each([
    ['{"kind":"finished","id', /submissions\.jsonl:2 is damaged: .*JSON/],
    ['null', /submissions\.jsonl:2 is damaged: /],
    ['{"kind":"submitted","submission":{"id":"x","tasks":[]}}', /:2 is damaged: tasks: Too small/],
  ])('H8: a record with a damaged line %s is refused with its place', async (line, words) => {
    const { path, start } = openFolder()
    const good = { kind: 'submitted', submission: body }
    writeFileSync(path, `${JSON.stringify(good)}\n${line}\n`)
    await expect(start()).rejects.toThrow(words)
  })

  it('a finished group is not replaced, even if the record of its submission is gone', async () => {
    const folder = await takenAndKilled()
    rmSync(folder.path)
    const after = await folder.start()
    await expect(after.submit({ ...body, tasks: [task(9)] })).rejects.toThrow(
      /the run has a group "big\/0" already/,
    )
    expect(folder.written).toHaveLength(3)
    expect(after.counts.queued).toBe(0)
  })

  it('H7: what an earlier service joined to half a line of a full disk is not lost', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, id: 'kept' })
    await takeAll(before, 'kept')
    const [submitted, ...others] = folder.text().split('\n')
    const half = JSON.stringify({ kind: 'submitted', submission: { ...body, id: 'lost' } })
    writeFileSync(folder.path, [half.slice(0, 70) + submitted, ...others].join('\n'))
    const after = await folder.start()
    expect(after.status('kept')).toMatchObject({ state: 'finished', finished: 3 })
    writeFileSync(folder.path, [submitted!.slice(1), ...others].join('\n'))
    await expect(folder.start()).rejects.toThrow('submissions.jsonl:1 is damaged')
  })

  it('H7: it goes on where it was, untaken groups and a torn last line included', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, id: 'kept' })
    await vi.waitFor(() => expect(before.status('kept').finished).toBe(3))
    const first = await before.take('kept', { max: 2 })
    await before.take('kept', { after: 1 })
    await vi.waitFor(() => expect(folder.text()).toContain('"taken"'))
    // Cut in the middle of a line, and one group never finished.
    appendFileSync(folder.path, '{"kind":"fini')
    folder.groups.delete('kept/2')
    const after = await folder.start()
    await vi.waitFor(() => expect(after.status('kept').finished).toBe(3))
    const rest = await after.take('kept', { after: 1 })
    expect(rest.groups.map(({ cursor }) => cursor)).toEqual([2, 3])
    const known = first.groups.find(({ cursor, index }) => cursor === 2 && index !== 2)
    if (known) expect(rest.groups[0]).toEqual(known)
    await expect(after.submit({ ...body, id: 'kept', seed: 1 })).rejects.toMatchObject({
      statusCode: 409,
    })
  })
})

describe('H7: a service that is started again', () => {
  const body = { id: 'big', tasks: [task(1), task(2), task(3)] }

  it('goes on with what was being rolled when it was stopped in order', async () => {
    const stop = new AbortController()
    const folder = openFolder({ policy: silent, signal: stop.signal })
    const before = await folder.start()
    await before.submit(body)
    await asked.reached(1)
    stop.abort(new Error('interrupted'))
    await before[Symbol.asyncDispose]()
    expect(folder.text()).not.toContain('"ended"')
    const after = await openFolder({}, folder).start()
    expect(await takeAll(after, 'big')).toBe(3)
  })

  it('gives what was not taken, although a group that was taken is lost', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit(body)
    await vi.waitFor(() => expect(before.status('big').finished).toBe(3), 30_000)
    const { groups } = await before.take('big')
    await before.take('big', { after: 1 })
    await vi.waitFor(() => expect(folder.text()).toContain('"taken"'), 30_000)
    folder.groups.delete(groups[0]!.group)
    const rest = await (await folder.start()).take('big', { after: 1 })
    expect(rest.groups).toEqual(groups.slice(1))
    expect(folder.written).toHaveLength(3)
  })

  it('needs no policy for what is only to be taken', async () => {
    const folder = openFolder()
    const before = await folder.start()
    await before.submit({ ...body, policy: 'sglang:http://gone' })
    await vi.waitFor(() => expect(before.status('big').finished).toBe(3), 30_000)
    const after = await folder.start({ openPolicy: () => Promise.reject(new Error('refused')) })
    expect((await after.take('big')).groups).toHaveLength(3)
  })

  it('sets aside what cannot go on, says so, and leaves it to a start that can', async () => {
    const folder = openFolder()
    const before = await folder.start({ openPolicy: async () => silent })
    await before.submit({ ...body, policy: 'sglang:http://late' })
    const lines: string[] = []
    const openPolicy = (): Promise<Policy> => Promise.reject(new Error('refused'))
    const down = await folder.start({ openPolicy, tell: line => lines.push(line) })
    const reason = 'it cannot go on since the service was started again: policy: refused'
    expect(await down.take('big')).toMatchObject({ groups: [], state: 'failed' })
    expect(down.status('big')).toMatchObject({ state: 'failed', reason })
    expect(lines).toEqual([`submission "big" is set aside: ${reason}`])
    expect(await takeAll(await folder.start(), 'big')).toBe(3)
  })

  it('samples from the policy that was announced when a submission came', async () => {
    const folder = openFolder()
    const before = await folder.start({ openPolicy: async () => silent })
    await before.announce({ version: 6, policy: 'sglang:http://new' })
    await before.submit(body)
    await before.announce({ version: 7, policy: 'sglang:http://newer' })
    await before.announce({ version: 70, trainer: 'other' })
    const uris: string[] = []
    const openPolicy = async (uri: string): Promise<Policy> => {
      uris.push(uri)
      return dicePolicy(renderer)
    }
    const after = await folder.start({ openPolicy })
    expect(await after.submit(body)).toMatchObject({ state: 'running' })
    expect(await takeAll(after, 'big')).toBe(3)
    expect(uris).toEqual(['sglang:http://new', 'sglang:http://newer'])
    await vi.waitFor(
      () => expect(folder.text()).toContain('"kind":"taken","id":"big","cursor":3'),
      30_000,
    )
    await folder.start()
    const third = await folder.start({ openPolicy })
    expect(third.trainers.of().version).toBe(7)
    expect(third.trainers.of('other').version).toBe(70)
    await third.submit({ ...body, id: 'next' })
    await takeAll(third, 'next')
    expect(uris.slice(2)).toEqual(['sglang:http://newer'])
  })
})

describe('a name is used once', () => {
  it('although several try after one that was refused', async () => {
    const folder = openFolder()
    let isOpen = false
    const rollouts = await folder.start({
      findTask: async () => {
        if (isOpen) return { id: 'late' as never, data: environment.readTask(task(1)) }
        isOpen = true
        return undefined
      },
    })
    const tries = [1, 2, 3].map(seed => rollouts.submit({ id: 'same', tasks: ['late'], seed }))
    const codes = (await Promise.allSettled(tries)).map(each =>
      each.status === 'fulfilled' ? 202 : each.reason.statusCode,
    )
    expect(codes).toEqual([400, 202, 409])
    expect(rollouts.counts.submissions).toBe(1)
  })

  it('and a submission that cannot be recorded is not rolled', async () => {
    const folder = openFolder()
    let isFull = true
    const record = {
      left: [],
      done: [],
      write: async () => {
        if (isFull) throw new Error('ENOSPC')
      },
      probe: async () => undefined,
    }
    const rollouts = await folder.start({ record })
    const body = { id: 'later', tasks: [task(1)] }
    await expect(rollouts.submit(body)).rejects.toThrow('ENOSPC')
    expect(rollouts.counts).toMatchObject({ queued: 0, kept: 0, submissions: 0 })
    isFull = false
    await rollouts.submit(body)
    await takeAll(rollouts, 'later')
    expect(folder.written).toEqual(['later/0'])
  })

  it('with a record also after ten thousand others', async () => {
    const status = { state: 'finished', groups: 1, finished: 1, taken: 1 } as const
    const done = Array.from({ length: 10_500 }, (_, n) => ({
      digest: 'x',
      status: { id: `step-${n}`, ...status },
    }))
    const record = { left: [], done, write: async () => undefined, probe: async () => undefined }
    const rollouts = await openFolder().start({ record })
    const again = rollouts.submit({ id: 'step-0', tasks: [task(1)] })
    await expect(again).rejects.toMatchObject({ statusCode: 409 })
  })
})
