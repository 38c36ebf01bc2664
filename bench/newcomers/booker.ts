// A meeting-room booker as its author wrote it for the AI SDK: four tools, one right room or none.
import { generateText, type LanguageModel, stepCountIs, tool } from 'ai'
import { agent } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const names = ['Aspen', 'Birch', 'Cedar', 'Dogwood', 'Elm', 'Fir', 'Ginkgo', 'Hazel'] as const
const sizes = [2, 4, 6, 8, 12, 20] as const
const room = z.enum(names)

const task = z.object({
  people: z.int(),
  rooms: z.array(z.object({ name: room, seats: z.int(), isFree: z.boolean() })),
})
type Meeting = z.infer<typeof task>

async function book(model: LanguageModel, { people, rooms }: Meeting) {
  let done = 'nothing'
  const find = (name: string) => rooms.find(each => each.name === name)
  const { text } = await generateText({
    model,
    system: 'You book meeting rooms.',
    prompt: `Book a room for ${people} people.`,
    stopWhen: stepCountIs(8),
    tools: {
      rooms: tool({
        description: 'The rooms of this floor',
        inputSchema: z.object({}),
        execute: () => rooms.map(each => `${each.name} has ${each.seats} seats`).join(', '),
      }),
      calendar: tool({
        description: 'Whether a room is free',
        inputSchema: z.object({ room }),
        execute: ({ room }) => (find(room)?.isFree ? 'free' : 'taken'),
      }),
      book: tool({
        description: 'Books a room',
        inputSchema: z.object({ room }),
        execute: ({ room }) => {
          done = room
          return 'booked'
        },
      }),
      decline: tool({
        description: 'Says that no room fits',
        inputSchema: z.object({}),
        execute: () => {
          done = 'declined'
          return 'declined'
        },
      }),
    },
  })
  return { done, text }
}

export const booker = agent({
  name: 'booker',
  task,
  run: ({ task, model }) => book(model, task),
  reward: {
    right: ({ task: { data }, report }) => {
      const fitting = data.rooms.filter(({ seats, isFree }) => isFree && seats >= data.people)
      return Number(
        fitting.length === 0
          ? report.done === 'declined'
          : fitting.some(({ name }) => name === report.done),
      )
    },
  },
  makeTasks: ({ count, split = 'all' }) =>
    Array.from({ length: count }, (_, index) => {
      const draw = random(seedOf('booker', split, index))
      const floor = [...names].sort(() => draw() - 0.5).slice(0, 3)
      const rooms = floor.map(name => ({
        name,
        seats: sizes[Math.floor(draw() * sizes.length)]!,
        isFree: draw() < 0.6,
      }))
      return {
        id: `${split}-${index}`,
        data: { people: 2 + Math.floor(draw() * 9), rooms },
      }
    }),
})

/** Looks at the rooms, asks for one of them, and books it if it is free: nobody counts the seats. */
export function show({ task, turn, messages }: Shown) {
  const { rooms } = task.data
  const chosen = rooms[Math.floor(rooms.length * random(seedOf('shown', task.id))())]!
  if (turn === 0) return { tool: 'rooms' }
  if (turn === 1) return { tool: 'calendar', input: { room: chosen.name } }
  if (turn === 3) return 'done'
  const isFree = messages.at(-1)?.content === 'free'
  return isFree ? { tool: 'book', input: { room: chosen.name } } : { tool: 'decline' }
}

interface Shown {
  readonly task: { readonly id: string; readonly data: Meeting }
  readonly turn: number
  readonly messages: readonly { readonly content?: unknown }[]
}
