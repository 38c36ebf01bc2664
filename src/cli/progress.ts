import { glanceAt } from '../base/core/group.ts'
import { duration } from '../base/core/names/units.ts'
import { isGradableOutcome, type Outcome } from '../base/core/outcome.ts'
import type { BudgetLimits } from '../run/run/budget.ts'
import {
  type Listen,
  outcomeName,
  type RunEvent,
  type Together,
  type WorkerStatus,
} from '../run/watch/events.ts'
import type { StopKind } from '../run/watch/stopped.ts'
import type { Terminal } from './terminal.ts'

/** Counts a run while it goes on, and shows it on stderr; closing it ends the live line. */
export interface Progress extends Disposable {
  readonly listen: Listen
  /** The closing line. */
  summary(): string
  readonly counts: Counts
}

/** What a run came to so far. */
export interface Counts {
  /** Trees that were finished before an interruption. */
  before: number
  attempts: number
  done: number
  groups: number
  dropped: number
  sampled: number
  rewards: number
  rewardSum: number
  /** Who makes the attempts, if they are made elsewhere. */
  workers?: { readonly count: number; readonly running: number; readonly silent: number }
  /** Why the run ended before its tasks did. */
  stopped?: string
  stopKind?: StopKind
  readonly outcomes: Map<string, number>
}

/** What is known of a run before it begins. */
export interface Expected {
  /** Attempts, if that is known. */
  readonly attempts?: number | undefined
  readonly budget?: BudgetLimits | undefined
}

/** Opens the progress of a run. */
export function openProgress(terminal: Terminal, expected: Expected): Progress {
  const started = performance.now()
  const counts: Counts = {
    before: 0,
    attempts: 0,
    done: 0,
    groups: 0,
    dropped: 0,
    sampled: 0,
    rewards: 0,
    rewardSum: 0,
    outcomes: new Map(),
  }
  let shown = 0

  function show(): void {
    const now = performance.now()
    if (now - shown < 100) return
    shown = now
    terminal.status(statusLine(counts, (now - started) / 1000, expected))
  }

  // The time that is left runs on while nothing happens.
  const timer = terminal.isLive ? setInterval(show, 500).unref() : undefined
  const listen = (event: RunEvent): void => {
    count(counts, event)
    show()
  }
  const together = (events: Together): void => {
    countTogether(counts, events)
    show()
  }
  return {
    counts,
    listen: Object.assign(listen, { together }),
    [Symbol.dispose]() {
      clearInterval(timer)
      terminal.status('')
    },
    summary: () => summaryLine(counts, (performance.now() - started) / 1000),
  }
}

function count(counts: Counts, event: RunEvent): void {
  if (event.kind === 'run-start') counts.before = event.finished
  else if (event.kind === 'attempt-start') counts.attempts++
  else if (event.kind === 'workers') countWorkers(counts, event.workers)
  else if (event.kind === 'tree-end') {
    counts.done++
    for (const { outcome, usage } of event.ends ?? event.tree.trajectories) {
      counts.sampled += usage.sampled
      addOutcomes(counts, outcomeName(outcome), 1)
    }
  } else if (event.kind === 'group-end') {
    counts.groups++
    const { rewards, dropped, unscored } = glanceAt(event.group)
    counts.rewards += rewards.length
    for (const reward of rewards) counts.rewardSum += reward
    counts.dropped += dropped
    if (unscored === 0) return
    for (const { trajectory } of event.group.unscored) countLost(counts, trajectory.outcome)
  } else if (event.kind === 'budget-spent') {
    counts.stopped = event.message
    counts.stopKind = event.of
  } else if (event.kind === 'early-stop') {
    counts.stopKind = 'keep'
    counts.stopped = `${event.kept} groups are kept, ${event.cut} were cut`
  }
}

