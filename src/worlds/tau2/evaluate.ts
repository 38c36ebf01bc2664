import type { PythonDict } from '@espalier/text/python'
import { equals, parseJson } from '@espalier/text/python'
import type { Tau2Domain } from './domain.ts'
import { isAsserted } from './framework.ts'
import type { Tau2Message, Tau2ToolCall } from './message.ts'
import type { Termination } from './orchestrator.ts'
import { type Dict, PythonError, type Value } from './program/values.ts'
import type { Prompts } from './prompts.ts'
import type { EnvAssertion, GoldenAction, RewardBasis, Tau2Task } from './task.ts'
import { type ToolType, toolsOf } from './toolkit.ts'
import { Tau2World, type WorldDifferences } from './world.ts'

/** Which parts of a conversation are looked at, and which of them count. */
export const evaluationTypes = [
  'env',
  'communicate',
  'action',
  'nl_assertions',
  'all',
  'all_with_nl_assertions',
  'all_ignore_basis',
  'all_with_nl_assertions_ignore_basis',
] as const

/** Which parts of a conversation are looked at, and which of them count. */
export type EvaluationType = (typeof evaluationTypes)[number]

/** What a conversation was worth and why, in the original's names. */
export interface RewardInfo {
  readonly reward: number
  readonly db_check: { readonly db_match: boolean; readonly db_reward: number } | null
  readonly env_assertions: readonly EnvAssertionCheck[] | null
  readonly action_checks: readonly ActionCheck[] | null
  readonly nl_assertions: readonly NlCheck[] | null
  readonly communicate_checks: readonly CommunicateCheck[] | null
  readonly reward_basis: readonly RewardBasis[] | null
  readonly reward_breakdown: Readonly<Partial<Record<RewardBasis, number>>> | null
  readonly info: Readonly<Record<string, unknown>> | null
}

/** Whether the world is at the end as a task asserts. */
export interface EnvAssertionCheck {
  readonly env_assertion: EnvAssertion
  readonly met: boolean
  readonly reward: number
}

/** Whether a call of the right solution was made. */
export interface ActionCheck {
  readonly action: GoldenAction
  readonly action_match: boolean
  readonly action_reward: number
  readonly tool_type: ToolType | null
}

/** A judge's verdict on an assertion. */
export interface NlCheck {
  readonly nl_assertion: string
  readonly met: boolean
  readonly justification: string
}

/** Whether the user was told something. */
export interface CommunicateCheck {
  readonly info: string
  readonly met: boolean
  readonly justification: string
}

/** Answers a prompt with the text of a reply. */
export type Judge = (prompt: { readonly system: string; readonly user: string }) => Promise<string>

/** What is evaluated, and how. */
export interface EvaluationOptions {
  readonly domain: Tau2Domain
  readonly prompts: Prompts
  readonly task: Tau2Task
  readonly messages: readonly Tau2Message[]
  readonly termination: Termination
  /** @default 'all' */
  readonly type?: EvaluationType
  readonly solo?: boolean
  /** Whether a tool's answer that differs from the recorded one is an error. @default true */
  readonly strict?: boolean
  /** Judges assertions; asked only if a task needs it. */
  readonly judge?: Judge
}

/** A part of a reward. */
interface Part extends Omit<RewardInfo, 'reward_basis'> {}

const EMPTY: Part = {
  reward: 1,
  db_check: null,
  env_assertions: null,
  action_checks: null,
  nl_assertions: null,
  communicate_checks: null,
  reward_breakdown: null,
  info: null,
}

/** The default of the original's model of rewards. */
const DEFAULT_BASIS: readonly RewardBasis[] = ['DB']

/** Evaluates a conversation as the original does. */
export async function evaluate(options: EvaluationOptions): Promise<RewardInfo> {
  const { task, termination, type = 'all' } = options
  if (termination !== 'user_stop' && termination !== 'agent_stop') {
    const note = `Simulation terminated prematurely. Termination reason: ${termination}`
    return { ...EMPTY, reward: 0, reward_basis: null, info: { note } }
  }
  if (task.criteria === null)
    return { ...EMPTY, reward_basis: null, info: { note: 'No evaluation criteria' } }
  switch (type) {
    case 'env': {
      const part = evaluateEnvironment(options)
      return { ...part, reward_basis: part.info ? DEFAULT_BASIS : task.criteria.basis }
    }
    case 'communicate':
      return { ...evaluateCommunication(task, options.messages), reward_basis: DEFAULT_BASIS }
    case 'action':
      return { ...evaluateActions(options), reward_basis: DEFAULT_BASIS }
    case 'nl_assertions':
      return { ...(await evaluateAssertions(options)), reward_basis: DEFAULT_BASIS }
    default:
      return evaluateAll(options, task.criteria.basis)
  }
}

/** Which bases each part answers for. */
const ANSWERS: readonly (readonly RewardBasis[])[] = [
  ['DB', 'ENV_ASSERTION'],
  ['ACTION'],
  ['NL_ASSERTION'],
  ['COMMUNICATE'],
]

