import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectCaptured, withOwnRecord } from '../../../test/captured.ts'
import { call, openByteRenderer, script } from '../../../test/rolling.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import type { Group } from '../../base/core/group.ts'
import type { Policy } from '../../base/core/policy.ts'
import { roll } from '../../run/run/roll.ts'
import { checkEnvironment } from '../environments/check.ts'
import { agent } from './agent.ts'
import { currentAttempt } from './attempt-context.ts'

const renderer = await openByteRenderer()
const task = z.object({ stock: z.int(), wanted: z.int() })

/** An ordinary agent: nothing in it knows of training but the model it is given. */
const shop = agent({
  name: 'shop',
  task,
  async run({ task: { stock, wanted }, model, signal }) {
    let left = stock
    const { text, steps } = await generateText({
      model,
      abortSignal: signal,
      prompt: `Sell ${wanted} pears.`,
      stopWhen: stepCountIs(5),
      tools: {
        count: tool({ inputSchema: z.object({}), execute: () => left }),
        sell: tool({
          inputSchema: z.object({ pears: z.int() }),
          execute: ({ pears }) => {
            left -= pears
            return { left }
          },
        }),
      },
    })
    return { left, text, steps: steps.length }
  },
  reward: {
    right: ({ task: { data }, report }) => Number(report.left === data.stock - data.wanted),
    looked: { weight: 0.1, score: ({ calls }) => Number(calls[0]?.tool === 'count') },
  },
})

async function rollOne(
  answers: readonly string[],
  options: Partial<Parameters<typeof roll>[2]> = {},
) {
  const policy = withOwnRecord(script(renderer, answers))
  const groups: Group[] = []
  const given = { policy, model: renderer, group: 1, ...options }
  for await (const group of roll(shop, [{ stock: 9, wanted: 3 }], given)) groups.push(group)
  return { group: groups[0]!, record: policy.record }
}

/** A policy whose first request fails. */
function failsFirst(answers: readonly string[]): Policy {
  const policy = script(renderer, answers)
  let isUp = false
  return {
    ...policy,
    async sample(request, options) {
      if (isUp) return await policy.sample(request, options)
      isUp = true
      throw new Error('the server is down')
    },
  }
}

