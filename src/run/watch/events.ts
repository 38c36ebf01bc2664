import type { Group } from '../../base/core/group.ts'
import type { Lanes } from '../../base/core/lane.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Finish } from '../../base/core/policy.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { StopKind } from './stopped.ts'

/** An event of a run. */
export type RunEvent =
  | RunStart
  | LanesMoved
  | { readonly kind: 'attempt-start'; readonly task: string; readonly member: number }
  | SampleEnd
  | Retried
  | ServerBack
  | TreeEnd
  | ScoreEnd
  | GroupEnd
  | StepEnd
  | CurvesDrawn
  | Warned
  | ConcurrencyChanged
  | EarlyStop
  | { readonly kind: 'budget-spent'; readonly of: StopKind; readonly message: string }
  | WorkersSeen
  | RunEnd

/** A tree whose rewards are known. */
export interface ScoreEnd {
  readonly kind: 'score-end'
  readonly tree: string
  readonly seconds: number
}

/** A tree that ended. */
export interface TreeEnd {
  readonly kind: 'tree-end'
  readonly tree: Tree
  /** Set if another player had its seat, so that it says nothing about the policy. */
  readonly isOther?: boolean
  /** Its line of `events.jsonl`, without time and secrets, from whoever made it: the tree is then read when it is looked into. */
  readonly line?: string
  /** How its trajectories ended, for the same reason. */
  readonly ends?: readonly Pick<Trajectory, 'outcome' | 'usage'>[]
  /** Set if looking into it means to ask another machine for it, while this process stands still. */
  readonly isFar?: boolean
}

/** A group that is complete. */
export interface GroupEnd {
  readonly kind: 'group-end'
  readonly group: Group
  /** Its line of `events.jsonl`, without time and secrets, from whoever made it. */
  readonly line?: string
}

/** Who makes the attempts of a run, if they are made elsewhere. */
export interface WorkersSeen {
  readonly kind: 'workers'
  readonly workers: readonly WorkerStatus[]
}

/** How one worker is doing. */
export interface WorkerStatus {
  readonly id: string
  readonly host: string
  readonly process: number
  /** Its number, if it is a thread of this process. */
  readonly thread?: number
  /** How many threads it has, if it is another process. */
  readonly threads?: number
  /** Attempts that it may make at one time, and those that it makes now. */
  readonly concurrency: number
  readonly running: number
  /** Attempts that it made, those whose lease it had lost, and the tokens that it sampled. */
  readonly done: number
  readonly refused: number
  readonly sampled: number
  /** Whether it ends when it has made what it holds. */
  readonly leaving: boolean
  /** Seconds since it joined, and since its last heartbeat. */
  readonly seconds: number
  readonly silent: number
  /** Why it refuses this run. */
  readonly refusal: string | null
}

/** A training step, with the trainer's metrics. */
export interface StepEnd {
  readonly kind: 'step-end'
  readonly step: number
  readonly metrics: Readonly<Record<string, number>>
  /** How rolling was ahead of it, if it may be. */
  readonly ahead?: RolledAhead
}

/** How rolling was ahead of a step of learning. */
export interface RolledAhead {
  /** How many steps old training data may be. */
  readonly maxStaleness: number
  /** The steps that it was allowed to be ahead, by the measured times. */
  readonly steps: number
  /** Groups that came out for it, and the tasks of those that were too old. */
  readonly groups: number
  readonly stale: readonly string[]
  /** Seconds of the step, and those of them that the trainer waited for the oldest while enough others were complete. */
  readonly seconds: number
  readonly held: number
  /** How many steps of learning the slowest group of late took. */
  readonly slowest: number
}