function countTogether(counts: Counts, events: Together): void {
  if (events.kind === 'attempts-start') counts.attempts += events.members
  else {
    counts.done += events.count
    counts.sampled += events.sampled
    for (const [name, more] of events.outcomes) addOutcomes(counts, name, more)
  }
}

function addOutcomes({ outcomes }: Counts, name: string, more: number): void {
  outcomes.set(name, (outcomes.get(name) ?? 0) + more)
}

/** Moves an attempt that ended well but could not be scored to a count of its own. */
function countLost(counts: Counts, own: Outcome): void {
  const { outcomes } = counts
  if (!isGradableOutcome(own)) return
  const left = (outcomes.get(own.kind) ?? 0) - 1
  if (left > 0) outcomes.set(own.kind, left)
  else outcomes.delete(own.kind)
  addOutcomes(counts, `${own.kind} without a reward`, 1)
}

/** A worker silent for longer than this is shown as quiet. */
const quietSeconds = 15

function countWorkers(counts: Counts, workers: readonly WorkerStatus[]): void {
  counts.workers = {
    count: workers.length,
    running: workers.reduce((sum, { running }) => sum + running, 0),
    silent: workers.filter(({ silent }) => silent > quietSeconds).length,
  }
}

function workersPart({ workers }: Counts): readonly string[] {
  if (!workers) return []
  const { count, running, silent } = workers
  const quiet = silent === 0 ? '' : `, ${silent} silent`
  return [count === 0 ? 'no workers yet' : `workers ${count} (${running} at work${quiet})`]
}

function statusLine(counts: Counts, seconds: number, expected: Expected): string {
  const { before, done, attempts } = counts
  const { attempts: total } = expected
  const finished = before + done
  const left = secondsLeft(counts, seconds, expected)
  const head =
    total === undefined ? `done ${finished}` : `${bar(finished / total)} ${finished}/${total}`
  return [
    head,
    `running ${attempts - done}`,
    ...workersPart(counts),
    speed(counts, seconds),
    `reward ${meanReward(counts)}`,
    ...(counts.dropped > 0 ? [`dropped ${counts.dropped}`] : []),
    ...failures(counts),
    ...(left === undefined ? [] : [`${duration(left)} left`]),
  ].join('  ')
}

/** Until the tasks are over, or the budget is spent, whichever comes first. */
function secondsLeft(
  { before, done, sampled }: Counts,
  seconds: number,
  { attempts, budget = {} }: Expected,
): number | undefined {
  const ends = [
    attempts === undefined || done === 0
      ? undefined
      : ((attempts - before - done) * seconds) / done,
    budget.tokens === undefined || sampled === 0
      ? undefined
      : ((budget.tokens - sampled) * seconds) / sampled,
    budget.seconds === undefined ? undefined : budget.seconds - seconds,
  ].filter(end => end !== undefined)
  return ends.length === 0 ? undefined : Math.max(0, Math.min(...ends))
}

const barWidth = 16

function bar(share: number): string {
  const full = Math.min(barWidth, Math.floor(share * barWidth))
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}

function summaryLine(counts: Counts, seconds: number): string {
  const outcomes = [...counts.outcomes].sort().map(([name, number]) => `${name} ${number}`)
  return (
    `done ${counts.done} in ${duration(seconds)}  groups ${counts.groups}  dropped ${counts.dropped}` +
    `  ${outcomes.join(', ')}  reward ${meanReward(counts)}  ${speed(counts, seconds)}`
  )
}

function speed({ sampled }: Counts, seconds: number): string {
  return `${Math.round(sampled / Math.max(seconds, 1e-3))} tok/s`
}

function meanReward({ rewards, rewardSum }: Counts): string {
  return rewards === 0 ? '–' : (rewardSum / rewards).toFixed(3)
}

function failures({ outcomes }: Counts): readonly string[] {
  return [...outcomes]
    .filter(([name]) => name.startsWith('failed') || name.endsWith('without a reward'))
    .map(([name, number]) => `${name} ${number}`)
}