async function evaluateAll(
  options: EvaluationOptions,
  basis: readonly RewardBasis[],
): Promise<RewardInfo> {
  const { type = 'all', task, messages } = options
  const ignoresBasis = type.endsWith('_ignore_basis')
  const judges = type.startsWith('all_with_nl') || (!ignoresBasis && basis.includes('NL_ASSERTION'))
  const env = evaluateEnvironment(options)
  const action = evaluateActions(options)
  const communicate = evaluateCommunication(task, messages)
  const nl = judges ? await evaluateAssertions(options) : null
  let reward = 1
  const breakdown: Partial<Record<RewardBasis, number>> = {}
  const ordered = ignoresBasis ? [env, action, communicate, nl] : [env, action, nl, communicate]
  const answers = ignoresBasis ? [[], [], [], []] : ANSWERS
  for (const [index, part] of ordered.entries()) {
    const counts =
      ignoresBasis || (answers[index] as readonly RewardBasis[]).some(one => basis.includes(one))
    if (part === null || !counts) continue
    Object.assign(breakdown, part.reward_breakdown)
    reward *= part.reward
  }
  const everyBasis: readonly RewardBasis[] = [
    'DB',
    'ENV_ASSERTION',
    'ACTION',
    'COMMUNICATE',
    ...(nl ? (['NL_ASSERTION'] as const) : []),
  ]
  return {
    reward,
    db_check: env.db_check,
    env_assertions: env.env_assertions,
    action_checks: action.action_checks,
    nl_assertions: nl?.nl_assertions ?? null,
    communicate_checks: communicate.communicate_checks,
    reward_basis: ignoresBasis ? everyBasis : basis,
    reward_breakdown: breakdown,
    info: {
      env: env.info,
      nl: nl?.info ?? null,
      communicate: communicate.info,
      action: action.info,
    },
  }
}

/** The world that the messages lead to, against the one that the task's own actions lead to. */
function evaluateEnvironment({
  domain,
  task,
  messages,
  solo = false,
  strict = true,
}: EvaluationOptions): Part {
  const criteria = task.criteria
  if (!criteria || (criteria.actions === null && criteria.envAssertions === null)) {
    const db_check = { db_match: true, db_reward: 1 }
    return { ...EMPTY, db_check, info: { note: 'No expected actions or env assertions' } }
  }
  const predicted = taskWorld(domain, task, { solo })
  predicted.replay(messages, { strict })
  const match = predicted.holds(goldenDifferences(domain, task))
  const db_reward = match ? 1 : 0
  const env_assertions = (criteria.envAssertions ?? []).map(assertion =>
    checkAssertion(predicted, assertion),
  )
  const assertionReward = env_assertions.every(({ met }) => met) ? 1 : 0
  const reward_breakdown: Partial<Record<RewardBasis, number>> = {}
  let reward = 1
  if (criteria.basis.includes('DB')) {
    reward_breakdown.DB = db_reward
    reward *= db_reward
  }
  if (criteria.basis.includes('ENV_ASSERTION')) {
    reward_breakdown.ENV_ASSERTION = assertionReward
    reward *= assertionReward
  }
  return {
    ...EMPTY,
    reward,
    db_check: { db_match: match, db_reward },
    env_assertions,
    reward_breakdown,
  }
}

/** A world in the state that a task begins with. */
export function taskWorld(
  domain: Tau2Domain,
  task: Tau2Task,
  { solo = false }: { readonly solo?: boolean } = {},
): Tau2World {
  return new Tau2World(domain, { from: domain.startOf(task), solo })
}

const golden = new WeakMap<Tau2Domain, WeakMap<Tau2Task, WorldDifferences>>()

/** What a task's own actions change. Their errors are ignored, and nothing is synced. */
function goldenDifferences(domain: Tau2Domain, task: Tau2Task): WorldDifferences {
  const known = golden.get(domain) ?? new WeakMap<Tau2Task, WorldDifferences>()
  golden.set(domain, known)
  let differences = known.get(task)
  if (differences === undefined) {
    differences = goldenWorld(domain, task).differences()
    known.set(task, differences)
  }
  return differences
}

function goldenWorld(domain: Tau2Domain, task: Tau2Task): Tau2World {
  const world = taskWorld(domain, task)
  for (const { requestor, name, arguments: given } of task.criteria?.actions ?? []) {
    try {
      world.call(requestor, name, given)
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
    }
  }
  return world
}

function checkAssertion(world: Tau2World, assertion: EnvAssertion): EnvAssertionCheck {
  const met = isAsserted(world.runFunction(assertion), assertion.assert_value, assertion.func_name)
  return { env_assertion: assertion, met, reward: met ? 1 : 0 }
}

