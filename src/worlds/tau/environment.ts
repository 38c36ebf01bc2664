import { textOf } from '@espalier/text'
import type {
  Environment,
  MakeTasksOptions,
  OpenCall,
  Task,
  World,
} from '../../base/core/environment.ts'
import { across } from '../../base/core/failure.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { type OpenUser, spoken, type UserSpent } from '../../engine/environments/users/user.ts'
import { type AgentKind, chooseFewShots, tauAgent } from './agents.ts'
import { openConversation } from './conversation.ts'
import type { TauDomain } from './domain.ts'
import { splitsFrom } from './options.ts'
import type { TauReport, UserPrice } from './report.ts'
import type { TauTask, TauTaskData } from './task.ts'
import { makeTauWorld } from './world.ts'

/** How tau-bench is played. */
export interface TauEnvironmentOptions {
  readonly domain: TauDomain
  /** Who the policy talks to. */
  readonly user: OpenUser
  /** How tools are described to the policy, and how its actions are read. @default 'tool-calling' */
  readonly agent?: AgentKind
  /** The split that tasks come from unless another is named. @default the domain's first */
  readonly split?: string
  /** Mends upstream's own bugs. @default false */
  readonly fixed?: boolean
  /** Tells the policy to make one call at a time and to trust only what tools answer. @default false */
  readonly toolInstruction?: boolean
  /** What the model that plays the user costs. @default unknown */
  readonly price?: UserPrice
}

const defaults = { agent: 'tool-calling' as AgentKind, fixed: false, toolInstruction: false }

type Settings = TauEnvironmentOptions & typeof defaults

const TOOL_INSTRUCTION = `

# Calling tools
- Make at most one call per turn, and wait for its result before the next one.
- Whatever changes data must be done by a tool; saying that it is done does not do it.
- Tell the user that something was done only after the tool has confirmed it.`

/** tau-bench as an environment: a conversation with a user, tools over a database, its own reward. */
export function tauEnvironment(options: TauEnvironmentOptions): Environment<TauTaskData> {
  const settings = { ...defaults, ...options }
  const { domain } = settings
  const known = Object.keys(domain.tasks) as [string, ...string[]]
  const splits = splitsFrom(`tau-bench ${domain.name}`, known, settings.split)
  return {
    name: `tau:${domain.name}`,
    splits,
    readTask: data => readTask(domain, data, splits[0]),
    makeTasks: wanted => makeTasks(domain, wanted, splits[0]),
    open: (task, call) => openWorld(settings, task, call),
    reward: { tau: ({ report }) => (report as TauReport).reward },
  }
}

function readTask(domain: TauDomain, data: unknown, defaultSplit: string): TauTaskData {
  const { split = defaultSplit, index } = (data ?? {}) as Partial<Record<string, unknown>>
  if (typeof split !== 'string' || !Number.isInteger(index)) {
    throw new TypeError(
      'A task of tau-bench has an `index`, and a `split` unless it is the default.',
    )
  }
  const read = { split, index: index as number }
  taskAt(domain, read)
  return read
}

function taskAt({ name, tasks }: TauDomain, { split, index }: TauTaskData): TauTask {
  const list = tasks[split]
  if (list === undefined) {
    const known = Object.keys(tasks).join(', ')
    throw new RangeError(`tau-bench ${name} has no split "${split}". Known: ${known}.`)
  }
  const task = list[index]
  if (task !== undefined) return task
  throw new RangeError(
    `tau-bench ${name} ${split} has tasks 0 to ${list.length - 1}, not ${index}.`,
  )
}

/** The first tasks of a split; more than it has go through it again, under ids of their own. */
function makeTasks(
  domain: TauDomain,
  { count, split }: MakeTasksOptions,
  defaultSplit: string,
): readonly Task<TauTaskData>[] {
  const chosen = split ?? defaultSplit
  const size = domain.tasks[chosen]?.length ?? 0
  return Array.from({ length: count }, (_, number) => {
    const data = { split: chosen, index: size === 0 ? number : number % size }
    taskAt(domain, data)
    const pass = size === 0 ? 0 : Math.floor(number / size)
    const id = `${domain.name}/${chosen}/${data.index}${pass === 0 ? '' : `/${pass}`}`
    return { id: id as TaskId, data }
  })
}

async function openWorld(
  settings: Settings,
  { data }: Task<TauTaskData>,
  call: OpenCall,
): Promise<World> {
  call.signal.throwIfAborted()
  const { domain, fixed, agent: kind, toolInstruction, price } = settings
  const task = taskAt(domain, data)
  const user = settings.user({ seed: call.seed })
  const fewShots = kind === 'few-shot' ? drawFewShots(domain, call.seed) : []
  const agent = tauAgent(domain, { kind, fewShots })
  const system = toolInstruction ? `${agent.system}${TOOL_INSTRUCTION}` : agent.system
  const said = call.replay?.opening.findLast(message => message.role === 'user')
  if (said) {
    const exchange = { kind: 'open', said: task.instruction, answer: textOf(said.content) } as const
    user.recall(exchange, call.replay?.spent as UserSpent | undefined)
  }
  const words = said
    ? textOf(said.content)
    : await across('user', call, async () => spoken(await user.open(task.instruction, call)))
  return openConversation({
    opening: [
      { role: 'system', content: system },
      { role: 'user', content: words },
    ],
    world: makeTauWorld(domain, task, { fixed }),
    agent,
    user,
    data,
    ...(price && { price }),
    ...(call.clock && { clock: call.clock }),
  })
}

function drawFewShots({ fewShots }: TauDomain, seed: number): readonly string[] {
  return chooseFewShots(fewShots, { random: random(seedOf(seed, 'few-shot')) })
}
