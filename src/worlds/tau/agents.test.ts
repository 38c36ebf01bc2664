import type { AssistantMessage } from '@espalier/text'
import { dumps } from '@espalier/text/python'
import { beforeAll, describe, expect, it } from 'vitest'
import { type AgentKind, chooseFewShots, type TauAgent, tauAgent } from './agents.ts'
import type { TauDomain } from './domain.ts'
import { loadTau } from './load.ts'

let domain: TauDomain

beforeAll(async () => {
  domain = await loadTau({ root: 'test/fixtures/tau-checkout', domain: 'retail' })
})

const agent = (kind: AgentKind): TauAgent => tauAgent(domain, { kind })

function written(kind: AgentKind, content: string | null): string {
  const { name, kwargs } = agent(kind).toAction({ role: 'assistant', content })
  return `${name} ${dumps(kwargs)}`
}

const called = (...calls: readonly [string, string][]): AssistantMessage => ({
  role: 'assistant',
  content: 'hm',
  tool_calls: calls.map(([name, text], index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: text },
  })),
})

describe('tool-calling', () => {
  it('takes the first call only, numbers as they were written', () => {
    const message = called(['think', '{"n": 1.0}'], ['calculate', '{}'])
    const action = agent('tool-calling').toAction(message)
    expect(`${action.name} ${dumps(action.kwargs)}`).toBe('think {"n": 1.0}')
    const [kept, observed] = agent('tool-calling').observe({ message, action, observation: 'ok' })
    expect(kept.tool_calls).toHaveLength(1)
    expect(observed).toEqual({ role: 'tool', tool_call_id: 'call_0', name: 'think', content: 'ok' })
  })

  it('speaks to the user where nothing is called', () => {
    expect(written('tool-calling', 'Hello.')).toBe('respond {"content": "Hello."}')
    const message = { ...called(), tool_calls: [] }
    expect(agent('tool-calling').toAction(message).name).toBe('respond')
  })

  it('raises what the original raises', () => {
    const act = (text: string) => () => agent('tool-calling').toAction(called(['think', text]))
    expect(act('{')).toThrow('Expecting property name enclosed in double quotes')
    expect(act('[1]')).toThrow('input_value=[1], input_type=list')
  })
})

describe('react and act', () => {
  it('describe the tools in the prompt, not beside it', () => {
    const { system, tools } = agent('react')
    expect(tools).toEqual([])
    expect(system).toContain('\n#Available tools\n[{"type": "function", "function": {"name": "calc')
    expect(system).toContain('To speak, use respond with "content".')
    expect(agent('act').system).not.toContain('Thought:')
  })

  it('read what follows the last label, and take everything else for words', () => {
    const call = '{"name": "think", "arguments": {"thought": "x"}}'
    expect(written('react', `Action: {} Action: ${call}`)).toBe('think {"thought": "x"}')
    expect(written('act', 'Action:\n Hello there ')).toBe('respond {"content": "Hello there"}')
  })

  it.each([
    ['"name arguments"', "string indices must be integers, not 'str'"],
    ['5', "argument of type 'int' is not iterable"],
    ['{"name": 1, "arguments": null}', '2 validation errors for Action'],
  ])('refuse %s', (text, problem) => {
    expect(() => written('react', text)).toThrow(problem)
  })

  it('prefix what tools answered', () => {
    const message = { role: 'assistant', content: 'x' } as const
    const step = { message, observation: 'o' }
    const observe = (name: string) =>
      agent('act').observe({ ...step, action: { name, kwargs: new Map() } })[1].content
    expect([observe('think'), observe('respond')]).toEqual(['API output: o', 'o'])
  })
})

describe('few-shot', () => {
  it('shows the chosen displays after the policy', () => {
    const { system } = tauAgent(domain, { kind: 'few-shot', fewShots: ['one', 'two'] })
    expect(system).toBe(`${domain.wiki}\n\nExample 1:\none\n\nExample 2:\ntwo`)
  })

  it('draws without repeating, and says when there are too few', () => {
    const drawn = chooseFewShots(domain.fewShots, { random: () => 0.99 })
    expect(new Set(drawn).size).toBe(5)
    expect(() => chooseFewShots([], { random: Math.random })).toThrow('displays are empty')
    expect(() => chooseFewShots(['a'], { random: Math.random })).toThrow('requested: 1 < 5')
  })
})