function evaluateActions({ domain, task, messages }: EvaluationOptions): Part {
  const actions = task.criteria?.actions ?? []
  if (actions.length === 0) {
    return { ...EMPTY, info: { note: 'No actions to evaluate' }, reward_breakdown: { ACTION: 1 } }
  }
  const calls = messages.flatMap(message =>
    message.role === 'assistant' || message.role === 'user' ? (message.tool_calls ?? []) : [],
  )
  const action_checks = actions.map((action): ActionCheck => {
    const isMatched = calls.some(call => matchesAction(action, call))
    return {
      action,
      action_match: isMatched,
      action_reward: isMatched ? 1 : 0,
      tool_type: typeOf(domain, action.name),
    }
  })
  const reward = action_checks.every(({ action_match }) => action_match) ? 1 : 0
  return { ...EMPTY, reward, action_checks, reward_breakdown: { ACTION: reward } }
}

function typeOf({ agent, user }: Tau2Domain, name: string): ToolType | null {
  for (const kit of [user, agent]) {
    const tool = kit && toolsOf(kit.class).get(name)
    if (tool && !tool.discoverable) return tool.type
  }
  return null
}

/** Whether a call is the golden one. Without `compare_args`, only what the call itself gives is compared. */
export function matchesAction(
  action: Pick<GoldenAction, 'name' | 'arguments' | 'compare_args'>,
  call: Pick<Tau2ToolCall, 'name' | 'arguments'>,
): boolean {
  if (action.name !== call.name) return false
  const compared: readonly Value[] = action.compare_args ?? [...call.arguments.keys()]
  if (compared.length === 0) return true
  const restrict = (given: Dict): Dict =>
    new Map([...given].filter(([key]) => compared.includes(key)))
  return equals(restrict(call.arguments) as PythonDict, restrict(action.arguments) as PythonDict)
}

function evaluateCommunication(task: Tau2Task, messages: readonly Tau2Message[]): Part {
  const wanted = task.criteria?.communicateInfo ?? []
  if (wanted.length === 0) {
    return {
      ...EMPTY,
      info: { note: 'No communicate_info to evaluate' },
      reward_breakdown: { COMMUNICATE: 1 },
    }
  }
  const communicate_checks = wanted.map(info => checkCommunicated(info, messages))
  const reward = communicate_checks.every(({ met }) => met) ? 1 : 0
  return { ...EMPTY, reward, communicate_checks, reward_breakdown: { COMMUNICATE: reward } }
}

/** Whether some message of the agent contains the text; commas are removed from the message only. */
export function checkCommunicated(
  info: string,
  messages: readonly Tau2Message[],
): CommunicateCheck {
  for (const message of messages) {
    if (message.role !== 'assistant' || message.content === null || message.content.trim() === '')
      continue
    if (message.content.toLowerCase().replaceAll(',', '').includes(info.toLowerCase())) {
      const justification = `Information '${info}' communicated in the message:\n '${message.content}'`
      return { info, met: true, justification }
    }
  }
  return { info, met: false, justification: `Information '${info}' not communicated.` }
}

async function evaluateAssertions({
  task,
  messages,
  prompts,
  judge,
}: EvaluationOptions): Promise<Part> {
  const assertions = task.criteria?.nlAssertions ?? []
  if (assertions.length === 0) {
    const info = { note: 'No nl_assertions to evaluate' }
    return { ...EMPTY, nl_assertions: [], info, reward_breakdown: { NL_ASSERTION: 1 } }
  }
  if (judge === undefined) {
    throw new Error(
      `Task ${task.id} has assertions that a model must judge, and no judge was given.`,
    )
  }
  const conversation = messages
    .map(({ role, content }) => `${role}: ${content ?? 'None'}`)
    .join('\n')
  const nl_assertions = readVerdicts(await judge(prompts.judge(conversation, assertions)))
  const reward = nl_assertions.every(({ met }) => met) ? 1 : 0
  return { ...EMPTY, reward, nl_assertions, reward_breakdown: { NL_ASSERTION: reward } }
}

/** A judge's answer that cannot be read, so that there is no reward. */
class JudgeError extends Error {
  override name = 'JudgeError'
}

/** The number of verdicts is not checked, so an empty list counts as all met, as in the original. */
function readVerdicts(reply: string): readonly NlCheck[] {
  let read: unknown
  try {
    read = parseJson(reply)
  } catch (error) {
    throw new JudgeError(`The judge's reply is no JSON: ${(error as Error).message}`)
  }
  const results = read instanceof Map ? (read.get('results') ?? []) : undefined
  if (!Array.isArray(results)) throw new JudgeError("The judge's reply has no list of results.")
  return results.map(readVerdict)
}

function readVerdict(result: unknown): NlCheck {
  const field = (name: string): unknown => (result instanceof Map ? result.get(name) : undefined)
  const [nl_assertion, met, justification] = [
    field('expectedOutcome'),
    field('metExpectation'),
    field('reasoning'),
  ]
  if (
    typeof nl_assertion !== 'string' ||
    typeof met !== 'boolean' ||
    typeof justification !== 'string'
  ) {
    throw new JudgeError(
      'A result of the judge lacks expectedOutcome, metExpectation or reasoning.',
    )
  }
  return { nl_assertion, met, justification }
}
