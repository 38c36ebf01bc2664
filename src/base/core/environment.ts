import type { Message, Reply, ToolDefinition } from '@espalier/text'
import type { Call } from './call.ts'
import type { Json, NonEmpty, TaskId } from './ids.ts'
import type { KeepImage } from './image.ts'
import type { Lanes } from './lane.ts'
import type { RewardPart } from './reward.ts'
import type { CallRecord } from './tool.ts'

/** One problem to attempt: an id and data; no behaviour. */
export interface Task<Data = unknown> {
  readonly id: TaskId
  readonly data: Data
}

/** What a world answers an action with. */
export type Transition =
  | {
      readonly kind: 'continue'
      readonly observed: NonEmpty<Message>
      readonly calls?: readonly CallRecord[]
      /** What this step alone was worth. */
      readonly reward?: number
      /** The undecorated state before the action, for step-level advantages. */
      readonly anchor?: string
      /** Tokens that models behind the world used so far; passed to a replay, so that they count once. */
      readonly spent?: Json
    }
  | {
      readonly kind: 'end'
      /** The world's last words; never trained on. */
      readonly observed?: readonly Message[]
      readonly calls?: readonly CallRecord[]
      readonly reward?: number
      readonly anchor?: string
      readonly spent?: Json
      /** The limit that ended it, if it did not end by itself. */
      readonly limit?: 'misses' | 'tool-calls'
    }

/** What a step is given besides the action. */
export interface StepCall extends Call {
  /** The conversation, the action's message at its end. */
  readonly messages: readonly Message[]
  /** The number of the action, from 0. */
  readonly turn: number
  /**
   * Set while a world is forked by replay: what it answered this action with before. Users and
   * tools with outside effects are not asked again; what they said then is in here.
   */
  readonly replay?: Transition
}

/** One environment opened for one attempt. Open it, step it, dispose of it; there is no reset. */
export interface World extends AsyncDisposable {
  readonly opening: NonEmpty<Message>
  /** Tokens that models behind the world used to open it. */
  readonly spent?: Json
  /** The tools as they are advertised to the policy. */
  readonly tools: readonly ToolDefinition[]
  step(action: Reply, call: StepCall): Promise<Transition>
  /**
   * Plain JSON about the final state, the last that is asked of a world before it is disposed of: it
   * may run tests or end an episode. A fork of a world that has reported is made by replay.
   */
  report?(): Json | Promise<Json>
  /** A copy that goes its own way from here; worlds without it are forked by replaying actions. */
  fork?(call: Call): Promise<World>
  /** A copy of what this world was after its first `turns` actions. */
  forkAt?(turns: number, call: Call): Promise<World>
}

/** What opening a world is given. */
export interface OpenCall extends Call {
  /** A 31-bit number; the same for every attempt at replaying this one. */
  readonly seed: number
  /** The lanes that tools and outside calls go through. */
  readonly lanes: Lanes
  /** Seconds on a clock that never runs backwards; calls are recorded as taking none without it. */
  readonly clock?: () => number
  /** Set while a world is forked by replay: how it opened before. */
  readonly replay?: Pick<World, 'opening' | 'spent'>
  /** Puts references in the place of images, so that no world holds bytes while an attempt runs. @default they stay */
  readonly keepImage?: KeepImage
}

/** What stands between code that the policy writes and the machine that runs it, in words. */
export interface Isolation {
  /** What holds it, such as namespaces of the system or a container engine. */
  readonly by?: string
  readonly standing: readonly string[]
  readonly missing: readonly string[]
}

/** Something that opens worlds for tasks. */
export interface Environment<Data = unknown> {
  readonly name: string
  /** Reads task data from outside, or throws saying what was wrong. */
  readTask(data: unknown): Data
  open(task: Task<Data>, call: OpenCall): Promise<World>
  /** Set for agents: their own code asks the policy, and nobody has to step their worlds. */
  readonly drivesItself?: true
  /** The seats of an attempt, if it has several; each has a tree and a reward. */
  readonly seats?: NonEmpty<string>
  /** The named parts of the reward; empty if rewards come from elsewhere. */
  readonly reward: Readonly<Record<string, RewardPart<Data>>>
  /** Makes tasks from a seed, if the environment can. */
  makeTasks?(options: MakeTasksOptions): readonly Task<Data>[]
  /** Splits that `makeTasks` knows, the default first. */
  readonly splits?: readonly string[]
  /** Conversations that show how it is done, each from its question on. */
  readonly demonstrations?: readonly (readonly Message[])[]
  /** Set for several environments in one. */
  readonly mixed?: readonly MixedIn[]
  /** What makes two tasks the same, whichever split names them. @default all of their data */
  taskKey?(task: Task<Data>): string
  /** Set if worlds run code that the policy writes; printed at the start and kept in the report. */
  readonly isolation?: Isolation
  /** Versions or digests, by name, of programs outside of this one that its worlds run in: equal on every machine of a run. */
  readonly madeOf?: Readonly<Record<string, string>>
  /** Releases what it holds for all its worlds, such as pools and connections. */
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** A task as somebody makes it: outside, its id is any text. */
export interface MadeTask<Data = unknown> {
  readonly id: string
  readonly data: Data
}

/** One of several environments: what its tasks call it, and its share of them. */
export interface MixedIn {
  readonly name: string
  readonly weight: number
}

/** Which tasks to make. */
export interface MakeTasksOptions {
  readonly count: number
  readonly seed: number
  readonly split?: string
}
