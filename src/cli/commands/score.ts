import type { Environment, Task } from '../../base/core/environment.ts'
import { count } from '../../base/core/names/units.ts'
import { shapedEstimate } from '../../engine/weigh/shape.ts'
import {
  type ProbeOptions,
  type ProbeResult,
  probeRewards,
} from '../../run/measure/probe-rewards.ts'
import {
  lostScores,
  makeRescoreSummary,
  type RankFlip,
  type RescoreOptions,
  type RescoreSummary,
  rescore,
} from '../../run/measure/rescore.ts'
import { closeEnvironment } from '../../run/run/close-environment.ts'
import { openEstimateNamed, openFilters } from '../../run/run/open-parts.ts'
import { openRewards } from '../../run/run/open-rewards.ts'
import { makeShaping } from '../../run/run/open-scorers.ts'
import { openEnvironmentNamed } from '../../run/settings/open-environment.ts'
import { type Settings, withoutUndefined } from '../../run/settings/settings.ts'
import { type GroupRecord, groupRecord } from '../../run/store/group-record.ts'
import { openRunReader, openRunWriter } from '../../run/store/store.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { enterRun } from '../enter-run.ts'
import { rerunOnChange } from '../rerun.ts'
import { flagNaming, namedByRun, trustFlag, trustRun } from '../trust.ts'

/** Scores and filters stored trajectories again. */
export const scoreCommand: Command = {
  name: 'score',
  usage: 'RUN [--reward NAME|FILE#EXPORT] [--filter NAME] [--advantage NAME]',
  about:
    'Scores, filters and weighs the stored trajectories of a run again, lists the pairs within groups\n' +
    'that changed places, and keeps the new scores in the run, where exports find them; the old ones\n' +
    'stay in its journal. Where a trajectory that had a reward could not be scored again, nothing is\n' +
    'kept; --partial keeps the groups that could be. --watch does it again whenever a named file\n' +
    'changes, --probe plays answers that should be worth nothing; neither keeps anything.',
  examples: [
    'espalier score runs/0007 --reward ./reward.ts#right --watch',
    'espalier score runs/0007 --filter void-turns --advantage rloo',
    'espalier score runs/0007 --probe',
  ],
  settings: [
    'reward',
    'judge',
    'rewardSeconds',
    'filters',
    'advantage',
    'overlong',
    'weighting',
    'environment',
    'agent',
  ],
  own: {
    watch: { help: 'Score again whenever a named file changes; keeps nothing' },
    probe: { help: 'What do empty, copied, format-only answers earn? Keeps nothing' },
    partial: {
      help: 'Keep the groups that could be scored whole, and the old scores of the others',
    },
    'dry-run': { help: 'Show what would change; keeps nothing' },
    trust: trustFlag,
  },
  positionalCount: [1, 1],
  run: runScore,
}

async function runScore(invocation: Invocation): Promise<number> {
  const { own, terminal, json, signal } = invocation
  const { run, values, calledIn } = await enterRun(invocation)
  if (values.environment === undefined) {
    throw new MisuseError(`${run} does not say its environment: name it with --environment`)
  }
  const names = [values.environment, ...(values.reward ?? []), ...values.filters]
  // What watches scores with --dry-run.
  if ((own['dry-run'] ?? own.watch) !== undefined) refuseCodeOf(invocation, values)
  else await trustRun(run, { values, samples: false }, invocation)
  if (own.watch !== undefined) return await rerunOnChange(names, calledIn, invocation)
  await using environment = disposable(
    await openEnvironmentNamed(values.environment),
    terminal.tell,
  )
  const { rewardSeconds } = values
  const reward = (await openRewards(values.reward, values.judge)) ?? environment.part.reward
  if (own.probe !== undefined) {
    const results = await probe(run, { ...environment.part, reward }, { signal, rewardSeconds })
    for (const result of results) {
      terminal.print(json ? JSON.stringify(result) : probeLine(result))
    }
    return 0
  }
  const options: RescoreOptions = {
    reward,
    filters: await openFilters(values.filters),
    estimate: shapedEstimate(
      await openEstimateNamed(values.advantage),
      await makeShaping(withoutUndefined(values)),
    ),
    weighting: values.weighting,
    rewardSeconds,
    signal,
  }
  const { summary, kept } = await scoreAll(run, options, invocation)
  if (json) terminal.print(JSON.stringify({ run, ...summary, kept }))
  else for (const line of summaryLines(summary, kept, invocation)) terminal.print(line)
  const isWhole = summary.lost === 0 || own.partial !== undefined
  return isWhole && (summary.scored > 0 || summary.groups === 0) ? 0 : 1
}

