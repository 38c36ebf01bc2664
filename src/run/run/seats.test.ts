import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Message } from '@espalier/text'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectCaptured, withOwnRecord } from '../../../test/captured.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import type { Group } from '../../base/core/group.ts'
import { type Policy, plainCapabilities, type SampleRequest } from '../../base/core/policy.ts'
import { agent } from '../../engine/capture/agent.ts'
import { playSeats } from '../../engine/capture/play-seats.ts'
import { checkEnvironment } from '../../engine/environments/check.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { baseModel, openEmbedded } from '../../learn/model/embedded.ts'
import { groupRows } from '../rows/row-record.ts'
import { readJournal } from '../store/read-journal.ts'
import { readManifest, runPaths, writeManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { reportRun } from '../watch/run-report.ts'
import { pastPolicy } from './past-policy.ts'
import { roll } from './roll.ts'

const renderer = await openByteRenderer()
const folder = mkdtempSync(join(tmpdir(), 'seats-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A seller names a price, a buyer says yes or no; what one gains the other loses. */
const deal = agent({
  name: 'deal',
  seats: ['buyer', 'seller'],
  task: z.object({ cost: z.int() }),
  async run({ task: { cost }, seats, signal }) {
    const opening: Message = { role: 'user', content: `cost ${cost}` }
    const asked = await seats.seller.speaker.say([opening], { signal })
    const price: Message = { role: 'user', content: `price ${asked.message.content}` }
    const said = await seats.buyer.speaker.say([price], { signal })
    // A second conversation of the same seat: another path of its tree.
    await seats.seller.speaker.say([{ role: 'user', content: 'bye' }], { signal })
    return { price: said.message.content === 'yes' ? Number(asked.message.content) : null }
  },
  reward: {
    gain: ({ seat, report: { price }, task: { data } }) =>
      price === null ? 0 : ((price - data.cost) / 10) * (seat === 'seller' ? 1 : -1),
  },
})

/** A policy that says what a function of the request says. */
function ruled(rule: (request: SampleRequest) => string): Policy {
  return {
    name: 'ruled',
    capabilities: plainCapabilities,
    async sample(request) {
      const ids = renderer.encodeReply({ role: 'assistant', content: rule(request) }, [])
      return tokenSample(ids, { prompt: request.prompt.ids.length })
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

const words = ({ seat, key, prompt }: SampleRequest): string => {
  if (prompt.messages[0]?.content === 'bye') return 'bye'
  return seat === 'seller' ? String(4 + key.member) : 'yes'
}

async function rollDeals(options: Partial<Parameters<typeof roll>[2]> = {}, tasks = [{ cost: 2 }]) {
  const policy = withOwnRecord(ruled(words))
  const given = { policy, model: renderer, group: 3, advantage: 'dr-grpo', ...options }
  const groups: Group[] = []
  for await (const group of roll(deal, tasks, given)) groups.push(group)
  return { groups, policy }
}

const bySeat = (groups: readonly Group[], seat: string): Group =>
  groups.find(group => group.seat === seat)!

describe('seats', () => {
  it('each has a tree, a reward and a group of its own, token for token', async () => {
    const { groups, policy } = await rollDeals()
    expect(groups.map(({ id }) => id)).toEqual(['1@buyer', '1@seller'])
    const rewards = groups.map(group => group.members.map(({ reward }) => reward.total))
    expect(rewards).toEqual([
      [-0.2, -0.3, -0.4],
      [0.2, 0.3, 0.4],
    ])
    for (const { tree } of groups.flatMap(group => group.members)) {
      expect(tree.id).toBe(`1@${tree.seat}/${tree.member}`)
      const own = policy.record.filter(({ prompt, sampled: ids }) => {
        const price = 4 + tree.member
        const shown = renderer.decode(prompt)
        if (tree.seat === 'buyer') return shown.includes(`price ${price}`)
        return shown.includes('cost') && renderer.decode(ids).startsWith(String(price))
      })
      expect(own).toHaveLength(1)
      const bye = policy.record.find(({ prompt }) => renderer.decode(prompt).includes('bye'))!
      expectCaptured(tree, tree.seat === 'seller' ? [...own, bye] : own)
    }
    const [seller] = bySeat(groups, 'seller').members
    expect(seller?.trajectory.turns).toHaveLength(2)
    expect(seller?.trajectory.fidelity.kind).toBe('forked')
  })

  it('credit: a seat is compared with itself, and only its own tokens are trained', async () => {
    const { groups } = await rollDeals()
    const advantages = (seat: string) =>
      bySeat(groups, seat).members.map(({ advantage }) => Math.round(advantage! * 100) / 100)
    expect(advantages('seller')).toEqual([-0.1, 0, 0.1])
    expect(advantages('buyer')).toEqual([0.1, 0, -0.1])
    for (const { row, tree } of groups.flatMap(group => groupRows(group))) {
      const trained = renderer.decode(row.ids.filter((_, index) => row.mask[index] === 1))
      const said = trained.replace('<|im_end|>', '').trim()
      const own = tree.seat === 'buyer' ? ['yes'] : [String(4 + tree.member), 'bye']
      expect(own).toContain(said)
      const advantage = (tree.seat === 'buyer' ? 1 : -1) * (0.1 - tree.member / 10)
      const first = row.mask.indexOf(1)
      expect(row.advantages[first]).toBeCloseTo(advantage, 6)
    }
  })

  it('one that another plays is kept, with its reward, and not trained', async () => {
    const out = join(folder, 'frozen')
    const seller = (messages: readonly Message[]): string =>
      messages[0]?.content === 'bye' ? 'bye' : '5'
    const { groups, policy } = await rollDeals({ seats: { seller }, out, config: {} })
    expect(groups.map(({ id }) => id)).toEqual(['1@buyer'])
    expect(policy.record).toHaveLength(3)
    await using reader = await openRunReader(out)
    const other = (await reader.group('1@seller'))!.group
    expect(other.members.map(({ reward }) => reward.total)).toEqual([0.3, 0.3, 0.3])
    expect(other.members[0]).toMatchObject({
      dropped: { filter: 'seat', reason: 'played by seller, which does not learn' },
      advantage: null,
      trajectory: { fidelity: { kind: 're-encoded' } },
    })
    expect(groupRows(other)).toEqual([])
    expect(reader.tasks()).toHaveLength(1)
    // What the other earned says nothing about the policy.
    const [own] = groups
    const earned = own!.members.map(({ reward }) => reward.total)
    expect(await reportRun(out)).toMatchObject({
      groups: 1,
      trajectories: 3,
      reward: { mean: expect.closeTo(earned.reduce((sum, each) => sum + each) / 3) },
    })
    const events = readFileSync(join(out, 'events.jsonl'), 'utf8')
    expect(events).not.toContain('no-logprobs')
  })

  it('a player that breaks costs the attempt, with its reason, and no seat a score', async () => {
    const seller = (): string => {
      throw new Error('the opponent fell asleep')
    }
    const { groups } = await rollDeals({ seats: { seller }, group: 1 })
    expect(groups[0]?.members).toEqual([])
    expect(groups[0]?.unscored[0]?.outcome).toEqual({
      kind: 'failed',
      boundary: 'policy',
      message: 'the opponent fell asleep',
    })
  })

  it('a resumed run rolls only what no seat has finished', async () => {
    const out = join(folder, 'resumed')
    await rollDeals({ out, config: {} })
    const { groups, policy } = await rollDeals({ out, config: {}, resumes: true }, [
      { cost: 2 },
      { cost: 3 },
    ])
    expect(groups.map(({ id }) => id)).toEqual(['2@buyer', '2@seller'])
    expect(policy.record).toHaveLength(9)
  })

  it('a run that was killed between the groups of two seats samples nothing again, and exports each once', async () => {
    const out = join(folder, 'killed')
    const rows = join(folder, 'killed.jsonl')
    const config = { sinks: [{ to: 'jsonl', out: rows }] }
    await rollDeals({ out, config })
    const lines = readFileSync(rows, 'utf8')
    let last = 0
    const { journal } = runPaths(out)
    for await (const { place } of readJournal(journal)) last = place.offset
    truncateSync(journal, last)
    await writeManifest(out, { ...(await readManifest(out)), status: 'running' })
    const { groups, policy } = await rollDeals({ out, config, resumes: true })
    expect(policy.record).toHaveLength(0)
    expect(groups.map(({ id }) => id)).toEqual(['1@buyer', '1@seller'])
    expect(readFileSync(rows, 'utf8')).toBe(lines)
  })

  it('a budget of trajectories counts every seat', async () => {
    const tasks = [{ cost: 1 }, { cost: 2 }, { cost: 3 }]
    const { groups } = await rollDeals({ budget: { trajectories: 12 } }, tasks)
    expect(groups).toHaveLength(4)
  })

  it('a player may be in a file or a folder with any name', async () => {
    const file = join(folder, 'a#b.jsonl')
    writeFileSync(file, '{"text":"no"}\n')
    const { groups } = await rollDeals({ seats: [`buyer=scripted:${file}`] })
    expect(groups[0]!.members.map(({ reward }) => reward.total)).toEqual([0, 0, 0])
  })

  it('what is written wrongly is refused with what was possible', async () => {
    const refused = (seats: readonly string[]) => expect(rollDeals({ seats })).rejects
    await refused(['buyr=embedded']).toThrow(/has no such seat. It has buyer, seller.*buyer/)
    await refused(['buyer']).toThrow('write NAME=POLICY')
    await refused(['buyer=./none.ts#x']).toThrow('no file ./none.ts')
    await refused(['buyer=past']).toThrow('name one with --out or past:RUN')
    const rule = (): string => 'yes'
    await expect(rollDeals({ seats: { buyer: rule, seller: rule } })).rejects.toThrow(
      'nobody learns',
    )
    for (const seats of [['a', 'a'], [], ['a b'], 'ab', { a: 1 }]) {
      expect(() => agent({ ...deal, seats, run: () => 0 } as never)).toThrow(
        'needs seats with different names',
      )
    }
  })

  it('an agent that asks without a seat is told whom to ask as', async () => {
    const lost = agent({
      name: 'lost',
      seats: ['one', 'other'],
      task: z.object({}),
      run: ({ speaker, signal }) => speaker.say([{ role: 'user', content: 'Hi' }], { signal }),
    })
    const given = { policy: ruled(() => 'x'), model: renderer, group: 1 }
    for await (const group of roll(lost, [{}], given)) {
      expect(group.unscored[0]?.outcome).toMatchObject({
        boundary: 'environment',
        message: expect.stringContaining('ask as one of one, other'),
      })
    }
  })

  it('are played for demonstrations, and pass the checks', async () => {
    const task = { id: '1', data: { cost: 2 } } as never
    const player = ({ seat }: { seat?: string }) => replyOf(seat === 'seller' ? '7' : 'yes')
    const { signal } = new AbortController()
    const said = await playSeats(deal, task, { player, turns: 9, signal })
    expect(said.map(({ seat, messages }) => [seat, messages.length])).toEqual([
      ['seller', 2],
      ['buyer', 2],
      ['seller', 2],
    ])
    const results = await checkEnvironment(deal, { tasks: [{ id: '1', data: { cost: 2 } }] })
    expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
  })

  it('an opponent from the past is one of the newest checkpoints, the same for a whole attempt', async () => {
    const run = join(folder, 'past')
    for (const step of ['000000', '000010', '000020', '000030']) makeCheckpoint(run, step)
    rmSync(join(run, 'checkpoints', '000030', 'training.json'))
    await using meanwhile = await openEmbedded()
    await using past = pastPolicy({
      run,
      last: 2,
      seed: 0,
      meanwhile,
      open: meanwhile.inside.reopen,
    })
    const servers = new Map<string, Set<string | undefined>>()
    for (let index = 0; index < 12; index++) {
      const session = `t/${index % 6}`
      const { usage } = await past.sample(requestOf(session), {
        signal: AbortSignal.timeout(60_000),
      })
      servers.set(session, (servers.get(session) ?? new Set()).add(usage.server))
    }
    expect([...servers.values()].every(({ size }) => size === 1)).toBe(true)
    const all = new Set([...servers.values()].flatMap(each => [...each]))
    expect([...all].sort()).toEqual(
      ['000010', '000020'].map(step => join(run, 'checkpoints', step)),
    )
  })

  it('checkpoints of the past that are met no more are closed, and opened again where an attempt goes on', async () => {
    const run = join(folder, 'long-past')
    const open = new Set<string>()
    let most = 0
    const openOne = async (path: string): Promise<Policy> => {
      open.add(path)
      most = Math.max(most, open.size)
      return { ...ruled(() => 'x'), [Symbol.asyncDispose]: async () => void open.delete(path) }
    }
    const policy = pastPolicy({ run, last: 1, seed: 0, meanwhile: ruled(() => '-'), open: openOne })
    const { signal } = new AbortController()
    for (let step = 0; step < 9; step++) {
      makeCheckpoint(run, `00000${step}`)
      await policy.sample(requestOf(`t/${step}`), { signal })
    }
    const { usage } = await policy.sample(requestOf('t/0'), { signal })
    expect(usage.server).toBe(join(run, 'checkpoints', '000000'))
    expect(most).toBe(2)
    await policy[Symbol.asyncDispose]()
    expect(open.size).toBe(0)
  })

  it('a checkpoint of the past that cannot be opened fails its attempts, and the run ends in order', async () => {
    const run = join(folder, 'broken-past')
    makeCheckpoint(run, '000001')
    const open = (): Promise<Policy> => Promise.reject(new Error('half a file'))
    const policy = pastPolicy({ run, last: 1, seed: 0, meanwhile: ruled(() => '-'), open })
    const { signal } = new AbortController()
    await expect(policy.sample(requestOf('t/0'), { signal })).rejects.toThrow('half a file')
    await policy[Symbol.asyncDispose]()
  })
})

function makeCheckpoint(run: string, step: string): void {
  const checkpoint = join(run, 'checkpoints', step)
  mkdirSync(checkpoint, { recursive: true })
  for (const name of readdirSync(baseModel)) {
    symlinkSync(join(baseModel, name), join(checkpoint, name))
  }
  writeFileSync(join(checkpoint, 'training.json'), '{}')
}

function requestOf(session: string): SampleRequest {
  return {
    prompt: { ids: Int32Array.of(1, 2, 3), messages: [], tools: [] },
    maxTokens: 1,
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0 },
    stopIds: [],
    stopStrings: [],
    seed: 1,
    key: { task: 't', member: 0, branch: '', turn: 0 },
    session,
  }
}
