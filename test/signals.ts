import { z } from 'zod'
import { random, seedOf } from '../src/base/math/random.ts'
import { environment } from '../src/engine/environments/environment.ts'
import { tool } from '../src/engine/environments/tools/tool.ts'
import type { Show } from '../src/run/demonstrations/demonstrations.ts'

const colours = ['red', 'amber', 'green'] as const
const actions = { red: 'stop', amber: 'wait', green: 'go' } as const

/** A tiny environment: look at a signal, then say what it asks for. For tests of learning. */
export const signals = environment({
  name: 'signals',
  task: z.object({ colour: z.enum(colours), street: z.int(), oracle: z.string().optional() }),
  open({ data }) {
    const look = tool({ inputSchema: z.object({}), execute: () => data.colour })
    const content = `street ${data.street}`
    return { opening: [{ role: 'user', content }], tools: { look } }
  },
  reward: {
    right: ({ task: { data }, answer }) => Number(answer === actions[data.colour]),
  },
})

/** Tasks whose streets and colours are the seed's. */
export function signalTasks(count: number, seed: number): readonly SignalData[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'signals', index))
    const colour = colours[Math.floor(draw() * 3)]!
    const street = 1 + Math.floor(draw() * 20)
    return { id: `${index}`, colour, street, oracle: actions[colour] }
  })
}

/** What a task holds, with its id. */
export interface SignalData {
  readonly id: string
  readonly colour: (typeof colours)[number]
  readonly street: number
  readonly oracle: string
}

/** Looks, then says one of the words: the right one a little more often than the others. */
export function showSignals(seed: number, knowing: number): Show<{ colour: string }> {
  return ({ task, turn }) => {
    const { colour } = task.data
    if (turn === 0) return { tool: 'look' }
    if (turn > 1) return undefined
    const draw = random(seedOf(seed, 'show', task.id))
    const words = Object.values(actions)
    if (draw() < knowing) return actions[colour as keyof typeof actions]
    return words[Math.floor(draw() * words.length)]!
  }
}
