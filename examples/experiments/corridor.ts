// A corridor whose end is decided at its beginning: the first turn takes one of four keys, and only one of them opens
// the last door. Between them lie turns that are easy and change nothing.
import { environment } from 'espalier'
import { z } from 'zod'
import { draws } from './draws.ts'

const keys = ['red', 'blue', 'green', 'gold'] as const
const doors = ['oak', 'iron', 'glass', 'stone', 'bone', 'straw', 'lead', 'jade'] as const
/** Which key opens which door; the policy has to find out. */
const opens = (door: (typeof doors)[number]) => keys[(3 * doors.indexOf(door) + 1) % keys.length]!

const sides = ['left', 'right', 'ahead'] as const

export const corridor = environment({
  name: 'corridor',
  task: z.object({
    door: z.enum(doors),
    /** Where the way goes on, room by room. */
    way: z.array(z.enum(sides)).min(1).max(64),
  }),
  open({ data: { door, way } }) {
    let key: string | undefined
    let room = 0
    let isLost = false
    return {
      opening: [{ role: 'user', content: `the last door is ${door}. take a key` }],
      respond(text) {
        const word = text.trim()
        if (key === undefined) key = word
        else if (word === way[room]) room++
        else isLost = true
        if (isLost || room === way.length) return undefined
        return `the way goes ${way[room]}`
      },
      report: () => ({ key: key ?? '', room, isOut: room === way.length && key === opens(door) }),
    }
  },
  reward: { out: ({ report }) => Number(report.isOut) },
  splits: ['train', 'held-out', 'shown'],
  makeTasks({ count, seed, split = 'train' }) {
    return Array.from({ length: count }, (_, index) => {
      const draw = draws(seed * 7919 + split.length * 104_729 + index * 31)
      const pick = <T>(of: readonly T[]): T => of[Math.floor(draw() * of.length)]!
      const way = Array.from({ length: 12 }, () => pick(sides))
      return { id: `corridor/${split}/${index}`, data: { door: pick(doors), way } }
    })
  },
})

/** Shows how one walks; its key is any of the four. */
export function show({ task, turn }: Shown) {
  const draw = draws(Number(task.id.split('/').at(-1)) * 13 + 5)
  if (turn === 0) return keys[Math.floor(draw() * keys.length)]
  return task.data.way[turn - 1]
}

interface Shown {
  readonly task: { readonly id: string; readonly data: { readonly way: readonly string[] } }
  readonly turn: number
}
