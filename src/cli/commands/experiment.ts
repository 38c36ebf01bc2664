import { randomInt } from 'node:crypto'
import { basename, extname, join } from 'node:path'
import { steadySeconds } from '../../base/core/call.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { count } from '../../base/core/names/units.ts'
import type { ExperimentDesign } from '../../learn/experiment/design.ts'
import { readDesignFile } from '../../learn/experiment/design-file.ts'
import { type CellEstimate, estimateCell } from '../../learn/experiment/estimate.ts'
import { experiment, readExperiment, usualJobs } from '../../learn/experiment/experiment.ts'
import { answerOf } from '../../learn/experiment/page.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

/** Answers a question about training by arms × seeds at equal cost. */
export const experimentCommand: Command = {
  name: 'experiment',
  usage: 'FILE.toml|.json|.ts',
  about:
    'Trains every arm of the file with every seed until the same budget is spent, and compares them:\n' +
    'paired differences with intervals, corrected for how many were made. Goes on where it was cut\n' +
    'short; what finished is never run again. Writes experiment.json, table.md and page.html.',
  examples: [
    'espalier experiment groups.toml --dry-run',
    'espalier experiment groups.toml --jobs 2',
    'espalier experiment groups.toml --more-seeds 5',
  ],
  settings: [],
  own: {
    out: { help: 'The folder of the experiment (default: experiments/NAME)', argument: 'DIR' },
    jobs: {
      help: 'Cells at one time (default: one per core for a model inside, else 1)',
      argument: 'N',
    },
    'more-seeds': {
      help: 'Adds fresh seeds; they are marked, and intervals then hold at every look',
      argument: 'N',
    },
    'dry-run': { help: 'Tries one step, says what the experiment will take, and runs nothing' },
  },
  positionalCount: [1, 1],
  run: runExperiment,
}

async function runExperiment({
  positionals: words,
  own,
  terminal,
  signal,
  json,
}: Invocation): Promise<number> {
  const file = words[0]!
  const design = await readDesignFile(file)
  const out = own.out ?? join('experiments', basename(file, extname(file)))
  const moreSeeds = wholeOf('more-seeds', own['more-seeds']) ?? 0
  const jobs = wholeOf('jobs', own.jobs)
  const begun = await readExperiment(out)
  const cells = plannedCells(design, begun, moreSeeds)
  const isDry = own['dry-run'] !== undefined
  if (isDry || !begun) {
    const estimate = await estimateCell(design, { signal, clock: steadySeconds })
    const planned = {
      ...estimate,
      cells,
      jobs:
        jobs ??
        usualJobs(design.arms.map(arm => ({ settings: { ...design.settings, ...arm.settings } }))),
    }
    if (isDry && json) terminal.print(JSON.stringify(planned))
    else terminal.tell(planLine(design, planned))
    if (isDry) return 0
  }
  const { result, failures } = await experiment(design, {
    out,
    freshness: randomInt(2 ** 47),
    signal,
    moreSeeds,
    ...(jobs !== undefined && { jobs }),
    tell: terminal.tell,
    onCell({ arm, seed, before, after, tokens }, { finished, cells: all }) {
      const success = `${before.success.toFixed(3)} → ${after.success.toFixed(3)}`
      terminal.tell(
        `${finished}/${all}  ${arm}  seed ${seed}  success ${success}  ${count(tokens)} tokens`,
      )
    },
  })
  if (json) terminal.print(JSON.stringify(result))
  else for (const comparison of result.comparisons) terminal.print(answerOf(comparison))
  terminal.tell(`wrote  ${join(out, 'table.md')}, page.html and experiment.json`)
  if (failures.length === 0) return 0
  terminal.tell(
    `${count(failures.length)} cells failed; \`${commandLine('experiment', file)}\` tries them again`,
  )
  return 1
}

function wholeOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1) return Number(text)
  throw new MisuseError(`--${flag} takes a whole number from 1 on, not "${text}"`)
}

function plannedCells(
  { arms, seeds }: ExperimentDesign,
  begun: Awaited<ReturnType<typeof readExperiment>>,
  moreSeeds: number,
): number {
  const fixed = begun?.seeds.length ?? (typeof seeds === 'number' ? seeds : seeds.length)
  return arms.length * (fixed + moreSeeds) - (begun?.cells.length ?? 0)
}

function planLine(
  { arms, budget }: ExperimentDesign,
  {
    cells,
    steps,
    seconds,
    tokens,
    money,
    jobs,
  }: CellEstimate & { readonly cells: number; readonly jobs: number },
): string {
  const minutes = (seconds * Math.ceil(cells / jobs)) / 60
  const price = money > 0 ? `, ${(money * cells).toFixed(2)} in money` : ''
  return (
    `${arms.length} arms, ${count(cells)} cells of ${count(budget.most)} ${budget.kind}: about ${count(steps)} steps and ` +
    `${seconds.toFixed(0)} s each, ${jobs} at a time: ${minutes.toFixed(minutes < 10 ? 1 : 0)} minutes, ${count(tokens * cells)} tokens${price}`
  )
}