/**
 * A dry run of somebody else's run must not run files or programs that the run names, nor ask servers it
 * names (they would be sent our key), unless a flag names them too.
 */
function refuseCodeOf({ flags, own }: Invocation, values: Settings): void {
  const [named] = own.trust === undefined ? namedByRun({ values, samples: false }, flags) : []
  if (named === undefined) return
  throw new MisuseError(
    `--${own.watch === undefined ? 'dry-run' : 'watch'} runs no code and asks no server that a run names; if ${named} is yours, add ${flagNaming(values, named)}, or --trust`,
  )
}

function disposable(part: Environment, tell: (line: string) => void) {
  return { part, [Symbol.asyncDispose]: () => closeEnvironment(part, tell) }
}

/** Scores everything before it writes anything: a failure half way keeps the old scores. */
async function scoreAll(
  run: string,
  options: RescoreOptions,
  { own, terminal, json }: Invocation,
): Promise<{ readonly summary: RescoreSummary; readonly kept: number }> {
  const total = makeRescoreSummary()
  const records: GroupRecord[] = []
  for await (const rescored of rescore(run, options)) {
    for (const flip of total.add(rescored)) {
      terminal.print(json ? JSON.stringify(flip) : flipLine(flip))
    }
    if (lostScores(rescored) > 0) continue
    records.push(groupRecord(rescored.after, rescored.task, rescored.order))
  }
  const summary = total.summary()
  const isKept = own['dry-run'] === undefined && (summary.lost === 0 || own.partial !== undefined)
  if (!isKept) return { summary, kept: 0 }
  await using writer = await openRunWriter(run)
  for (const record of records) await writer.writeRecord(record)
  return { summary, kept: records.length }
}

/** Tasks to probe: the first of the run, enough to see a pattern. */
const probed = 32

async function probe(
  run: string,
  environment: Environment,
  options: Pick<ProbeOptions, 'signal' | 'rewardSeconds'>,
): Promise<readonly ProbeResult[]> {
  const tasks: Task[] = []
  await using reader = await openRunReader(run)
  for await (const { task } of reader.groups()) {
    if (tasks.push(task) === probed) break
  }
  return await probeRewards(environment, tasks, { ...options, seed: 1 })
}

function probeLine({ probe, about, reward, most, tasks, problem }: ProbeResult): string {
  const earned =
    reward === null
      ? `could not be scored: ${problem}`
      : `earns ${reward.toFixed(3)} on average, ${most!.toFixed(3)} at most, over ${tasks} tasks`
  return `${probe.padEnd(12)} ${earned}  (${about})`
}

function flipLine({ group, fallen, risen }: RankFlip): string {
  const show = (each: RankFlip['fallen']): string =>
    `${each.trajectory} ${each.before} → ${each.after}`
  return `flip  ${group}: ${show(fallen)}, now below ${show(risen)}`
}

function summaryLines(
  summary: RescoreSummary,
  kept: number,
  { own }: Invocation,
): readonly string[] {
  const { droppedBefore, droppedAfter, unscored, lost, reasons } = summary
  const mean = (value: number | null): string => value?.toFixed(3) ?? '–'
  const isWanted = own['dry-run'] === undefined
  return [
    `${count(summary.scored)} trajectories in ${count(summary.groups)} groups scored, ${count(summary.changed)} changed` +
      `${unscored > 0 ? `, ${count(unscored)} could not be` : ''}`,
    `  reward   ${mean(summary.meanBefore)} over ${count(summary.scoredBefore)} → ${mean(summary.meanAfter)} over ${count(summary.scored)}`,
    `  dropped  ${droppedBefore} → ${droppedAfter}`,
    `  flips    ${summary.flips} pairs in ${summary.flippedGroups} groups changed places`,
    ...reasons.slice(0, 5).map(each => `  ${each.count} × ${each.reason}`),
    ...(lost > 0 && isWanted ? [lostLine(lost, kept, summary.groups)] : []),
  ]
}

function lostLine(lost: number, kept: number, groups: number): string {
  const had = `${count(lost)} trajectories that had a reward got none`
  return kept > 0
    ? `${had}: the new scores of ${count(kept)} of ${count(groups)} groups are kept, the others keep their old ones`
    : `${had}: nothing was kept, the old scores stand. Mend the reward, or keep the groups that could be scored with --partial`
}
