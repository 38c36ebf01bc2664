import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { expectCaptured, withOwnRecord } from '../captured.ts'
import { openTestGateway } from '../gateway.ts'
import { call, openByteRenderer, script } from '../rolling.ts'

const look = (at: string): string => call('look', { at }).replace('<|im_end|>', '')

const tools: Anthropic.Tool[] = [
  { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } },
]

describe('histories that agents keep', () => {
  it('captures thinking, parallel calls, a sub-agent, an edited history and a retry', async () => {
    const renderer = await openByteRenderer()
    const said = [
      `<think>\nTwo places.\n</think>\n\nI look.\n${look('door')}\n${look('desk')}`,
      'The sub-agent found a key.',
      'The key is on the desk.',
      'Once more: the desk.',
      'The summary says desk.',
    ]
    const policy = withOwnRecord(
      script(
        renderer,
        said.map(text => ({ text: `${text}<|im_end|>` })),
      ),
    )
    await using gateway = await openTestGateway({ policy, renderer })
    const { id, token } = await gateway.open('histories')
    const client = new Anthropic({ baseURL: gateway.url, apiKey: token, maxRetries: 0 })
    const ask = (messages: Anthropic.MessageParam[], headers: Record<string, string> = {}) =>
      client.messages.create({ model: 'm', max_tokens: 500, tools, messages }, { headers })

    const opening: Anthropic.MessageParam = { role: 'user', content: 'Where is the key?' }
    const first = await ask([opening])
    expect(first.content.map(block => block.type)).toEqual([
      'thinking',
      'text',
      'tool_use',
      'tool_use',
    ])
    const helper = await ask([{ role: 'user', content: 'You are a helper. Search the desk.' }])
    const results = first.content.flatMap(block =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'nothing' }]
        : [],
    )
    const next: Anthropic.MessageParam[] = [
      opening,
      { role: 'assistant', content: first.content },
      { role: 'user', content: results },
    ]
    const second = await ask(next, { 'x-stainless-retry-count': '0' })
    const again = await ask(next, { 'x-stainless-retry-count': '1' })
    expect(again.content).toEqual(second.content)
    // The agent forgets what the model thought, and asks about what is left.
    const edited = first.content.filter(block => block.type !== 'thinking')
    await ask([
      opening,
      { role: 'assistant', content: edited },
      { role: 'user', content: results },
      { role: 'assistant', content: second.content },
      { role: 'user', content: 'Sure?' },
    ])
    await ask([{ role: 'user', content: `Summary: ${JSON.stringify(helper.content)}` }])

    await gateway.send(`/attempts/${id}/close`, { reward: 1 })
    const [tree] = gateway.trees
    expect(policy.record).toHaveLength(5)
    expectCaptured(tree!, policy.record)
    const { fidelity, turns, events } = tree!.trajectories[0]!
    expect(turns).toHaveLength(5)
    expect(fidelity.kind).toBe('forked')
    expect(fidelity.forks.every(({ reason }) => reason.length > 10)).toBe(true)
    expect(events.some(({ kind }) => kind === 'retry')).toBe(true)
  })
})
