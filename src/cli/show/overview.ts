import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLine } from '../../base/core/names/program-name.ts'
import type { Ledger } from '../../learn/learn/steps/ledger.ts'
import { readState, type TrainingState } from '../../learn/learn/training-state.ts'
import {
  type RunManifest,
  type RunStanding,
  runPaths,
  standingOf,
} from '../../run/store/run-folder.ts'
import type { RunReader } from '../../run/store/store.ts'
import type { Warned } from '../../run/watch/events.ts'
import { type ReportNotes, readNotes } from '../../run/watch/run-report.ts'
import { ledgerLine } from '../ledger-line.ts'
import { bestModelLines } from '../model-hints.ts'

/** What a step of training left in `metrics.jsonl`, as far as it is shown. */
interface Step {
  readonly step: number
  readonly reward?: number
  readonly rows?: number
  readonly trainedRows?: number
  readonly ledger?: Ledger
}

/** What a person wants to know of a run first: what it is, what it came to, what to do next. */
export async function overviewLines(
  run: string,
  manifest: RunManifest,
  reader: RunReader,
): Promise<readonly string[]> {
  const { config, kind, started } = manifest
  const standing = await standingOf(run, manifest)
  const { groupCount, treeCount } = reader
  const { state, steps, warnings, problems } = await readResults(run)
  return [
    `${kind} ${standing}, begun ${started.slice(0, 16).replace('T', ' ')}`,
    `environment ${config.environment ?? '–'}  policy ${config.policy ?? '–'}  groups ${groupCount}  trees ${treeCount}`,
    ...(state ? trainingLines(state, steps) : []),
    ...warnings.map(warningLine),
    ...problems.map(problem => `left out    ${problem}`),
    ...(state ? bestLines(state, config) : []),
    ...(goesOn.includes(kind) && canGoOn.includes(standing) ? [goOnLine(run)] : []),
  ]
}

/** Runs that `resume` takes up again. */
const goesOn = ['roll', 'eval', 'train']

/** How a run stands that nobody writes and that is not done. */
const canGoOn: readonly RunStanding[] = ['stopped', 'interrupted']

const goOnLine = (run: string): string => `go on       ${commandLine('resume', run)}`

function trainingLines({ before, after, step }: TrainingState, steps: readonly Step[]): string[] {
  const rewards = steps.map(({ reward }) => reward).filter(value => value !== undefined)
  const last = steps.at(-1)
  const contrast = last?.rows ? (last.trainedRows ?? 0) / last.rows : undefined
  // Until the first evaluation after the start, what was measured last is the start.
  const isMeasured = JSON.stringify(after) !== JSON.stringify(before)
  const measured = isMeasured ? `after ${withInterval(after)}` : 'not measured since'
  return [
    `held-out success  before ${withInterval(before)}  ${measured}  (step ${step})`,
    ...(rewards.length > 1
      ? [`reward by step    ${curve(rewards)}  ${fixed(rewards[0]!)} to ${fixed(rewards.at(-1)!)}`]
      : []),
    ...(contrast === undefined
      ? []
      : [
          `contrast          ${Math.round(contrast * 100)} % of the last step's attempts could be learned from`,
        ]),
    ...(last?.ledger ? [`tokens            ${ledgerLine(last.ledger)}`] : []),
  ]
}

function withInterval({ success, interval: { low, high } }: TrainingState['before']): string {
  return `${fixed(success)} [${fixed(low)}, ${fixed(high)}]`
}

const fixed = (value: number): string => value.toFixed(3)

const bars = '▁▂▃▄▅▆▇█'
/** As many columns as a curve may have; more steps are averaged. */
const columns = 60

/** A curve of block characters, from its least to its most. */
export function curve(values: readonly number[]): string {
  const width = Math.min(columns, values.length)
  const means = Array.from({ length: width }, (_, index) => {
    const from = Math.floor((index * values.length) / width)
    const part = values.slice(
      from,
      Math.max(from + 1, Math.floor(((index + 1) * values.length) / width)),
    )
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
  const least = Math.min(...means)
  const range = Math.max(...means) - least || 1
  return means
    .map(
      value => bars[Math.min(bars.length - 1, Math.floor(((value - least) / range) * bars.length))],
    )
    .join('')
}

/** What a run came to besides its groups, and what of it could not be read. */
interface Results {
  readonly state: TrainingState | undefined
  readonly steps: readonly Step[]
  readonly warnings: readonly Omit<Warned, 'kind'>[]
  readonly problems: readonly string[]
}

async function readResults(run: string): Promise<Results> {
  const { checkpoints } = runPaths(run)
  const problems: string[] = []
  const state = await readState(run).catch((error: Error) => {
    problems.push(`a checkpoint in ${checkpoints} cannot be read: ${error.message}`)
    return undefined
  })
  const { steps, problem: stepsProblem } = await readSteps(run)
  const { notes, problem: notesProblem } = await readNotes(run)
  for (const problem of [stepsProblem, notesProblem]) {
    if (problem !== undefined) problems.push(problem)
  }
  return { state, steps, warnings: warningsIn(notes), problems }
}

async function readSteps(
  run: string,
): Promise<{ readonly steps: readonly Step[]; readonly problem?: string }> {
  const path = join(run, 'metrics.jsonl')
  if (!existsSync(path)) return { steps: [] }
  const lines = (await readFile(path, 'utf8')).split('\n')
  const read = lines.map(stepIn)
  const steps = read.filter(step => step !== undefined)
  // The last line of a run that is still written may be half there.
  const at = read.slice(0, -1).indexOf(undefined)
  return at < 0 ? { steps } : { steps, problem: `line ${at + 1} of ${path} is not a step` }
}

/** A line of metrics.jsonl. */
function stepIn(line: string): Step | undefined {
  try {
    const step = JSON.parse(line) as Partial<Step> | null
    return typeof step?.step === 'number' ? (step as Step) : undefined
  } catch {
    return undefined
  }
}

function warningsIn({ warnings }: ReportNotes): Results['warnings'] {
  return Array.isArray(warnings) ? warnings : []
}

function warningLine({ sentinel, message, likely }: Omit<Warned, 'kind'>): string {
  return `warning  ${sentinel}: ${message}; ${likely}`
}

function bestLines(
  { best, before }: TrainingState,
  config: RunManifest['config'],
): readonly string[] {
  return best ? bestModelLines({ ...best, before: before.success }, config) : []
}
