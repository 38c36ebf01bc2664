import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import { roll } from '../../run/run/roll.ts'
import { agent } from './agent.ts'

const renderer = await openByteRenderer()

/** An agent that keeps one list for its whole conversation, and changes what it was told. */
const chatter = agent({
  name: 'chatter',
  task: z.object({}),
  async run({ speaker, signal }) {
    const messages: Message[] = [{ role: 'user', content: 'first' }]
    for (const content of ['second', 'third']) {
      const { message } = await speaker.say(messages, { signal })
      messages.push({ ...message }, { role: 'user', content })
      Object.assign(message, { content: 'changed' })
    }
    return { reward: 1 }
  },
})

describe('what was said with a speaker', () => {
  it('is kept as it was, whatever its caller does with lists and answers afterwards', async () => {
    const policy = script(renderer, ['one', 'two'])
    for await (const group of roll(chatter, [{}], { policy, model: renderer, group: 1 })) {
      const { messages } = group.members[0]!.trajectory
      expect(messages.map(({ content }) => content)).toEqual(['first', 'one', 'second', 'two'])
    }
    expect.assertions(1)
  })
})
