import { generateObject, generateText, type ToolSet, tool } from 'ai'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { idsTo } from '../../base/core/tree.ts'
import { type AgentCall, agent, openPolicy, roll } from '../../index.ts'

const { signal } = new AbortController()

/** Rolls one attempt of an agent with the model inside, which was taught nothing of what it is asked. */
async function attempt(run: (call: AgentCall) => Promise<number>) {
  await using policy = await openPolicy('embedded')
  const own = agent({ name: 'own', task: z.object({}), run })
  const limits = { newTokens: 150 }
  for await (const { members, unscored } of roll(own, [{}], { policy, group: 1, limits })) {
    const { trajectory, tree } = members[0] ?? unscored[0]!
    const { outcome, events, end } = trajectory
    const ids = idsTo(tree, end)
    const { segment } = tree.nodes.at(-1)!
    if (segment.origin !== 'sampled') throw new Error(JSON.stringify(outcome))
    const { logprobs, basis } = segment
    const from = ids.length - segment.ids.length
    const scores = await policy.score!(ids, from, { temperature: 1 }, { signal })
    return { outcome, events, basis, logprobs: [...logprobs!], scores: [...scores.logprobs] }
  }
  throw new Error('no group came')
}

it('an object is generated as its schema wants it, with log-probabilities that a trainer computes too', async () => {
  const schema = z.object({
    size: z.enum(['big', 'small']),
    pears: z.int(),
    ripe: z.array(z.boolean()).min(1).max(3),
  })
  let made: unknown
  const { outcome, events, basis, logprobs, scores } = await attempt(async ({ model }) => {
    const { object } = await generateObject({ model, schema, prompt: 'Describe the order.' })
    made = object
    return 1
  })
  expect(outcome).toEqual({ kind: 'completed' })
  expect(schema.safeParse(made).success).toBe(true)
  expect(events.filter(({ kind }) => kind.startsWith('unmet'))).toEqual([])
  expect(basis).toBe('tempered')
  for (const [at, logprob] of logprobs.entries()) expect(logprob).toBeCloseTo(scores[at]!, 3)
})

it('a call that has to be made is made, of the tool that is wanted', async () => {
  const tools: ToolSet = {
    sell: tool({ inputSchema: z.object({ pears: z.enum(['one', 'two']) }) }),
    count: tool({ inputSchema: z.object({ all: z.boolean() }) }),
  }
  const calls: unknown[] = []
  const { outcome } = await attempt(async ({ model }) => {
    for (const toolChoice of ['required', { type: 'tool', toolName: 'sell' }] as const) {
      const { toolCalls } = await generateText({ model, tools, toolChoice, prompt: 'Go.' })
      calls.push(...toolCalls.map(({ toolName, input }) => ({ toolName, input })))
    }
    return 1
  })
  expect(outcome).toEqual({ kind: 'completed' })
  expect(calls).toEqual([
    expect.objectContaining({ toolName: expect.stringMatching(/^(sell|count)$/) }),
    { toolName: 'sell', input: { pears: expect.stringMatching(/^(one|two)$/) } },
  ])
})
