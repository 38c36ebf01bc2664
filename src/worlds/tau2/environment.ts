import type { ToolDefinition } from '@espalier/text'
import type {
  Environment,
  MakeTasksOptions,
  OpenCall,
  Task,
  World,
} from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { splitsFrom } from '../tau/options.ts'
import type { UserPrice } from '../tau/report.ts'
import { openConversation } from './conversation.ts'
import type { Tau2Domain } from './domain.ts'
import { type EvaluationType, type Judge, taskWorld } from './evaluate.ts'
import { Orchestrator, type OrchestratorLimits } from './orchestrator.ts'
import { Prompts, SOLO_STOP } from './prompts.ts'
import type { Tau2Report } from './report.ts'
import { toolDefinitions } from './schema.ts'
import { splitTasks } from './splits.ts'
import type { Tau2Task } from './task.ts'
import { type Tau2User, userToolNames, userTools } from './user.ts'

/** The kinds of instructions that the agent can get. */
export const agentKinds = ['llm', 'ground-truth', 'solo'] as const

/** What the agent's instructions contain: a user to talk to, also the steps of a right solution, or no user. */
export type AgentKind = (typeof agentKinds)[number]

/** How tau2-bench is played. */
export interface Tau2EnvironmentOptions {
  readonly domain: Tau2Domain
  /** Who the policy talks to; nobody if the agent is alone. */
  readonly user: Tau2User
  /** @default 'llm' */
  readonly agent?: AgentKind
  /** The split that tasks come from unless another is named. @default 'test' */
  readonly split?: string
  /** Judges what users wanted in words; tasks that need it are refused without it. */
  readonly judge?: Judge
  /** @default 'all' */
  readonly evaluation?: EvaluationType
  /** @default 200 steps and 10 errors, as the original's command line */
  readonly limits?: OrchestratorLimits
  /** What the model that plays the user costs. @default unknown */
  readonly price?: UserPrice
}

/** Which task to attempt. */
export interface Tau2TaskData {
  readonly split: string
  readonly id: string
}

interface Settings extends Tau2EnvironmentOptions {
  readonly agent: AgentKind
  readonly evaluation: EvaluationType
  readonly prompts: Prompts
  readonly splits: ReadonlyMap<string, readonly Tau2Task[]>
}

/** tau2-bench as an environment: a user with tools of their own, documents, its own rewards. */
export function tau2Environment(options: Tau2EnvironmentOptions): Environment<Tau2TaskData> {
  const { domain } = options
  const splits = splitTasks(domain)
  const settings: Settings = {
    agent: 'llm',
    evaluation: 'all',
    ...options,
    limits: { maxSteps: 200, ...options.limits },
    prompts: new Prompts(domain.checkout),
    splits,
  }
  const known = [...splits.keys()] as [string, ...string[]]
  const names = splitsFrom(`tau2-bench ${domain.name}`, known, options.split)
  if (settings.agent === 'solo') domain.policy({ solo: true })
  return {
    name: `tau2:${domain.name}`,
    splits: names,
    readTask: data => readTask(settings, data, names[0]),
    makeTasks: wanted => makeTasks(settings, wanted, names[0]),
    // Splits such as `base` repeat tasks of other splits.
    taskKey: ({ data }) => data.id,
    open: (task, call) => openWorld(settings, task, call),
    reward: { tau2: ({ report }) => (report as Tau2Report).reward },
  }
}

function readTask(settings: Settings, data: unknown, preset: string): Tau2TaskData {
  const { split = preset, id } = (data ?? {}) as Partial<Record<string, unknown>>
  if (typeof split !== 'string' || typeof id !== 'string') {
    throw new TypeError(
      'A task of tau2-bench has an `id`, a text, and a `split` unless it is the default.',
    )
  }
  taskOf(settings, { split, id })
  return { split, id }
}

function tasksIn({ domain, splits }: Settings, split: string): readonly Tau2Task[] {
  const tasks = splits.get(split)
  if (tasks) return tasks
  const known = [...splits.keys()].join(', ')
  throw new RangeError(`tau2-bench ${domain.name} has no split "${split}". Known: ${known}.`)
}

function taskOf(settings: Settings, { split, id }: Tau2TaskData): Tau2Task {
  const task = tasksIn(settings, split).find(one => one.id === id)
  if (task) return task
  throw new RangeError(
    `tau2-bench ${settings.domain.name} has no task "${id}" in its split ${split}.`,
  )
}

/** The first tasks of a split; more than it has go through it again, under ids of their own. */
function makeTasks(
  settings: Settings,
  { count, split }: MakeTasksOptions,
  preset: string,
): readonly Task<Tau2TaskData>[] {
  const chosen = split ?? preset
  const tasks = tasksIn(settings, chosen)
  return Array.from({ length: tasks.length === 0 ? 0 : count }, (_, number) => {
    const { id } = tasks[number % tasks.length] as Tau2Task
    const pass = Math.floor(number / tasks.length)
    const name = `${settings.domain.name}/${chosen}/${id}${pass === 0 ? '' : `/${pass}`}`
    return { id: name as TaskId, data: { split: chosen, id } }
  })
}

const NEEDS_JUDGE = 'has assertions that a model must judge: name one with judge=URI'

async function openWorld(
  settings: Settings,
  { data }: Task<Tau2TaskData>,
  call: OpenCall,
): Promise<World> {
  call.signal.throwIfAborted()
  const { domain, agent, prompts, limits, judge, price, user, evaluation } = settings
  const task = taskOf(settings, data)
  if (needsJudge(task, evaluation) && !judge) throw new Error(`Task ${task.id} ${NEEDS_JUDGE}.`)
  const solo = agent === 'solo'
  const orchestrator = new Orchestrator(taskWorld(domain, task, { solo }), limits)
  orchestrator.begin()
  const hasTools = userToolNames(domain, task) !== null
  const parts = {
    orchestrator,
    task,
    split: data.split,
    prompts,
    system: systemOf(settings, task),
    tools: agentTools(domain, solo),
    user,
    userSide: { system: prompts.user(task.scenario, { hasTools }), tools: userTools(domain, task) },
    seed: call.seed,
    evaluation,
    ...(judge && { judge }),
    ...(price && { price }),
    ...(call.clock && { clock: call.clock }),
  }
  return await openConversation(parts, call)
}

/** Whether a task's reward asks a judge. */
export function needsJudge({ criteria }: Tau2Task, evaluation: EvaluationType): boolean {
  if (criteria === null || (criteria.nlAssertions ?? []).length === 0) return false
  return (
    evaluation.includes('nl_assertions') ||
    (evaluation === 'all' && criteria.basis.includes('NL_ASSERTION'))
  )
}

function systemOf({ agent, domain, prompts }: Settings, task: Tau2Task): string {
  const policy = domain.policy({ task, solo: agent === 'solo' })
  if (agent === 'solo') return prompts.soloAgent(policy, task)
  return agent === 'ground-truth' ? prompts.groundTruthAgent(policy, task) : prompts.agent(policy)
}

/** The agent's tools; without a user also the user's tools, and one to end with. */
function agentTools({ agent, user }: Tau2Domain, solo: boolean): readonly ToolDefinition[] {
  if (!solo) return toolDefinitions(agent)
  const stop: ToolDefinition = {
    type: 'function',
    function: {
      name: SOLO_STOP,
      description: 'Call this function when you are done with the task.',
      parameters: { properties: {}, title: 'parameters', type: 'object' },
    },
  }
  return [...toolDefinitions(agent), ...(user ? toolDefinitions(user) : []), stop]
}
