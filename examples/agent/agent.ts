// The same agent, made trainable: a task, the function that runs it, and the reward of its result.
// docs/start/your-agent.md has the two commands that teach and train it.
import { agent } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'
import { type Help, type Order, support } from './support.ts'

const statuses = ['lost', 'late', 'damaged', 'delivered'] as const
const customers = ['gold', 'basic'] as const
const items = [
  'lamp',
  'chair',
  'clock',
  'kettle',
  'carpet',
  'mirror',
  'table',
  'vase',
  'rug',
  'pan',
] as const
const questions = ['Where is my', 'I have a question about my', 'Can you help me with my'] as const

export const run = agent({
  name: 'support',
  task: z.object({
    item: z.string(),
    status: z.enum(statuses),
    customer: z.enum(customers),
    question: z.string(),
  }),
  run: ({ task: { question, ...order }, model }) => support(model, order, question),
  reward: {
    right: ({ task: { data }, report }) => Number(report.looked && report.done === rightFor(data)),
  },
  splits: ['train', 'held-out', 'shown'],
  makeTasks({ count, split = 'train' }) {
    return pick(split)
      .slice(0, count)
      .map((data, index) => ({ id: `${split}-${index}`, data }))
  },
})

/** The shop's rules, which the model is not shown. */
function rightFor({ status }: Order): Help['done'] {
  if (status === 'lost') return 'refunded full'
  if (status === 'damaged') return 'replaced'
  return status === 'late' ? 'refunded half' : 'nothing'
}

/** All tasks, shuffled; a fifth is held out, and some of the rest are shown. */
function pick(split: string) {
  const all = items.flatMap(item =>
    statuses.flatMap(status =>
      customers.flatMap(customer =>
        questions.map(words => ({ item, status, customer, question: `${words} ${item}?` })),
      ),
    ),
  )
  const place = ({ question, status, customer }: (typeof all)[number]): number =>
    random(seedOf('support', question, status, customer))()
  const mixed = all.toSorted((one, other) => place(one) - place(other))
  return split === 'held-out'
    ? mixed.slice(0, 48)
    : split === 'shown'
      ? mixed.slice(48, 96)
      : mixed.slice(48)
}

/** A player that knows the tools and not the rules: looks at the order, then guesses. */
export function show({ task, turn }: { task: { id: string }; turn: number }) {
  if (turn === 0) return { tool: 'order' }
  if (turn === 2) return 'done'
  const guess = Math.floor(4 * random(seedOf('shown', task.id))())
  if (guess === 0) return 'sorry'
  if (guess === 1) return { tool: 'replace' }
  return { tool: 'refund', input: { share: guess === 2 ? 'half' : 'full' } }
}
