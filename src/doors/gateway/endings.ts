import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Failure } from '../../base/core/failure.ts'
import type { Json } from '../../base/core/ids.ts'
import {
  type Aborted,
  describeOutcome,
  type Failed,
  isGradableOutcome,
  type Outcome,
} from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { CaptureEnding } from '../../engine/capture/contract.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'

/** How an attempt ended, as far as a later close may repeat it. */
export interface Ended {
  readonly outcome: Outcome
  /** The reward that was posted and counts. */
  readonly reward: number | undefined
  /** A digest of its report: closed attempts are remembered by the thousand, and reports may be long. */
  readonly report: string | undefined
}

const endingFields = ['outcome', 'report', 'reward', 'unasked']

/** Refuses an ending that would be passed over, or a reward that would spoil its whole group. */
export function checkEnding(ending: CaptureEnding): void {
  const isObject = typeof ending === 'object' && ending !== null
  const other = isObject
    ? Object.keys(ending).find(name => !endingFields.includes(name))
    : String(ending)
  if (other !== undefined) {
    throw new TypeError(`an attempt ends with ${endingFields.join(', ')}, not with ${other}`)
  }
  const { reward } = ending
  if (reward !== undefined && !Number.isFinite(reward)) {
    throw new TypeError(`a reward is a finite number, not ${String(reward)}`)
  }
}

/** How the attempt of a tree ended. */
export function endedAs({ trajectories }: Tree): Ended {
  const { outcome, turns, report } = trajectories[0]!
  return {
    outcome,
    reward: isGradableOutcome(outcome) ? turns.at(-1)?.reward : undefined,
    report: report === undefined ? undefined : digestOf(report),
  }
}

/**
 * The outcome of an attempt without a sample: nothing of it can be trained on, so it is not scored,
 * whatever reward it was given.
 */
export function unasked(reward: number | undefined, failure: Failure | undefined): Failed {
  const sampled = 'nothing was sampled in it'
  const what = reward === undefined ? sampled : `${sampled}, so its reward ${reward} does not count`
  if (failure) {
    const { boundary, message } = failure
    return { kind: 'failed', boundary, message: `${what}: ${message}` }
  }
  const message = `${what}: did its agent ask this gateway?`
  return { kind: 'failed', boundary: 'environment', message }
}

/** Refuses to close an attempt with anything else than how it ended; what is left out agrees. */
export function refuseOther(
  { id }: { readonly id: string },
  said: CaptureEnding,
  { outcome, reward, report }: Ended,
): void {
  const others = [
    ...(said.reward === undefined || said.reward === reward ? [] : [`the reward ${said.reward}`]),
    ...(said.report === undefined || digestOf(said.report) === report ? [] : ['the report']),
    ...(isOtherEnd(said.outcome, outcome) ? [`"${describeOutcome(said.outcome)}"`] : []),
  ]
  if (others.length === 0) return
  const rewarded = reward === undefined ? 'without a posted reward' : `with the reward ${reward}`
  const how = isGradableOutcome(outcome)
    ? `${describeOutcome(outcome)}, ${rewarded}`
    : describeOutcome(outcome)
  throw new RequestProblem(
    'over',
    `attempt "${id}" has ended (${how}): ${others.join(' and ')} cannot be taken`,
  )
}

/** A limit may end what was said to be completed; a failure or an abort that was said stands alone. */
function isOtherEnd(said: Outcome | undefined, outcome: Outcome): said is Failed | Aborted {
  return said !== undefined && !isGradableOutcome(said) && !isDeepStrictEqual(said, outcome)
}

function digestOf(report: Json): string {
  return hash('sha256', JSON.stringify(report), 'base64')
}
