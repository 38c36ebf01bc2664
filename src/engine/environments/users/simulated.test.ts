import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import type { Speaker } from '../../../base/core/speaker.ts'
import { SimulatedUser, type SimulatedUserOptions } from './simulated.ts'
import { scriptedUser, spoken } from './user.ts'

const call = { signal: new AbortController().signal }

/** A speaker that says given lines and keeps what it was asked. */
function speakerOf(
  replies: readonly (string | null)[],
): Speaker & { asked: (readonly Message[])[] } {
  const asked: (readonly Message[])[] = []
  return {
    name: 'lines',
    asked,
    say: async messages => {
      const content = replies[asked.length]
      if (content === undefined) throw new Error('nothing left to say')
      asked.push(messages)
      return {
        message: { role: 'assistant', content },
        finish: 'stop',
        usage: { prompt: 10, sampled: 2 },
      }
    },
  }
}

const prompts: SimulatedUserOptions['prompts'] = {
  system: (strategy, instruction) => `${strategy}: ${instruction ?? 'nobody'}`,
  verify: (reply, transcript) => `verify ${reply} after\n${transcript}`,
  reflect: (reply, transcript) => `reflect ${reply} after\n${transcript}`,
}

function userOf(
  replies: readonly (string | null)[],
  options: Partial<SimulatedUserOptions> = {},
): { user: SimulatedUser; asked: (readonly Message[])[] } {
  const speaker = speakerOf(replies)
  const user = new SimulatedUser(speaker, { strategy: 'llm', prompts, ...options })
  return { user, asked: speaker.asked }
}

describe('a simulated user', () => {
  it('answers as the assistant of its own conversation', async () => {
    const { user, asked } = userOf(['Hi', 'Blue'])
    expect(await user.open('want blue', call)).toBe('Hi')
    expect(await user.answer('Which?', call)).toBe('Blue')
    expect(asked[1]?.map(message => [message.role, message.content])).toEqual([
      ['system', 'llm: want blue'],
      ['user', 'Hi! How can I help you today?'],
      ['assistant', 'Hi'],
      ['user', 'Which?'],
    ])
    expect(user.usage).toEqual({ calls: 2, prompt: 20, sampled: 4 })
  })

  it('that answers null has said null, and a supervisor reads it as Python writes it', async () => {
    const { user } = userOf([null, 'Blue'])
    expect(await user.open('want blue', call)).toBe(null)
    expect(user.messages.at(-1)).toEqual({ role: 'assistant', content: null })
    const verified = userOf([null, 'true'], { strategy: 'verify' })
    expect(await verified.user.open('x', call)).toBe(null)
    expect(verified.asked[1]?.[0]?.content).toContain('verify None after')
    const reflected = userOf([null, 'true'], { strategy: 'reflection' })
    expect(await reflected.user.open('x', call)).toBe(null)
    const thoughtful = userOf([null], { strategy: 'react' })
    await expect(thoughtful.user.open('x', call)).rejects.toThrow(/NoneType/)
    expect(() => spoken(null)).toThrow(/answered null/)
  })

  it('forks with its memory', async () => {
    const { user, asked } = userOf(['Hi', 'one', 'other'])
    await user.open('x', call)
    const fork = user.fork()
    await user.answer('a', call)
    await fork.answer('b', call)
    expect(asked[2]?.map(message => message.content).slice(2)).toEqual(['Hi', 'b'])
  })

  it('remembers a replayed exchange without asking', async () => {
    const { user, asked } = userOf(['Fine'])
    user.recall({ kind: 'open', said: 'x', answer: 'Hi' })
    user.recall({ kind: 'answer', said: 'Which?', answer: 'Blue' })
    await user.answer('Done', call)
    expect(asked).toHaveLength(1)
    expect(asked[0]?.map(message => message.content).slice(2)).toEqual([
      'Hi',
      'Which?',
      'Blue',
      'Done',
    ])
  })
})

describe('a reasoning user', () => {
  const reply = 'Thought:\nhm\n\nUser Response:\nHello'

  it('shows its thought, unless that is mended', async () => {
    const shown = userOf([reply], { strategy: 'react' })
    expect(await shown.user.open('x', call)).toBe('hm\n\nUser Response:\nHello')
    const hidden = userOf([reply], { strategy: 'react', hideThought: true })
    expect(await hidden.user.open('x', call)).toBe('Hello')
  })

  it('stops in one word, and fails on what it cannot read', async () => {
    const stops = userOf(['Thought: a User Response: ###STOP### bye'], { strategy: 'react' })
    expect(await stops.user.open('x', call)).toBe('###STOP###')
    const fails = userOf(['no labels'], { strategy: 'react' })
    await expect(fails.user.open('x', call)).rejects.toThrow('Invalid response format: no labels')
  })

  it('is asked again where retries are allowed, the bad reply forgotten', async () => {
    const { user, asked } = userOf(['bad', reply], { strategy: 'react', retries: 1 })
    await user.open('x', call)
    expect(asked[1]).toEqual(asked[0])
    expect(user.messages).toHaveLength(3)
  })
})

describe('a verified user', () => {
  it('says the first candidate that satisfies', async () => {
    const { user, asked } = userOf(['a', 'false', 'b', 'True'], { strategy: 'verify' })
    expect(await user.open('x', call)).toBe('b')
    expect(asked[1]?.[0]?.content).toBe(
      'verify a after\nSystem: verify: x\nCustomer: Hi! How can I help you today?',
    )
    expect(user.messages.at(-1)?.content).toBe('b')
  })

  it('says the third one even so, and forgets it', async () => {
    const { user } = userOf(['a', 'no', 'b', 'no', 'c', 'no'], { strategy: 'verify' })
    expect(await user.open('x', call)).toBe('c')
    expect(user.messages).toHaveLength(2)
  })
})

describe('a reflecting user', () => {
  it('tries once more, and remembers both', async () => {
    const replies = ['a', 'false', 'Reflection: r Response: better', 'b', 'true']
    const { user, asked } = userOf(replies, { strategy: 'reflection' })
    expect(await user.open('x', call)).toBe('b')
    expect(asked[3]?.at(-1)?.content).toBe('better')
    expect(user.messages.slice(2).map(message => message.content)).toEqual(['a', 'b'])
  })

  it('falls back on the first reply', async () => {
    const { user } = userOf(['a', 'no', 'Response: y', 'b', 'no'], { strategy: 'reflection' })
    expect(await user.open('x', call)).toBe('a')
  })
})

describe('a scripted user', () => {
  it('says its lines, the last one for ever, and forks in place', async () => {
    const user = scriptedUser(['a', 'b'])
    expect(await user.open('', call)).toBe('a')
    const fork = user.fork()
    expect([await user.answer('', call), await user.answer('', call)]).toEqual(['b', 'b'])
    expect(await fork.answer('', call)).toBe('b')
  })
})
