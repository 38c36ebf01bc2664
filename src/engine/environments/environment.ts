import { inspect } from 'node:util'
import type { Message } from '@espalier/text'
import type {
  Environment,
  MadeTask,
  MakeTasksOptions,
  OpenCall,
  Task,
  World,
} from '../../base/core/environment.ts'
import { changeImages } from '../../base/core/image.ts'
import type { RewardPart } from '../../base/core/reward.ts'
import type { StandardSchema } from '../../base/core/tool.ts'
import { makeCleanUp } from './clean-up.ts'
import type { OpenedWorld, OpenWorldCall } from './opened-world.ts'
import { describeIssue } from './tools/schema.ts'
import { checkBehaviour, holdsParts, isNonEmpty, toWorld } from './world.ts'

/** Everything that makes an environment; what rewards see is inferred from `task` and `open`. */
export interface EnvironmentDefinition<Data, Report> {
  readonly name: string
  /** A zod or other Standard Schema of a task's data. */
  readonly task: StandardSchema<unknown, Data>
  open(call: OpenWorldCall<Data>): OpenedWorld<Report> | Promise<OpenedWorld<Report>>
  /** The named parts of the reward. Write it after `open`, whose report it sees. */
  readonly reward?: Readonly<Record<string, RewardPart<NoInfer<Data>, NoInfer<Report>>>>
  /** Whether a turn may make several calls; with `one`, those after the first get an error. @default 'many' */
  readonly calls?: 'one' | 'many'
  /** Makes a turn without a call a miss that is answered with a nudge; otherwise it is the answer. */
  readonly nudge?: Nudge
  makeTasks?(options: MakeTasksOptions): readonly MadeTask<NoInfer<Data>>[]
  readonly splits?: readonly string[]
  /** Conversations that show how it is done, each from its question on; `--shots` shows them. */
  readonly demonstrations?: readonly (readonly Message[])[]
  /** Releases what is held for all worlds, such as a pool. */
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** The answer to a turn without a call, and how many such turns in a row end the attempt. */
export interface Nudge {
  readonly text: string
  readonly misses: number
}

/** Makes an environment from its task schema, how its worlds open, and how they are rewarded. */
export function environment<Data, Report = undefined>(
  definition: EnvironmentDefinition<Data, Report>,
): Environment<Data> {
  checkDefinition(definition)
  const { name, makeTasks, splits, demonstrations } = definition
  const dispose = definition[Symbol.asyncDispose]
  return {
    name,
    readTask: data => readTask(definition, data),
    open: (task, call) => openWorld(definition, task, call),
    // Safe: a reward only gets reports of this environment's own worlds.
    reward: (definition.reward ?? {}) as Environment<Data>['reward'],
    ...(makeTasks && {
      makeTasks(options) {
        checkSplit(definition, options)
        return makeTasks.call(definition, options) as readonly Task<Data>[]
      },
    }),
    ...(splits && { splits }),
    ...(demonstrations && { demonstrations }),
    ...(dispose && { [Symbol.asyncDispose]: () => dispose.call(definition) }),
  }
}

const options = [
  ...['name', 'task', 'open', 'reward', 'calls', 'nudge', 'makeTasks', 'splits'],
  'demonstrations',
]

function checkDefinition<Data, Report>(definition: EnvironmentDefinition<Data, Report>): void {
  const { name, task, open, calls, nudge } = definition
  if (!name) throw new TypeError('An environment needs a name.')
  for (const key of Object.keys(definition)) {
    if (options.includes(key)) continue
    const known = options.join(', ')
    throw new TypeError(`Environment "${name}" has no option "${key}". Known: ${known}.`)
  }
  if (!isSchema(task)) {
    const old = isOldZod(task) ? ' This one is of an old zod: `npm i zod@4`.' : ''
    throw new TypeError(
      `Environment "${name}" needs \`task\`: a zod or other Standard Schema.${old}`,
    )
  }
  if (typeof open !== 'function') {
    throw new TypeError(`Environment "${name}" needs \`open\`: a function that opens a world.`)
  }
  checkReward(definition)
  if (calls !== undefined && calls !== 'one' && calls !== 'many') {
    throw new TypeError(`Environment "${name}": calls is "${calls}"; it is "one" or "many".`)
  }
  if (nudge && !(nudge.misses >= 1)) {
    throw new RangeError(`Environment "${name}": nudge.misses is ${nudge.misses}; at least 1.`)
  }
}

/** Only looks whether it is one: a schema may be made when it is first read. */
/** Schemas of zod before 3.24, which no Standard Schema reader can read. */
function isOldZod(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '_def' in value && 'safeParse' in value
}

function isSchema(value: unknown): boolean {
  const canHold = typeof value === 'object' ? value !== null : typeof value === 'function'
  return canHold && '~standard' in (value as object)
}

function checkReward<Data, Report>({ name, reward }: EnvironmentDefinition<Data, Report>): void {
  if (reward === undefined) return
  if (typeof reward !== 'object' || reward === null || Array.isArray(reward)) {
    throw new TypeError(
      `Environment "${name}": reward is an object of named parts, { part: function }.`,
    )
  }
  for (const [part, given] of Object.entries(reward)) {
    if (typeof given === 'function') continue
    const of = `Environment "${name}", reward part "${part}"`
    if (typeof given?.score !== 'function') {
      throw new TypeError(
        `${of}: it is a function, or { weight, score } with the function as score.`,
      )
    }
    if (typeof given.weight === 'number' && Number.isFinite(given.weight)) continue
    throw new TypeError(`${of}: its weight is ${inspect(given.weight)}; it is a finite number.`)
  }
}

function checkSplit<Data, Report>(
  { name, splits = [] }: EnvironmentDefinition<Data, Report>,
  { split }: MakeTasksOptions,
): void {
  if (split === undefined || splits.includes(split)) return
  const known = splits.length > 0 ? `Known: ${splits.join(', ')}.` : 'It has none.'
  throw new RangeError(`Environment "${name}" has no split "${split}". ${known}`)
}

function readTask<Data, Report>(
  { name, task }: EnvironmentDefinition<Data, Report>,
  data: unknown,
): Data {
  const result = task['~standard'].validate(data)
  if (result instanceof Promise) {
    result.catch(() => {})
    throw new TypeError(
      `The task schema of environment "${name}" is asynchronous; use a plain one.`,
    )
  }
  if (result.issues === undefined) return result.value
  const problems = result.issues.slice(0, 5).map(describeIssue).join('; ')
  throw new TypeError(`Not a task of environment "${name}": ${problems}.`)
}

function checkOpened<Data, Report>(
  { name }: EnvironmentDefinition<Data, Report>,
  opened: OpenedWorld<Report>,
): void {
  checkBehaviour(name, opened)
  if (Array.isArray(opened.opening)) return
  const keys = Object.keys(opened).join(', ') || 'nothing'
  throw new TypeError(
    opened.opening === undefined
      ? `A world of "${name}" has no \`opening\` (it has: ${keys}).`
      : `The \`opening\` of a world of "${name}" is ${inspect(opened.opening, { depth: 0 })}; it is a list of messages.`,
  )
}

async function openWorld<Data, Report>(
  definition: EnvironmentDefinition<Data, Report>,
  task: Task<Data>,
  call: OpenCall,
): Promise<World> {
  call.signal.throwIfAborted()
  const cleanUp = makeCleanUp()
  try {
    const { data, id } = task
    const opened = await definition.open({ data, id, defer: cleanUp.defer, ...call })
    checkOpened(definition, opened)
    if (opened.dispose) cleanUp.defer(() => opened.dispose?.())
    call.signal.throwIfAborted()
    const opening = await openingOf(opened, call)
    if (!isNonEmpty(opening))
      throw new Error(`A world of "${definition.name}" opened with no message.`)
    // What is spread stands last: Node 20 takes many times as long to add to what was spread.
    const state = { opening, cleanUp, misses: 0, isOver: false, ...definition, ...call }
    return await toWorld(opened, state)
  } catch (cause) {
    return await cleanUp.runAfter(cause)
  }
}

/** A world's opening. Its images are kept, and the world lets go of them. */
async function openingOf<Report>(
  opened: OpenedWorld<Report>,
  { keepImage }: OpenCall,
): Promise<readonly Message[]> {
  const { opening } = opened
  if (!keepImage || !holdsParts(opening)) return opening
  const kept = await changeImages(opening, keepImage)
  // What cannot be set, such as a getter, is the world's own affair.
  Reflect.set(opened, 'opening', kept)
  return kept
}
