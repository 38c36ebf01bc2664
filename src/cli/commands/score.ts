import type { Environment, Task } from '../../core/environment.ts'
import { type ProbeResult, probeRewards } from '../../measure/probe-rewards.ts'
import {
  openRescoreSummary,
  type RankFlip,
  type RescoreOptions,
  type RescoreSummary,
  rescore,
} from '../../measure/rescore.ts'
import {
  openEnvironmentNamed,
  openEstimateNamed,
  openFilters,
  openRewards,
} from '../../run/open-parts.ts'
import { isUserPart } from '../../settings/user-part.ts'
import { openRunReader, openRunWriter } from '../../store/store.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { enterRun } from '../enter-run.ts'
import { rerunOnChange } from '../rerun.ts'
import { count } from '../units.ts'

/** Scores and filters stored trajectories again. */
export const scoreCommand: Command = {
  name: 'score',
  summary: 'Score and filter stored trajectories again',
  usage: 'RUN [--reward NAME|FILE#EXPORT] [--filter NAME] [--advantage NAME]',
  about:
    'Scores, filters and weighs the stored trajectories of a run again, lists the pairs within groups\n' +
    'that changed places, and keeps the new scores in the run, where exports find them; the old ones\n' +
    'stay in its journal. --watch does it again whenever a named file changes, --probe plays answers\n' +
    'that should be worth nothing; neither keeps anything.',
  examples: [
    'espalier score runs/0007 --reward ./reward.ts#right --watch',
    'espalier score runs/0007 --filter void-turns --advantage rloo',
    'espalier score runs/0007 --probe',
  ],
  settings: ['reward', 'judge', 'filters', 'advantage', 'weighting', 'environment', 'agent'],
  own: {
    watch: { help: 'Score again whenever a named file changes; keeps nothing' },
    probe: { help: 'What do empty, copied, format-only answers earn? Keeps nothing' },
    'dry-run': { help: 'Show what would change; keeps nothing' },
  },
  words: [1, 1],
  run: runScore,
}

async function runScore(invocation: Invocation): Promise<number> {
  const { own, terminal, json, signal } = invocation
  const { run, values } = await enterRun(invocation)
  if (values.environment === undefined) {
    throw new MisuseError(`${run} does not say its environment: name it with --environment`)
  }
  const names = [values.environment, ...(values.reward ?? []), ...values.filters]
  if (own['dry-run'] !== undefined) refuseCodeOf(invocation, names)
  if (own.watch !== undefined) return await rerunOnChange(names, invocation)
  await using environment = disposable(await openEnvironmentNamed(values.environment))
  const reward = (await openRewards(values.reward, values.judge)) ?? environment.part.reward
  if (own.probe !== undefined) {
    const results = await probe(run, { ...environment.part, reward }, signal)
    for (const result of results) {
      terminal.print(json ? JSON.stringify(result) : probeLine(result))
    }
    return 0
  }
  const options: RescoreOptions = {
    reward,
    filters: await openFilters(values.filters),
    estimate: await openEstimateNamed(values.advantage),
    weighting: values.weighting,
    signal,
  }
  const summary = await scoreAll(run, options, invocation)
  if (json) terminal.print(JSON.stringify({ run, ...summary }))
  else for (const line of summaryLines(summary)) terminal.print(line)
  return summary.scored === 0 && summary.groups > 0 ? 1 : 0
}

/** Looking at a run that came from somebody runs none of the files it names, unless a flag does. */
function refuseCodeOf({ flags }: Invocation, names: readonly string[]): void {
  const given = [flags.environment, flags.reward, flags.filters].flat()
  const named = names.find(name => isUserPart(name) && !given.includes(name))
  if (named === undefined) return
  throw new MisuseError(
    `--dry-run runs no code that a run names; if ${named} is yours, name it with its flag as well`,
  )
}

function disposable(part: Environment) {
  return {
    part,
    async [Symbol.asyncDispose]() {
      await part[Symbol.asyncDispose]?.()
    },
  }
}

async function scoreAll(
  run: string,
  options: RescoreOptions,
  { own, terminal, json }: Invocation,
): Promise<RescoreSummary> {
  const isKept = own['dry-run'] === undefined
  const writer = isKept ? await openRunWriter(run) : undefined
  const total = openRescoreSummary()
  try {
    for await (const rescored of rescore(run, options)) {
      for (const flip of total.add(rescored)) {
        terminal.print(json ? JSON.stringify(flip) : flipLine(flip))
      }
      await writer?.writeGroup(rescored.after, rescored.task, rescored.order)
    }
  } finally {
    await writer?.[Symbol.asyncDispose]()
  }
  return total.summary()
}

/** Tasks to probe: the first of the run, enough to see a pattern. */
const probed = 32

async function probe(
  run: string,
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly ProbeResult[]> {
  const tasks: Task[] = []
  await using reader = await openRunReader(run)
  for await (const { task } of reader.groups()) {
    if (tasks.push(task) === probed) break
  }
  return await probeRewards(environment, tasks, { signal, seed: 1 })
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

function summaryLines(summary: RescoreSummary): readonly string[] {
  const { droppedBefore, droppedAfter, unscored } = summary
  return [
    `${count(summary.scored)} trajectories in ${count(summary.groups)} groups scored, ${count(summary.changed)} changed` +
      `${unscored > 0 ? `, ${count(unscored)} could not be` : ''}`,
    `  reward   ${summary.meanBefore.toFixed(3)} → ${summary.meanAfter.toFixed(3)}`,
    `  dropped  ${droppedBefore} → ${droppedAfter}`,
    `  flips    ${summary.flips} pairs in ${summary.flippedGroups} groups changed places`,
  ]
}
