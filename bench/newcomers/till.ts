// A till: the prices of two things are looked up and their sum is charged.
import { environment, tool } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const goods = ['apple', 'bread', 'cheese', 'dates', 'eggs', 'figs', 'grapes', 'honey'] as const
const good = z.enum(goods)

const task = z.object({ basket: z.array(good).length(2), prices: z.record(z.string(), z.int()) })
type Sale = z.infer<typeof task>

const totalOf = ({ basket, prices }: Sale): number =>
  basket.reduce((sum, each) => sum + prices[each]!, 0)

export const till = environment({
  name: 'till',
  task,
  open({ data }) {
    let charged: number | undefined
    return {
      opening: [
        { role: 'system', content: 'Charge what it costs together.' },
        { role: 'user', content: `I take ${data.basket.join(' and ')}.` },
      ],
      tools: {
        price: tool({
          description: 'What a thing costs today',
          inputSchema: z.object({ good }),
          execute: ({ good }) => `${data.prices[good] ?? 'not sold'}`,
        }),
        charge: tool({
          description: 'Charges the customer',
          inputSchema: z.object({ amount: z.int() }),
          execute({ amount }) {
            charged ??= amount
            return 'paid'
          },
        }),
      },
      report: () => ({ charged: charged ?? 0 }),
    }
  },
  reward: {
    right: ({ task: { data }, report }) => Number(report.charged === totalOf(data)),
  },
  makeTasks: ({ count, split = 'all' }) =>
    Array.from({ length: count }, (_, index) => {
      const draw = random(seedOf('till', split, index))
      const first = Math.floor(draw() * goods.length)
      const second = (first + 1 + Math.floor(draw() * (goods.length - 1))) % goods.length
      const basket = [goods[first]!, goods[second]!]
      const prices = Object.fromEntries(basket.map(each => [each, 1 + Math.floor(draw() * 5)]))
      return { id: `${split}-${index}`, data: { basket, prices } }
    }),
})

/** Asks for both prices; every second time it charges something near the sum. */
export function show({ task, turn }: { task: { id: string; data: Sale }; turn: number }) {
  const { basket } = task.data
  if (turn < 2) return { tool: 'price', input: { good: basket[turn] } }
  if (turn === 3) return 'thank you'
  const draw = random(seedOf('shown', task.id))
  const error = draw() < 0.5 ? 0 : Math.floor(draw() * 5) - 2
  return { tool: 'charge', input: { amount: totalOf(task.data) + error } }
}
