import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checkSettings } from '../../run/settings/check-settings.ts'
import { needed } from '../../run/settings/open-named.ts'
import { type Settings, withDefaults } from '../../run/settings/settings.ts'
import { isRun, replaceFile } from '../../run/store/run-folder.ts'
import type { StepRecord } from '../learn/steps/step-record.ts'
import { train } from '../learn/train.ts'
import { trainOptionsOf } from '../learn/train-options.ts'
import { readState, type TrainingState } from '../learn/training-state.ts'
import { type Cell, type CellResult, type CellStep, resultFile } from './cell.ts'
import type { ExperimentPrice } from './design.ts'

/** Tasks that are made from the seed if the experiment names none. */
const usualTasks = 2000

/** What a cell may use. */
export interface CellOptions {
  readonly signal: AbortSignal
  readonly tell: (line: string) => void
}

/** The settings of a cell with all defaults. */
export function cellSettings({ settings }: Pick<Cell, 'settings'>): Settings {
  return withDefaults(checkSettings(settings, 'experiment'))
}

/** Trains one cell until its budget is spent, or goes on with it, and keeps its result. */
export async function runCell(cell: Cell, { signal, tell }: CellOptions): Promise<CellResult> {
  const values = cellSettings(cell)
  const { kind, most } = cell.budget
  const resumes = isRun(cell.out)
  const state = resumes ? await readState(cell.out) : undefined
  const spent = new Spent(state ? await stepsIn(cell.out, state.step) : [], cell.price)
  // It was ended after its last step and before its result was kept.
  if (state && spent.total[kind] >= most) return await keepResult(cell, spent, state)
  const { training } = await train(needed(values, 'environment'), values.tasks ?? usualTasks, {
    ...trainOptionsOf(values),
    steps: Number.MAX_SAFE_INTEGER,
    // Arms are compared at equal cost, so that none ends before its budget is spent.
    patience: 0,
    isEnough: record => spent.add(record)[kind] >= most,
    out: cell.out,
    resumes,
    signal,
    tell,
  })
  return await keepResult(cell, spent, training)
}

async function keepResult(
  cell: Cell,
  spent: Spent,
  { before, after }: Pick<TrainingState, 'before' | 'after'>,
): Promise<CellResult> {
  const measure = ({ success, meanReward }: typeof before) => ({ success, reward: meanReward })
  const result: CellResult = {
    arm: cell.arm,
    seed: cell.seed,
    steps: spent.curve.length,
    ...spent.total,
    before: measure(before),
    after: measure(after),
    curve: spent.curve,
  }
  await replaceFile(resultFile(cell), `${JSON.stringify(result)}\n`)
  return result
}

/** The steps up to the checkpoint that an interrupted cell goes on from. */
async function stepsIn(out: string, last: number): Promise<readonly StepRecord[]> {
  const path = join(out, 'metrics.jsonl')
  if (!existsSync(path)) return []
  const lines = (await readFile(path, 'utf8')).split('\n').filter(line => line.endsWith('}'))
  return lines.map(line => JSON.parse(line) as StepRecord).filter(({ step }) => step <= last)
}

/** What the steps of a cell have cost. */
class Spent {
  readonly curve: CellStep[] = []
  readonly #price: ExperimentPrice
  total = { tokens: 0, seconds: 0, money: 0 }

  constructor(steps: readonly StepRecord[], price: ExperimentPrice | null) {
    this.#price = price ?? { prompt: 0, sampled: 0 }
    for (const step of steps) this.add(step)
  }

  add({ sampledTokens, promptTokens, seconds, success, reward }: StepRecord): Spent['total'] {
    const { prompt, sampled } = this.#price
    this.total = {
      tokens: this.total.tokens + sampledTokens,
      seconds: this.total.seconds + seconds.roll + seconds.learn,
      money: this.total.money + (promptTokens * prompt + sampledTokens * sampled) / 1e6,
    }
    const { tokens, seconds: until } = this.total
    this.curve.push({ tokens, seconds: until, success, reward })
    return this.total
  }
}
