// An on-call assistant of the AI SDK: reads a service's log, and knows who is affected; five tools.
import { generateText, type LanguageModel, stepCountIs, tool } from 'ai'
import { agent } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const services = ['auth', 'cart', 'mail', 'search', 'video', 'wallet'] as const
const causes = {
  'out of memory': 'restart',
  'deadlock in worker': 'restart',
  'unknown column': 'rollback',
  'missing template': 'rollback',
  'certificate expired': 'page',
  'disk failure': 'page',
  'slow client': 'ignore',
  'probe from scanner': 'ignore',
} as const
const service = z.enum(services)
const cause = z.enum(Object.keys(causes) as [keyof typeof causes])

const task = z.object({ service, cause, tier: z.enum(['paying', 'trial']) })
type Alarm = z.infer<typeof task>

/** What is right: for trial customers nobody is woken up. */
function rightFor({ cause, tier }: Alarm): string {
  const right = causes[cause]
  return right === 'page' && tier === 'trial' ? 'ignore' : right
}

async function answer(model: LanguageModel, alarm: Alarm) {
  let done = 'nothing'
  const act = (name: string, description: string) =>
    tool({
      description,
      inputSchema: z.object({ service }),
      execute: ({ service }) => {
        done = service === alarm.service ? name : 'wrong service'
        return 'ok'
      },
    })
  await generateText({
    model,
    prompt: `Alarm: ${alarm.service} fails for ${alarm.tier} customers.`,
    stopWhen: stepCountIs(4),
    tools: {
      log: tool({
        description: 'The last line of a log',
        inputSchema: z.object({ service }),
        execute: ({ service }) => (service === alarm.service ? alarm.cause : 'nothing unusual'),
      }),
      restart: act('restart', 'Starts a service again'),
      rollback: act('rollback', 'Brings the last release back'),
      page: act('page', 'Wakes somebody up'),
      ignore: act('ignore', 'Closes the alarm'),
    },
  })
  return { done }
}

export const pager = agent({
  name: 'pager',
  task,
  run: ({ task, model }) => answer(model, task),
  reward: { right: ({ task: { data }, report }) => Number(report.done === rightFor(data)) },
  makeTasks: ({ count, split = 'all' }) =>
    Array.from({ length: count }, (_, index) => {
      const draw = random(seedOf('pager', split, index))
      const one = <Item>(of: readonly Item[]): Item => of[Math.floor(draw() * of.length)]!
      const data = {
        service: one(services),
        cause: one(cause.options),
        tier: one(['paying', 'trial'] as const),
      }
      return { id: `${split}-${index}`, data }
    }),
})

/** Reads the log, then does anything. */
export function show({ task, turn }: { task: { id: string; data: Alarm }; turn: number }) {
  const { service } = task.data
  if (turn === 0) return { tool: 'log', input: { service } }
  if (turn === 2) return 'done'
  const guess = Math.floor(4 * random(seedOf('shown', task.id))())
  return { tool: ['restart', 'rollback', 'page', 'ignore'][guess]!, input: { service } }
}
