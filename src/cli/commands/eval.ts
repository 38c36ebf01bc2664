import { existsSync } from 'node:fs'
import { commandLine } from '../../base/core/names/program-name.ts'
import { count, percent } from '../../base/core/names/units.ts'
import { checkOutputFile, refuseForeign } from '../../run/exchange/output-file.ts'
import { benchmarkOf, withBenchmarkDefaults } from '../../run/measure/benchmark.ts'
import { evaluate } from '../../run/measure/evaluate.ts'
import {
  type Estimated,
  type Evaluated,
  type MeasureOptions,
  measureRun,
} from '../../run/measure/measure.ts'
import { optionsOf } from '../../run/run/roll-options.ts'
import { type ResolvedSettings, resolveSettings } from '../../run/settings/config.ts'
import { needed, openNamed } from '../../run/settings/open-named.ts'
import { type Settings, settingsOf } from '../../run/settings/settings.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { beginOrPlan, dryRunFlag } from '../dry-run.ts'
import { groupLine } from '../group-line.ts'
import { elsewhereOf, type Rolled, withProgress } from '../rolling.ts'

/** Rolls without training and measures. */
export const evalCommand: Command = {
  name: 'eval',
  usage: '--policy URI --environment NAME --tasks FILE|N',
  about:
    'Attempts every task --trials times and measures: success, pass@k (one of k succeeds) and pass^k\n' +
    '(all of k succeed), each with its 95 % interval. Attempts that failed outside the\n' +
    'policy count neither way. With --json one object, tasks included. tau-bench and tau2-bench are\n' +
    'attempted whole unless --tasks says otherwise, with the steps and the temperature 0 of the originals,\n' +
    'unless flags say otherwise; --results and pass^k are those of the originals.',
  examples: [
    'espalier eval --policy sglang:http://localhost:30000 --environment calculator --tasks 64 --trials 4',
    'espalier eval --policy openai:http://localhost:8000/v1 --environment tau:retail,root=DIR --results results.json',
  ],
  settings: settingsOf('eval'),
  readsConfig: true,
  own: dryRunFlag,
  positionalCount: [0, 0],
  run: runEval,
}

async function runEval(invocation: Invocation): Promise<number> {
  const resolved = await resolveTasks(
    await withBenchmarkDefaults(await resolveSettings(invocation)),
  )
  checkMeasures(resolved.values)
  const beginning = { kind: 'eval', run: evalWith } as const
  return await beginOrPlan(resolved, invocation, beginning)
}

/** Refuses, before anything is rolled, what could not be measured or written at the end. */
function checkMeasures({ k = [], trials, results }: Settings): void {
  const most = Math.max(...k)
  if (most > trials) {
    throw new MisuseError(
      `--k ${most}: pass@${most} needs as many attempts per task; --trials is ${trials}`,
    )
  }
  if (results === undefined) return
  checkOutputFile('--results', results)
  refuseForeign('--results', results, 'export')
}

/** A benchmark takes its whole split, unless fewer tasks are asked for. */
async function resolveTasks(resolved: ResolvedSettings): Promise<ResolvedSettings> {
  const { values } = resolved
  if (values.tasks !== undefined) return resolved
  const benchmark = await benchmarkOf(values)
  if (!benchmark) return resolved
  const place = `--environment ${values.environment}`
  const tasks = await openNamed(place, () => benchmark.countTasks(values))
  return { ...resolved, values: { ...values, tasks } }
}

/** Evaluates by settings into a run folder. */
export async function evalWith(rolled: Rolled, invocation: Invocation): Promise<number> {
  const { terminal, json } = invocation
  const { values, out } = rolled
  const { trials, results } = values
  let evaluated: Evaluated | undefined
  const shownValues = { ...values, group: trials }
  await withProgress({ ...rolled, values: shownValues }, invocation, async (tasks, shown) => {
    evaluated = await evaluate(needed(values, 'environment'), tasks, {
      ...optionsOf('evaluate', values),
      ...shown,
      ...elsewhereOf(values, shown),
      trials,
      ...(await measuringOf(values)),
      onTask(_, group) {
        if (!json) terminal.print(groupLine(group))
      },
    })
  })
  const benchmark = await benchmarkOf(values)
  const measured = await benchmark?.measure(out)
  if (results !== undefined) await writeResults(values, out, evaluated!)
  if (json) {
    const own = measured && { [benchmark!.name]: measured.figures }
    terminal.print(JSON.stringify({ run: out, ...evaluated!, ...own }))
  } else {
    const lines = [...evaluationLines(evaluated!), ...(measured?.lines ?? [])]
    for (const line of lines) terminal.print(line)
  }
  terminal.tell(`next  ${commandLine('show', out, '--report')}`)
  return evaluated!.trials === 0 ? 1 : 0
}

/** How the settings say that an evaluation is measured. */
async function measuringOf(values: Settings): Promise<MeasureOptions> {
  const { k, successAt, trials } = values
  const isBenchmark = (await benchmarkOf(values)) !== undefined
  return { successAt, k: k ?? (isBenchmark ? upTo(trials) : undefined) }
}

/** Writes the results of a run that was finished before they could be: a full disk, or a kill. Gives the file. */
export async function writeLostResults(values: Settings, run: string): Promise<string | undefined> {
  const { results } = values
  if (results === undefined || existsSync(results)) return undefined
  await writeResults(values, run, await measureRun(run, await measuringOf(values)))
  return results
}

/** A benchmark's own tools read results in its own form. */
async function writeResults(values: Settings, run: string, evaluated: Evaluated): Promise<void> {
  const results = values.results!
  const benchmark = await benchmarkOf(values)
  if (benchmark) await benchmark.writeResults(run, results)
  else await replaceFile(results, `${JSON.stringify({ run, ...evaluated }, null, 2)}\n`)
}

const upTo = (most: number): readonly number[] => Array.from({ length: most }, (_, k) => k + 1)

function evaluationLines(evaluated: Evaluated): readonly string[] {
  const { tasks, trials, unscored, success, meanReward, tokens } = evaluated
  const ks = Object.keys(evaluated.passAtK)
  return [
    `${count(tasks)} tasks, ${count(trials)} attempts scored${unscored > 0 ? `, ${unscored} failed and count neither way` : ''}, ${count(tokens.sampled)} tokens sampled`,
    ...(trials === 0
      ? ['  nothing was scored, so nothing is known of success or reward']
      : [
          `  success    ${share(success)}`,
          `  reward     ${meanReward.value.toFixed(3)}  (${meanReward.low.toFixed(3)} to ${meanReward.high.toFixed(3)})`,
        ]),
    ...ks.map(k => `  ${`pass@${k}`.padEnd(10)} ${share(evaluated.passAtK[Number(k)]!)}`),
    ...ks.map(k => `  ${`pass^${k}`.padEnd(10)} ${share(evaluated.passHatK[Number(k)]!)}`),
  ]
}

function share({ value, low, high }: Estimated): string {
  return `${percent(value)}  (${percent(low)} to ${percent(high)})`
}
