import { duration } from '../base/core/names/units.ts'
import type { Evaluation, Measured } from '../learn/learn/held-out.ts'
import type { StepRecord } from '../learn/learn/steps/step-record.ts'
import type { Terminal } from './terminal.ts'

/** Shows a training run while it goes on. */
export interface TrainingDisplay {
  onStep(record: StepRecord): void
  onEvaluation(evaluation: Evaluation, step: number): void
}

/** If no limit was set and the run will take longer than this many seconds, it says so. */
const longWait = 300

/** Most seconds between two lines in a log. */
const quiet = 60

/**
 * Opens the display of a run of so many steps; lines go to stderr, results do not. After two steps the
 * pace is known: a run that will go on for long says for how long, and how to limit it.
 */
export function makeTrainingDisplay(
  terminal: Pick<Terminal, 'tell' | 'status' | 'isLive'>,
  steps: number,
  now: () => number = () => performance.now(),
): TrainingDisplay {
  const started = now()
  const successes: number[] = []
  let first: number | undefined
  let shownAt = 0
  return {
    onStep(record) {
      successes.push(record.success)
      const seconds = (now() - started) / 1000
      if (successes.length === 1) first = seconds
      if (successes.length === 2) {
        const left = (seconds - first!) * (steps - record.step)
        if (left > longWait) terminal.tell(waitLine(left, steps - record.step))
      }
      const isLast = record.step === steps
      const line = stepLine(record, steps)
      const history = sparkline(successes)
      terminal.status(isLast ? '' : `${line}  ${history}`)
      // The last line stays for people to read; without a terminal every tenth one does, and one a minute.
      const isDue = record.step % 10 === 0 || seconds - shownAt >= quiet
      if (isLast) terminal.tell(`${line}  ${history}  ${duration(seconds)}`)
      else if (!terminal.isLive && isDue) {
        terminal.tell(`${line}  ${duration(seconds)}`)
        shownAt = seconds
      }
    },
    onEvaluation(evaluation, step) {
      terminal.tell(evaluationLine(evaluation, step))
      for (const [name, own] of Object.entries(evaluation.byEnvironment ?? {})) {
        terminal.tell(`  ${name.padEnd(21)}  ${successText(own)}`)
      }
    },
  }
}

function waitLine(seconds: number, steps: number): string {
  return (
    `about ${duration(seconds)} more for ${steps} steps at this pace. --steps N makes fewer, ` +
    '--budget \'{"seconds":600}\' ends it in time, and Ctrl-C stops it where resume can go on.'
  )
}

function stepLine(record: StepRecord, steps: number): string {
  const { step, success, reward, sampledTokens, staleness, seconds, metrics } = record
  // What is drawn ahead is drawn while the trainer learns.
  const spent = seconds.roll + (staleness.most > 0 ? seconds.learn : 0)
  const width = String(steps).length
  return [
    `step ${String(step).padStart(width)}/${steps}`,
    `success ${success.toFixed(2)}`,
    `reward ${reward.toFixed(2)}`,
    // Not every trainer tells these.
    ...(metrics.entropy === undefined ? [] : [`entropy ${metrics.entropy.toFixed(3)}`]),
    ...(metrics.kl === undefined ? [] : [`kl ${metrics.kl.toExponential(1)}`]),
    `${Math.round(sampledTokens / Math.max(1e-3, spent))} tok/s`,
  ].join('  ')
}

/** A success rate with its interval, in words. */
function evaluationLine(evaluation: Evaluation, step: number): string {
  const when = step === 0 ? 'before' : `after step ${step}`
  const { versions } = evaluation
  const mixed = versions ? `, by weights of versions ${versions.from} to ${versions.to}` : ''
  return `held out ${when.padEnd(14)}  ${successText(evaluation)}${mixed}`
}

function successText({ success, interval, scored }: Measured): string {
  const range = `${interval.low.toFixed(3)} to ${interval.high.toFixed(3)}`
  return `success ${success.toFixed(3)}  (${range}, ${scored} tasks)`
}

const bars = '▁▂▃▄▅▆▇█'

/** Numbers from 0 to 1 as a row of bars, the last forty of them. */
export function sparkline(values: readonly number[]): string {
  return values
    .slice(-40)
    .map(value => bars[Math.min(7, Math.max(0, Math.floor(value * 8)))])
    .join('')
}
