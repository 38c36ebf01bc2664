// Two who must agree on words. One is told a thing and says a word, the other hears the word and names a thing; nothing
// says which word means what, so each seat can only learn what the other one does by now.
import { agent, type Message } from 'espalier'
import { z } from 'zod'
import { draws } from './draws.ts'

const things = ['apple', 'pear', 'plum', 'fig'] as const
const words = ['ba', 'do', 'ku', 'mi'] as const

export const naming = agent({
  name: 'naming',
  seats: ['speaker', 'hearer'],
  task: z.object({ thing: z.enum(things), round: z.int() }),
  async run({ task: { thing }, seats, signal }) {
    const ask = async (seat: 'speaker' | 'hearer', content: string): Promise<string> => {
      const { message } = await seats[seat].speaker.say([{ role: 'user', content }], { signal })
      return String(message.content ?? '').trim()
    }
    const said = await ask('speaker', `tell ${thing}`)
    return { named: await ask('hearer', `heard ${said}`) }
  },
  reward: { agreed: ({ task: { data }, report }) => Number(report.named === data.thing) },
  splits: ['train', 'held-out', 'shown'],
  // There are four things and no more: rounds tell tasks apart.
  makeTasks: ({ count, seed, split = 'train' }) =>
    Array.from({ length: count }, (_, index) => ({
      id: `naming/${split}/${index}`,
      data: {
        thing: things[index % things.length]!,
        round: 1000 * seed + 10 * index + split.length,
      },
    })),
})

/** Shows the words without any meaning. */
export function show({ task, seat }: { readonly task: { readonly id: string }; seat?: string }) {
  const draw = draws(Number(task.id.split('/').at(-1)) * 17 + (seat === 'hearer' ? 1 : 2))
  const at = Math.floor(draw() * words.length)
  return seat === 'hearer' ? things[at] : words[at]
}

/** The answer whose number is that of the last word among others. */
function answerTo(
  messages: readonly Message[],
  known: readonly string[],
  answers: readonly string[],
) {
  const word = String(messages.at(-1)?.content).split(' ')[1] ?? ''
  return answers[known.indexOf(word)] ?? ''
}

/** A speaker whose words have a meaning. */
export function speaker(messages: readonly Message[]): string {
  return answerTo(messages, things, words)
}

/** A hearer who knows these meanings. */
export function hearer(messages: readonly Message[]): string {
  return answerTo(messages, words, things)
}
