// A warehouse picker: three tools, ten names, and the fullest of three shelves is the right one.
import { environment, tool } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const names = [
  'bolts',
  'cables',
  'drills',
  'gloves',
  'hinges',
  'lamps',
  'nails',
  'paint',
  'ropes',
  'tape',
] as const
const shelves = ['north', 'east', 'south'] as const
const shelf = z.enum(shelves)

const task = z.object({ item: z.enum(names), stock: z.array(z.int()).length(3) })
type Order = z.infer<typeof task>

export const picker = environment({
  name: 'picker',
  task,
  open({ data }) {
    let picked: string | undefined
    return {
      opening: [
        { role: 'system', content: 'Pick from the shelf that has most of it.' },
        { role: 'user', content: `One box of ${data.item}.` },
      ],
      tools: {
        count: tool({
          description: 'How many of an item a shelf has',
          inputSchema: z.object({ item: z.enum(names), shelf }),
          execute: ({ item, shelf }) =>
            item === data.item ? `${data.stock[shelves.indexOf(shelf)]}` : '0',
        }),
        pick: tool({
          description: 'Takes one from a shelf',
          inputSchema: z.object({ item: z.enum(names), shelf }),
          execute({ item, shelf }) {
            picked ??= item === data.item ? shelf : 'wrong item'
            return 'picked'
          },
        }),
        missing: tool({
          description: 'Says that it is on no shelf',
          inputSchema: z.object({}),
          execute() {
            picked ??= 'missing'
            return 'noted'
          },
        }),
      },
      report: () => ({ picked: picked ?? 'nothing' }),
    }
  },
  reward: { right: ({ task: { data }, report }) => Number(rightFor(data).includes(report.picked)) },
})

function rightFor({ stock }: Order): readonly string[] {
  const most = Math.max(...stock)
  if (most === 0) return ['missing']
  return shelves.filter((_, index) => stock[index] === most)
}

/** Orders as somebody exports them from a system: one per line of a file. */
export function orders(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf('picker', index))
    const isOut = draw() < 0.15
    return {
      id: `order-${index}`,
      item: names[Math.floor(draw() * names.length)]!,
      stock: shelves.map(() => (isOut ? 0 : Math.floor(draw() * 8))),
    }
  })
}

/** Counts all three shelves, then picks from any. */
export function show({ task, turn }: { task: { id: string; data: Order }; turn: number }) {
  const { item } = task.data
  if (turn < 3) return { tool: 'count', input: { item, shelf: shelves[turn] } }
  if (turn === 4) return 'done'
  const guess = Math.floor(4 * random(seedOf('shown', task.id))())
  return guess === 3
    ? { tool: 'missing' }
    : { tool: 'pick', input: { item, shelf: shelves[guess] } }
}
