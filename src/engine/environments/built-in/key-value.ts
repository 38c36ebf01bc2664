import { z } from 'zod'
import { isExactAnswer } from '../../../base/core/answer.ts'
import type { Environment, MakeTasksOptions, Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { random, seedOf, shuffle } from '../../../base/math/random.ts'
import { environment } from '../environment.ts'
import { late, lateSchema } from '../late.ts'
import type { WorldBehaviour } from '../opened-world.ts'
import { tool } from '../tools/tool.ts'
import { asksOnce, asksOnceError, openingOf, promptFields } from './prompt-task.ts'

function makeSchema() {
  const store = z.record(z.string(), z.string())
  return z
    .object({
      ...promptFields(),
      /** What the store holds at first. */
      store: store.default({}),
      /** What it should hold in the end. */
      want: store.optional(),
    })
    .refine(asksOnce, { error: asksOnceError })
    .refine(task => task.want !== undefined || task.answer !== undefined, {
      error: 'give `want` (the store in the end), `answer`, or both',
    })
}

/** Task data of `key-value`. */
export type KeyValueTask = z.output<ReturnType<typeof makeSchema>>

interface KeyValueReport {
  readonly store: Readonly<Record<string, string>>
}

/** A store of texts behind four tools that share it; rewarded by what it holds in the end and by the answer. */
export function keyValue(): Environment<KeyValueTask> {
  return environment({
    name: 'key-value',
    task: lateSchema(makeSchema),
    open: ({ data }) => ({
      opening: openingOf(data),
      ...behaviourOf(new Map(Object.entries(data.store))),
    }),
    reward: {
      right: ({ task: { data }, report, answer }) =>
        Number(
          isWanted(report, data.want) && (data.answer === undefined || isExactAnswer(answer, data)),
        ),
    },
    makeTasks,
    splits: ['train', 'test'],
  })
}

function behaviourOf(entries: Map<string, string>): WorldBehaviour<KeyValueReport> {
  return {
    tools: toolsOf(entries),
    report: () => ({ store: Object.fromEntries([...entries].sort()) }),
    fork: () => behaviourOf(new Map(entries)),
    anchor: () => JSON.stringify([...entries].sort()),
  }
}

/** Made once: every new schema would be read, and its check compiled, again. */
const inputSchemas = late(() => ({
  none: z.object({}),
  key: z.object({ key: z.string() }),
  entry: z.object({ key: z.string(), value: z.string() }),
}))

function toolsOf(entries: Map<string, string>) {
  const inputs = inputSchemas()
  const read = (key: string): string => {
    const value = entries.get(key)
    if (value === undefined) throw new Error(`nothing is stored under "${key.slice(0, 80)}"`)
    return value
  }
  return {
    keys: tool({
      description: 'Lists all keys of the store.',
      inputSchema: inputs.none,
      execute: () => [...entries.keys()].sort(),
    }),
    get: tool({
      description: 'Gives the text stored under a key.',
      inputSchema: inputs.key,
      execute: ({ key }) => read(key),
    }),
    put: tool({
      description: 'Stores a text under a key.',
      inputSchema: inputs.entry,
      execute({ key, value }) {
        entries.set(key, value)
        return 'stored'
      },
    }),
    remove: tool({
      description: 'Removes a key and its text.',
      inputSchema: inputs.key,
      execute({ key }) {
        read(key)
        entries.delete(key)
        return 'removed'
      },
    }),
  }
}

function isWanted({ store }: KeyValueReport, want: KeyValueTask['want']): boolean {
  if (!want) return true
  const keys = Object.keys(want)
  return keys.length === Object.keys(store).length && keys.every(key => store[key] === want[key])
}

const words = [
  'apple',
  'bread',
  'cheese',
  'dates',
  'eggs',
  'flour',
  'grapes',
  'honey',
  'jam',
  'kale',
]

function makeTasks({
  count,
  seed,
  split = 'train',
}: MakeTasksOptions): readonly Task<KeyValueTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'key-value', split, index))
    const [from, to, ...others] = shuffle(words, draw) as [string, string, ...string[]]
    const held = [from, ...others.slice(0, 2)]
    const store = Object.fromEntries(held.map(key => [key, String(Math.floor(draw() * 1000))]))
    const id = `key-value/${split}/${index}` as TaskId
    if (draw() < 0.5) {
      const prompt = `What is stored under ${from}? Answer with the text only.`
      return { id, data: { prompt, store, want: store, answer: store[from]! } }
    }
    const { [from]: moved, ...rest } = store
    const prompt = `Move what is stored under ${from} to ${to}, then say done.`
    return { id, data: { prompt, store, want: { ...rest, [to]: moved! } } }
  })
}
