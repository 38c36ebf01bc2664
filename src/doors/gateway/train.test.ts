import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { bearer, hello } from '../../../test/open-gateways.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { readManifest } from '../../run/store/run-folder.ts'
import { openRunReader } from '../../run/store/store.ts'
import { type TrainAgentsOptions, trainOnAgents } from './train.ts'

/** A trainer that only counts, and a policy whose version it raises. */
async function openLearning(out: string) {
  const renderer = await openByteRenderer()
  let version = 0
  const learned: (readonly Group[])[] = []
  const { policy } = openCountingPolicy({
    length: () => 5,
    end: renderer.stopIds[0]!,
    version: () => version,
  })
  const trainer: Trainer = {
    name: 'counting',
    async step(groups) {
      learned.push(groups)
      return { version: ++version, metrics: {} }
    },
    async save(folder) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'version'), String(version))
    },
    async load(folder) {
      version = Number(readFileSync(join(folder, 'version'), 'utf8'))
      return { version }
    },
    async [Symbol.asyncDispose]() {},
  }
  const plan = { steps: 3, tasksPerStep: 2, group: 2, checkpointEvery: 1, graceSeconds: 0 }
  const options: TrainAgentsOptions = { policy, model: renderer, trainer, out, port: 0, ...plan }
  return { options, learned }
}

/** Agents that ask and close one after the other, two at a task, until the gateway has ended. */
async function sendAgents(url: string, from: number): Promise<void> {
  const post = async (path: string, body: object, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && bearer(token)) }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(String(answer.status))
    return (await answer.json()) as { readonly id: string; readonly token: string }
  }
  try {
    for (let n = from; ; n++) {
      const { id, token } = await post('/attempts', { task: `t${n >> 1}` })
      await post('/v1/chat/completions', hello, token)
      await post(`/attempts/${id}/close`, { reward: n % 2 })
    }
  } catch {
    // The gateway has ended: so have its agents.
  }
}

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-agents-')), 'run')

const versionsIn = (groups: readonly Group[]): number[] =>
  groups.flatMap(({ members }) =>
    members.flatMap(({ tree }) =>
      tree.nodes.flatMap(({ segment }) => (isSampled(segment) ? segment.version.from : [])),
    ),
  )

describe('training on agents that run elsewhere', () => {
  it('takes steps of the groups that they make, and serves the new weights at the same address', async () => {
    const out = scratch()
    const { options, learned } = await openLearning(out)
    let agents: Promise<void> | undefined
    const trained = await trainOnAgents({
      ...options,
      onListening: url => {
        agents = sendAgents(url, 0)
      },
    })
    await agents
    expect(trained.steps).toBe(3)
    expect(learned.map(groups => groups.length)).toEqual([2, 2, 2])
    const rewards = learned.flat().map(({ members }) => members.map(({ reward }) => reward.total))
    expect(rewards).toEqual(Array.from({ length: 6 }, () => [0, 1]))
    expect(new Set(versionsIn(learned[0]!))).toEqual(new Set([0]))
    expect(Math.max(...versionsIn(learned[2]!))).toBeGreaterThan(0)
    await using reader = await openRunReader(out)
    expect(reader.finishedGroups.size).toBeGreaterThanOrEqual(6)
    expect(await readManifest(out)).toMatchObject({ kind: 'train', status: 'finished' })
  })

  it('goes on where it was stopped', async () => {
    const out = scratch()
    const first = await openLearning(out)
    const stop = new AbortController()
    const running = trainOnAgents({
      ...first.options,
      signal: stop.signal,
      onListening: url => void sendAgents(url, 0),
      onStep: () => stop.abort(new Error('enough')),
    })
    await expect(running).rejects.toThrow('enough')
    const second = await openLearning(out)
    const trained = await trainOnAgents({
      ...second.options,
      resumes: true,
      onListening: url => void sendAgents(url, 1000),
    })
    expect([first.learned.length, second.learned.length, trained.steps]).toEqual([1, 2, 3])
  })
})