/** A step of training, or a measurement after it, as curves by their names. */
export interface CurvesDrawn {
  readonly kind: 'curves'
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

/** A run begins, or goes on. */
export interface RunStart {
  readonly kind: 'run-start'
  readonly run: string
  /** The command that made it. */
  readonly command: string
  /** Trees that were finished before an interruption. */
  readonly finished: number
}

/** Lanes that rolling goes through were opened or closed; while they are open, they can be looked at. */
export interface LanesMoved {
  readonly kind: 'lanes-open' | 'lanes-close'
  readonly lanes: Lanes
}

/** A sample that was drawn. */
export interface SampleEnd {
  readonly kind: 'sample-end'
  readonly tree: string
  readonly turn: number
  readonly seconds: number
  readonly prompt: number
  readonly sampled: number
  /** Prompt tokens that the server had in its cache, if it reports them. */
  readonly cached?: number
  readonly finish: Finish['kind']
  readonly server?: string
}

/** A request that failed and is repeated. */
export interface Retried {
  readonly kind: 'retry'
  readonly problem: string
  readonly status?: number
  /** Counted from 1. */
  readonly attempt: number
  readonly waitSeconds: number
}

/** A server that was away answers again; that it was away is a warning, `server-away`. */
export interface ServerBack {
  readonly kind: 'server-back'
  readonly server: string
  /** For how long it was away. */
  readonly seconds: number
}

/** Something looks wrong although nothing failed. */
export interface Warned {
  readonly kind: 'warning'
  readonly sentinel: string
  readonly message: string
  /** What is probably behind it. */
  readonly likely: string
}

/** The number of concurrent requests was adjusted to the server's signals. */
export interface ConcurrencyChanged {
  readonly kind: 'concurrency-change'
  readonly from: number
  readonly to: number
  readonly reason: string
}

/** Enough groups were kept: what still ran was cut, to go on when the run is resumed. */
export interface EarlyStop {
  readonly kind: 'early-stop'
  readonly kept: number
  /** Groups that were cut. */
  readonly cut: number
  /** Sampled tokens per attempt: of those that came out, and of those that were cut, so far. */
  readonly lengths: { readonly kept: number; readonly cut: number | null }
}

/** The run is over, for now or for good. */
export interface RunEnd {
  readonly kind: 'run-end'
  readonly status: 'finished' | 'stopped' | 'failed'
  readonly reason?: string
  readonly error?: unknown
}

/**
 * Listens to a run; must not throw, and is never waited for. One that only counts can take many events as one,
 * where a thread has counted them: with thousands of attempts in a second each event costs as much as its work.
 */
export interface Listen {
  (event: RunEvent): void
  /** Called with what happened together, in place of one call for each event. */
  readonly together?: (events: Together) => void
}

/** Events of several attempts. */
export type Together = AttemptsStart | TreesEnd

/** The attempts of a group were begun. */
export interface AttemptsStart {
  readonly kind: 'attempts-start'
  readonly task: string
  readonly members: number
}

/** Trees that ended, counted by whoever made them. */
export interface TreesEnd {
  readonly kind: 'trees-end'
  readonly count: number
  /** Sampled tokens of all their trajectories. */
  readonly sampled: number
  /** How their trajectories ended, as `outcomeName` calls it. */
  readonly outcomes: readonly (readonly [name: string, count: number])[]
  readonly scoringSeconds: number
  /** Their lines of `events.jsonl`, each with its end. */
  readonly lines: string
  /** The trees, each read when it is looked into. */
  readonly trees: readonly TreeEnd[]
  /** The events of their rewards. */
  readonly scores: readonly ScoreEnd[]
}

/** What an outcome is counted as. */
export function outcomeName(outcome: Outcome): string {
  return outcome.kind === 'failed' ? `failed in ${outcome.boundary}` : outcome.kind
}

/** Tells a listener what happened together: at once, or event by event if it asks for that. */
export function tellTogether(listen: Listen | undefined, events: Together): void {
  if (!listen) return
  if (listen.together) listen.together(events)
  else for (const event of eachOf(events)) listen(event)
}

function* eachOf(events: Together): Generator<RunEvent> {
  if (events.kind === 'attempts-start') {
    const { task, members } = events
    for (let member = 0; member < members; member++) yield { kind: 'attempt-start', task, member }
  } else {
    yield* events.trees
    yield* events.scores
  }
}

/** One listener for several; if one throws, the others are still called. */
export function listenAll(...listeners: readonly (Listen | undefined)[]): Listen {
  const tellEach = (tell: (listen: Listen) => void): void => {
    for (const listen of listeners) {
      try {
        if (listen) tell(listen)
      } catch {
        // A listener must not break the run.
      }
    }
  }
  const listenEach = (event: RunEvent): void => tellEach(listen => listen(event))
  return Object.assign(listenEach, {
    together: (events: Together) => tellEach(listen => tellTogether(listen, events)),
  })
}
