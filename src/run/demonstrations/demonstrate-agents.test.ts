import { Agent, tool as agentsTool, Runner, setTracingDisabled } from '@openai/agents'
import { stepCountIs, streamText, tool } from 'ai'
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { TaskId } from '../../base/core/ids.ts'
import { type AgentFunction, agent } from '../../engine/capture/agent.ts'
import { checkEnvironment } from '../../engine/environments/check.ts'
import { demonstrate, mistakenWords, type Show, toPlayer } from './demonstrations.ts'

setTracingDisabled(true)
const { signal } = new AbortController()
const seller = (run: AgentFunction<{ pears: number }>) =>
  agent({ name: 'seller', task: z.object({ pears: z.int() }), run, reward: { right } })
const right = ({ report }: { report?: unknown }): number =>
  Number((report as { left?: number } | undefined)?.left === 6)
const task = { id: 'a' as TaskId, data: { pears: 3 } }

/** Looks, sells in two calls, and is done. */
const show: Show<{ pears: number }> = ({ turn }) => {
  if (turn === 0) return { tool: 'count' }
  return turn < 3 ? { tool: 'sell', input: { pears: turn } } : 'sold'
}

const roles = ['user', ...new Array(3).fill(['assistant', 'tool']).flat(), 'assistant']

async function shownBy(run: AgentFunction<{ pears: number }>) {
  const environment = seller(run)
  const conversations = await demonstrate(environment, [task], { show, turns: 8, signal })
  await mistakenWords(environment, task, signal)
  const results = await checkEnvironment(environment, {
    tasks: [task],
    demonstrate: toPlayer(show),
  })
  const failed = results.filter(({ kind }) => kind === 'failed')
  return { conversations, failed }
}

it('an AI SDK agent that streams is shown turn by turn', async () => {
  const { conversations, failed } = await shownBy(async ({ task, model }) => {
    let left = 9
    const { textStream, text } = streamText({
      model,
      prompt: `Sell ${task.pears} pears.`,
      stopWhen: stepCountIs(6),
      tools: {
        count: tool({ inputSchema: z.object({}), execute: () => left }),
        sell: tool({
          inputSchema: z.object({ pears: z.int() }),
          execute: ({ pears }) => (left -= pears),
        }),
      },
    })
    for await (const _ of textStream);
    return { left, text: await text }
  })
  expect(failed).toEqual([])
  expect(conversations.map(({ messages }) => messages.map(({ role }) => role))).toEqual([roles])
})

it.each([{ stream: true }, { stream: false }] as const)(
  'an agent of the OpenAI Agents SDK is shown and checked (%o)',
  async ({ stream }) => {
    const { conversations, failed } = await shownBy(async ({ task, modelProvider }) => {
      let left = 9
      const count = agentsTool({
        name: 'count',
        description: 'Counts.',
        parameters: z.object({}),
        execute: async () => `${left}`,
      })
      const sell = agentsTool({
        name: 'sell',
        description: 'Sells.',
        parameters: z.object({ pears: z.number() }),
        execute: async ({ pears }) => {
          left -= pears
          return `${left}`
        },
      })
      const it = new Agent({ name: 'Seller', tools: [count, sell] })
      const runner = new Runner({ modelProvider })
      const input = `Sell ${task.pears} pears.`
      if (!stream) {
        const { finalOutput: text } = await runner.run(it, input)
        return { left, text }
      }
      const result = await runner.run(it, input, { stream })
      await result.completed
      return { left, text: result.finalOutput }
    })
    expect(failed).toEqual([])
    const [conversation, ...others] = conversations
    expect(others).toEqual([])
    expect(conversation!.messages.map(({ role }) => role).slice(-8)).toEqual(roles)
  },
)

it('an agent that writes its history anew is shown in several conversations, each turn learned once', async () => {
  const ask = async (fetch: typeof globalThis.fetch, messages: readonly object[]) => {
    const body = JSON.stringify({ model: 'any', messages })
    const url = 'https://api.openai.com/v1/chat/completions'
    const answer = (await (await fetch(url, { method: 'POST', body })).json()) as {
      choices: { message: { content: string } }[]
    }
    return answer.choices[0]!.message
  }
  const environment = seller(async ({ fetch }) => {
    const user = { role: 'user', content: 'Sell.' }
    const first = await ask(fetch, [user])
    const second = await ask(fetch, [user, first, { role: 'user', content: 'and?' }])
    const merged = { role: 'assistant', content: `${first.content} ${second.content}` }
    return (await ask(fetch, [user, merged, { role: 'user', content: 'so?' }])).content
  })
  const words = ['one', 'two', 'three']
  const shown = await demonstrate(environment, [task], {
    show: ({ turn }) => words[turn],
    turns: 8,
    signal,
  })
  expect(shown.map(({ messages, from }) => [messages.length, from])).toEqual([
    [4, 1],
    [4, 3],
  ])
  const results = await checkEnvironment(environment, { tasks: [task] })
  expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
  expect(results.map(({ detail }) => detail)).toContainEqual(
    expect.stringContaining('goes on with another conversation: it can be rolled, taught'),
  )
})
