import type { Evaluation } from '../learn/held-out.ts'
import type { StepRecord } from '../learn/training.ts'
import { duration } from './progress.ts'
import type { Terminal } from './terminal.ts'

/** Shows a training run while it goes on. */
export interface TrainingDisplay {
  onStep(record: StepRecord): void
  onEvaluation(evaluation: Evaluation, step: number): void
}

/** Opens the display of a run of so many steps; lines go to stderr, results do not. */
export function openTrainingDisplay(terminal: Terminal, steps: number): TrainingDisplay {
  const started = performance.now()
  const successes: number[] = []
  return {
    onStep(record) {
      successes.push(record.success)
      const seconds = (performance.now() - started) / 1000
      const isLast = record.step === steps
      const line = stepLine(record, steps)
      const history = sparkline(successes)
      terminal.status(isLast ? '' : `${line}  ${history}`)
      // The last line stays for people to read; without a terminal every tenth one does.
      if (isLast) terminal.tell(`${line}  ${history}  ${duration(seconds)}`)
      else if (!terminal.isLive && record.step % 10 === 0) {
        terminal.tell(`${line}  ${duration(seconds)}`)
      }
    },
    onEvaluation(evaluation, step) {
      terminal.tell(evaluationLine(evaluation, step))
    },
  }
}

function stepLine(record: StepRecord, steps: number): string {
  const { step, success, reward, sampledTokens, seconds, metrics } = record
  const rate = sampledTokens / Math.max(1e-3, seconds.roll)
  const width = String(steps).length
  return (
    `step ${String(step).padStart(width)}/${steps}  success ${success.toFixed(2)}  reward ${reward.toFixed(2)}` +
    `  entropy ${(metrics.entropy ?? 0).toFixed(3)}  kl ${(metrics.kl ?? 0).toExponential(1)}` +
    `  ${Math.round(rate)} tok/s`
  )
}

/** A success rate with its interval, in words. */
export function evaluationLine({ success, interval, scored }: Evaluation, step: number): string {
  const range = `${interval.low.toFixed(3)} to ${interval.high.toFixed(3)}`
  const when = step === 0 ? 'before' : `after step ${step}`
  return `held out ${when.padEnd(14)}  success ${success.toFixed(3)}  (${range}, ${scored} tasks)`
}

const bars = '▁▂▃▄▅▆▇█'

/** Numbers from 0 to 1 as a row of bars, the last forty of them. */
export function sparkline(values: readonly number[]): string {
  return values
    .slice(-40)
    .map(value => bars[Math.min(7, Math.max(0, Math.floor(value * 8)))])
    .join('')
}
