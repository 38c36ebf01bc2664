// A world for models that know nothing yet: two turns, worth the share of letters in what was said.
import { z } from 'zod'
import { environment } from '../../src/engine/environments/environment.ts'

export const letters = environment({
  name: 'letters',
  task: z.object({ messages: z.array(z.object({ role: z.literal('user'), content: z.string() })) }),
  open({ data }) {
    let turns = 0
    return {
      opening: data.messages as [{ role: 'user'; content: string }],
      respond: () => (++turns < 2 ? 'More letters, please.' : undefined),
    }
  },
  reward: {
    letters: ({ messages }) => {
      const said = messages
        .flatMap(({ role, content }) => (role === 'assistant' && content ? [String(content)] : []))
        .join('')
      return (said.match(/[a-z]/gi)?.length ?? 0) / Math.max(1, said.length)
    },
  },
})
