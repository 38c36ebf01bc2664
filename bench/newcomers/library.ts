// A library: three copies of a book come back from a search, and the one in the wanted form is reserved by its number.
import { environment, tool } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const titles = ['Dune', 'Emma', 'Ivanhoe', 'Kim', 'Middlemarch', 'Persuasion', 'Ulysses'] as const
const forms = ['paper', 'audio', 'large print', 'braille'] as const
const form = z.enum(forms)
const copy = z.object({ number: z.int(), form })

const task = z.object({ title: z.enum(titles), form, copies: z.array(copy) })
type Wish = z.infer<typeof task>

export const library = environment({
  name: 'library',
  task,
  open({ data }) {
    let reserved = 'nothing'
    return {
      opening: [
        { role: 'system', content: 'Reserve what the reader wants, or put it on the list.' },
        { role: 'user', content: `${data.title} in ${data.form}, please.` },
      ],
      tools: {
        search: tool({
          description: 'The copies of a title',
          inputSchema: z.object({ title: z.enum(titles) }),
          execute: ({ title }) =>
            title === data.title
              ? data.copies.map(({ number, form }) => `${number} ${form}`).join('\n')
              : 'no such title',
        }),
        reserve: tool({
          description: 'Reserves a copy by its number',
          inputSchema: z.object({ number: z.int() }),
          execute({ number }) {
            reserved = `${number}`
            return 'reserved'
          },
        }),
        wish: tool({
          description: 'Puts a form that is not there on the list',
          inputSchema: z.object({ form }),
          execute({ form }) {
            reserved = form
            return 'noted'
          },
        }),
      },
      report: () => ({ reserved }),
    }
  },
  reward: {
    right: ({ task: { data }, report }) => {
      const fitting = data.copies.find(each => each.form === data.form)
      return Number(report.reserved === (fitting ? `${fitting.number}` : data.form))
    },
  },
})

/** Wishes of readers, one per line of a file. */
export function wishes(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf('library', index))
    const one = <Item>(of: readonly Item[]): Item => of[Math.floor(draw() * of.length)]!
    const copies = [...forms]
      .sort(() => draw() - 0.5)
      .slice(0, 3)
      .map(form => ({ number: 10 + Math.floor(draw() * 90), form }))
    return { id: `wish-${index}`, title: one(titles), form: one(forms), copies }
  })
}

/** Searches, and reserves any copy or wishes for the form. */
export function show({ task, turn }: { task: { id: string; data: Wish }; turn: number }) {
  const { title, form, copies } = task.data
  if (turn === 0) return { tool: 'search', input: { title } }
  if (turn === 2) return 'done'
  const guess = Math.floor(4 * random(seedOf('shown', task.id))())
  const chosen = copies[guess]
  return chosen
    ? { tool: 'reserve', input: { number: chosen.number } }
    : { tool: 'wish', input: { form } }
}
