import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { CellResult } from './cell.ts'
import { runCellInThread } from './cell-in-thread.ts'
import { checkArms } from './check-arms.ts'
import { armSettings, type ExperimentDesign } from './design.ts'
import type { ExperimentOptions } from './experiment.ts'

/** What one cell is expected to take, from one step that was tried. */
export interface CellEstimate {
  readonly steps: number
  readonly tokens: number
  readonly seconds: number
  readonly money: number
}

/** What an estimate needs; the clock gives seconds that never run backwards. */
export type EstimateOptions = Pick<ExperimentOptions, 'signal' | 'runCell'> & {
  readonly clock: () => number
}

/** Tries one step of the first arm, apart from the experiment, and says what a cell will take. */
export async function estimateCell(
  design: ExperimentDesign,
  { signal, clock, runCell = runCellInThread }: EstimateOptions,
): Promise<CellEstimate> {
  await checkArms(design, { signal })
  const folder = await mkdtemp(join(tmpdir(), 'espalier-experiment-'))
  const [arm] = design.arms
  try {
    const began = clock()
    const tried = await runCell(
      {
        arm: arm!.name,
        seed: 0,
        settings: { ...armSettings(design, arm!), seed: 0 },
        budget: { kind: 'tokens', most: 1 },
        price: design.price ?? null,
        out: join(folder, 'trial'),
      },
      { signal, tell: () => {} },
    )
    return estimateFrom(design, tried, clock() - began)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function estimateFrom(
  { budget }: ExperimentDesign,
  tried: CellResult,
  seconds: number,
): CellEstimate {
  const spent = tried[budget.kind]
  if (spent > budget.most)
    throw new SettingError(
      `${budget.kind}: ${budget.most} are too few for one step, which took ${Math.round(spent * 100) / 100}: raise the budget, or lower tasksPerStep or group`,
    )
  const steps = Math.max(1, Math.ceil(budget.most / Math.max(spent, Number.EPSILON)))
  const besides = Math.max(0, seconds - tried.seconds)
  return {
    steps,
    tokens: steps * tried.tokens,
    seconds: besides + steps * tried.seconds,
    money: steps * tried.money,
  }
}
