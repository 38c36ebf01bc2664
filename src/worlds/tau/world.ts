import type { ToolDefinition } from '@espalier/text'
import type { PythonValue } from '@espalier/text/python'
import { PythonError } from '@espalier/text/python'
import { Database } from './database.ts'
import { type TauDomain, toolsOf } from './domain.ts'
import { itemOf } from './operations.ts'
import { checkOutputs, type TauReward } from './reward.ts'
import { TRANSFER } from './shared-tools.ts'
import { RESPOND, type TauAction, type TauTask } from './task.ts'
import { BindingError, invoke, type TauTool } from './tool.ts'

/** How a world behaves. */
export interface TauWorldOptions {
  /** Mends upstream's own bugs instead of reproducing them. @default false */
  readonly fixed?: boolean
}

/** The result of an action: an observation, or words that the caller must pass to the user. */
export type TauStep =
  | {
      readonly kind: 'observed'
      readonly observation: string
      readonly done: boolean
      /** The tool was called with other arguments than it takes. */
      readonly isMiscalled?: true
    }
  | { readonly kind: 'respond'; readonly content: PythonValue }

/** The state after a task's own actions, worked out once per task. */
interface GroundTruth {
  readonly database: Database
  hash?: string
}

const groundTruths = {
  faithful: new WeakMap<TauTask, GroundTruth>(),
  fixed: new WeakMap<TauTask, GroundTruth>(),
}

/** Opens a world for a task: microseconds, whatever the size of the database. */
export function makeTauWorld(
  domain: TauDomain,
  task: TauTask,
  options: TauWorldOptions = {},
): TauWorld {
  return new TauWorld(domain, task, { fixed: false, ...options })
}

/** One attempt at a task: the database, and what was done to it. It does not include the user. */
export class TauWorld {
  readonly domain: TauDomain
  readonly task: TauTask
  readonly #fixed: boolean
  readonly #implementations: ReadonlyMap<string, TauTool>
  #database: Database
  #actions: TauAction[] = []

  constructor(domain: TauDomain, task: TauTask, { fixed }: { readonly fixed: boolean }) {
    this.domain = domain
    this.task = task
    this.#fixed = fixed
    this.#implementations = toolsOf(domain.name, fixed)
    this.#database = new Database(domain.tables)
  }

  /** The tools as they are advertised. */
  get tools(): readonly ToolDefinition[] {
    return this.domain.tools
  }

  /** Everything done so far; after the reward, the task's own actions as well. */
  get actions(): readonly TauAction[] {
    return this.#actions
  }

  /** Does one action. What a tool raises becomes an observation; what escapes raises here too. */
  step(action: TauAction): TauStep {
    this.#actions.push(action)
    if (action.name === RESPOND)
      return { kind: 'respond', content: itemOf(action.kwargs, 'content') }
    const tool = this.#implementations.get(action.name)
    if (tool === undefined) return observed(`Unknown action ${action.name}`)
    try {
      const observation = this.#invoke(tool, action)
      if (typeof observation !== 'string') throw new NoAnswer()
      return observed(observation, action.name === TRANSFER)
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
      // Upstream ends the conversation even when the transfer itself was refused.
      const answered = observed(`Error: ${error.message}`, action.name === TRANSFER && !this.#fixed)
      return error instanceof BindingError ? { ...answered, isMiscalled: true } : answered
    }
  }

  #invoke(tool: TauTool, { kwargs }: TauAction): PythonValue {
    return invoke(tool, this.#database, { kwargs, domain: this.domain.name })
  }

  /** tau-bench's hash of the database as it stands. */
  hash(): string {
    return this.#database.hash()
  }

  /** A copy that goes its own way from here. */
  fork(): TauWorld {
    const forked = new TauWorld(this.domain, this.task, { fixed: this.#fixed })
    forked.#database = this.#database.fork()
    forked.#actions = [...this.#actions]
    return forked
  }

  /**
   * Compares the database with the one the task's own actions lead to, and what was said with what
   * should have been. Like the original, it leaves the world in the task's final state, the task's
   * actions appended to those done.
   */
  calculateReward(): TauReward {
    const truth = this.#groundTruth()
    const isRight = this.#database.equals(truth.database)
    truth.hash ??= truth.database.hash()
    this.#database = truth.database.fork()
    this.#actions.push(...replayed(this.task))
    const actions = this.task.actions.filter(({ name }) => name !== RESPOND)
    if (this.task.outputs.length === 0) {
      const info = { r_actions: isRight ? 1 : 0, gt_data_hash: truth.hash } as const
      return { reward: isRight ? 1 : 0, info, actions }
    }
    const outputs = checkOutputs(this.task.outputs, this.#actions)
    const r_outputs = [...outputs.values()].every(Boolean) ? 1 : 0
    return { reward: isRight ? r_outputs : 0, info: { r_outputs, outputs }, actions }
  }

  #groundTruth(): GroundTruth {
    const known = this.#fixed ? groundTruths.fixed : groundTruths.faithful
    let truth = known.get(this.task)
    if (truth === undefined) {
      const world = new TauWorld(this.domain, this.task, { fixed: this.#fixed })
      for (const action of replayed(this.task)) world.step(action)
      truth = { database: world.#database }
      known.set(this.task, truth)
    }
    return truth
  }
}

/** The actions of a task that are replayed; those that end a conversation are not. */
function replayed(task: TauTask): readonly TauAction[] {
  return task.actions.filter(({ name }) => name !== TRANSFER)
}

function observed(observation: string, done = false): TauStep & { readonly kind: 'observed' } {
  return { kind: 'observed', observation, done }
}

/** A tool answered nothing, which upstream's validation refuses; the message is pydantic's. */
export class NoAnswer extends Error {
  override name = 'ValidationError'
  constructor() {
    super(
      '1 validation error for EnvResponse\nobservation\n  Input should be a valid string [type=string_type, input_value=None, input_type=NoneType]\n    For further information visit https://errors.pydantic.dev/2.13/v/string_type',
    )
  }
}
