// What is right in three of the environments, shown without a mistake: what imitation alone reaches then.
import type { booker as bookerAgent } from './booker.ts'
import type { library as libraryWorld } from './library.ts'
import type { picker as pickerWorld } from './picker.ts'

interface Shown<World extends { readTask(data: unknown): unknown }> {
  readonly task: { readonly data: ReturnType<World['readTask']> }
  readonly turn: number
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
}

/** Asks for one room with enough seats after another, and books the first that is free. */
export function booker({ task, turn, messages }: Shown<typeof bookerAgent>) {
  const { people, rooms } = task.data
  if (turn === 0) return { tool: 'rooms' }
  const said = messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
  const last = said.at(-1)
  if (last === 'booked' || last === 'declined') return 'done'
  const fitting = rooms.filter(({ seats }) => seats >= people)
  const asked = said.length - 1
  if (last === 'free') return { tool: 'book', input: { room: fitting[asked - 1]!.name } }
  const next = fitting[asked]
  return next ? { tool: 'calendar', input: { room: next.name } } : { tool: 'decline' }
}

/** Reserves the copy in the wanted form, or wishes for one. */
export function library({ task, turn }: Shown<typeof libraryWorld>) {
  const { title, form, copies } = task.data
  if (turn === 0) return { tool: 'search', input: { title } }
  if (turn === 2) return 'done'
  const fitting = copies.find(each => each.form === form)
  return fitting
    ? { tool: 'reserve', input: { number: fitting.number } }
    : { tool: 'wish', input: { form } }
}

/** Counts all three shelves, then picks from the fullest. */
export function picker({ task, turn }: Shown<typeof pickerWorld>) {
  const { item, stock } = task.data
  const shelves = ['north', 'east', 'south'] as const
  if (turn < 3) return { tool: 'count', input: { item, shelf: shelves[turn] } }
  if (turn === 4) return 'done'
  const most = Math.max(...stock)
  if (most === 0) return { tool: 'missing' }
  return { tool: 'pick', input: { item, shelf: shelves[stock.indexOf(most)] } }
}