describe('agent', () => {
  it('refuses what would take its own way from it', async () => {
    for (const [options, reason] of [
      [{ strategy: 'tree' }, '--strategy tree is for environments'],
      [{ condense: 'keyword' }, '--condense is for environments'],
    ] as const) {
      await expect(rollOne([], options)).rejects.toThrow(reason)
    }
  })

  it('refuses a reward and seats of another form than theirs, instead of passing over them', () => {
    const made = (wrong: object) => () => agent({ name: 'wrong', task, run: () => 1, ...wrong })
    expect(made({ reward: () => 1 })).toThrow('reward is an object of named parts')
    expect(made({ seats: 'buyer' })).toThrow('needs seats with different names')
  })

  it('rolls an AI SDK agent as it is, token for token', async () => {
    const answers = [call('count', {}), call('sell', { pears: 3 }), 'Sold.']
    const { group, record } = await rollOne(answers)
    const [member] = group.members
    expect(member).toMatchObject({
      reward: { total: 1.1 },
      trajectory: {
        outcome: { kind: 'completed' },
        report: { left: 6, text: 'Sold.', steps: 3 },
        fidelity: { kind: 'exact' },
        calls: [
          { tool: 'count', output: '9' },
          { tool: 'sell', input: { pears: 3 }, output: '{"left":6}' },
        ],
      },
    })
    expect(record).toHaveLength(3)
    expectCaptured(member!.tree, record)
  })

  it('ends an attempt at the limit of turns, and what it came to is graded', async () => {
    const answers = Array.from({ length: 3 }, () => call('count', {}))
    const { group } = await rollOne(answers, { limits: { turns: 2 } })
    expect(group.unscored).toEqual([])
    expect(group.members[0]!.trajectory.outcome).toEqual({ kind: 'truncated', limit: 'turns' })
  })

  it('[O1] makes an agent that breaks a failure of its own, and a policy that breaks one of it', async () => {
    const broken = agent({ name: 'broken', task, run: () => Promise.reject(new Error('my bug')) })
    const outcomes: unknown[] = []
    const policy = script(renderer, [])
    for (const environment of [broken, shop]) {
      const options = { policy, model: renderer, group: 1 }
      for await (const group of roll(environment, [{ stock: 1, wanted: 1 }], options)) {
        outcomes.push(group.unscored[0]!.outcome)
      }
    }
    expect(outcomes).toMatchObject([
      { kind: 'failed', boundary: 'environment', message: 'my bug' },
      { kind: 'failed', boundary: 'policy' },
    ])
  })

  it('[O1] scores no attempt whose agent keeps quiet about what failed, and each that was answered after all', async () => {
    const outcomes: unknown[] = []
    for (const tries of [1, 2]) {
      const quiet = agent({
        name: 'quiet',
        task,
        async run({ model }) {
          for (let at = 0; at < tries; at++) {
            await generateText({ model, prompt: 'Go.', maxRetries: 0 }).catch(() => undefined)
          }
          return 0
        },
      })
      const options = { policy: failsFirst(['Gone.']), model: renderer, group: 1 }
      for await (const { members, unscored } of roll(quiet, [{ stock: 1, wanted: 1 }], options)) {
        outcomes.push(members[0]?.reward.total ?? unscored[0]!.outcome)
      }
    }
    const failed = { kind: 'failed', boundary: 'policy', message: 'the server is down' }
    expect(outcomes).toEqual([expect.objectContaining(failed), 0])
  })

  it('[P1] ends the run where an answer cannot be recorded, also if its agent keeps quiet about it', async () => {
    const policy: Policy = {
      ...script(renderer, []),
      sample: () => Promise.reject(new StoreError('cassette', { cause: new Error('full') })),
    }
    const quiet = agent({
      name: 'quiet',
      task,
      async run({ model }) {
        await generateText({ model, prompt: 'x', maxRetries: 0 }).catch(() => undefined)
        return 1
      },
      reward: { right: () => 1 },
    })
    const groups = roll(quiet, [{ stock: 1, wanted: 1 }], { policy, model: renderer, group: 1 })
    await expect(groups.next()).rejects.toThrow('cassette cannot be written: full')
  })

  it('[O1] scores no attempt whose agent never asked: nothing of it could be trained', async () => {
    const alone = agent({ name: 'alone', task, run: () => 1 })
    const options = { policy: script(renderer, []), model: renderer, group: 1 }
    for await (const { members, unscored } of roll(alone, [{ stock: 1, wanted: 1 }], options)) {
      expect(members).toEqual([])
      expect(unscored[0]!.outcome).toMatchObject({
        boundary: 'environment',
        message: expect.stringContaining('nothing was sampled'),
      })
    }
  })

  it('finds its attempt by its async context, and takes the reward that it returns', async () => {
    const plain = agent({
      name: 'plain',
      task,
      async run() {
        await Promise.resolve()
        const stream = streamText({ model: currentAttempt().model, prompt: 'Say a number.' })
        return Number(await stream.text)
      },
    })
    const policy = withOwnRecord(script(renderer, ['0.5']))
    const options = { policy, model: renderer, group: 4, concurrency: 4 }
    for await (const group of roll(plain, [{ stock: 1, wanted: 1 }], options)) {
      expect(group.members.map(({ reward }) => reward.total)).toEqual([0.5, 0.5, 0.5, 0.5])
      for (const { tree } of group.members) expectCaptured(tree, policy.record.slice(0, 1))
    }
    expect(() => currentAttempt()).toThrow('No attempt is running here')
  })

  it('makes attempts again that an interruption cut, and no others', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'espalier-agent-'))
    const out = join(folder, 'run')
    const stop = new AbortController()
    let asked = 0
    const hanging = agent({
      name: 'hanging',
      task,
      async run({ task: { stock }, model, signal }) {
        asked++
        await generateText({ model, prompt: `Say ${stock}.`, abortSignal: signal })
        if (stock === 2 && !stop.signal.aborted) {
          stop.abort(new Error('enough'))
          await new Promise(() => {})
        }
        return stock
      },
    })
    const tasks = [1, 2].map(stock => ({ stock, wanted: 0 }))
    const options = { model: renderer, group: 1, out, concurrency: 1 }
    const rollOn = async (more: object): Promise<readonly number[]> => {
      const policy = script(renderer, ['Yes.'])
      const rewards: number[] = []
      for await (const { members } of roll(hanging, tasks, { ...options, policy, ...more })) {
        rewards.push(...members.map(({ reward }) => reward.total))
      }
      return rewards
    }
    await expect(rollOn({ signal: stop.signal })).rejects.toThrow('enough')
    expect(await rollOn({ resumes: true })).toEqual([2])
    expect(asked).toBe(3)
    rmSync(folder, { recursive: true, force: true })
  })

  it('passes the checks that every environment passes', async () => {
    const results = await checkEnvironment(shop, {
      tasks: [{ id: '1', data: { stock: 9, wanted: 3 } }],
    })
    expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
  })
})
