import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Environment } from '../base/core/environment.ts'
import { checkLearning } from '../learn/learn/train.ts'
import { openPlainParts } from '../run/run/open-parts.ts'
import type { ResolvedSettings } from '../run/settings/config.ts'
import { needed } from '../run/settings/open-named.ts'
import {
  defaultTasks,
  type SettingName,
  type Settings,
  settingsOf,
  withoutUndefined,
} from '../run/settings/settings.ts'
import { type RunManifest, runPaths } from '../run/store/run-folder.ts'
import { readTasks } from '../run/tasks/tasks.ts'
import type { RunReport } from '../run/watch/run-report.ts'
import type { RunKind } from './dry-run.ts'

/** An estimate for a run that has not begun. */
export interface Forecast {
  readonly expected: number
  /** What the limits allow. */
  readonly most: number
}

/** What one attempt costs, and how that is known. */
export interface PerAttempt {
  readonly turns: number
  readonly sampled: number
  readonly prompt: number
  readonly bytes: number
  /** Seconds of the whole run per attempt, at its own concurrency. */
  readonly seconds: number
  readonly from: string
}

/** What a run would do, before it does anything. */
export interface Plan {
  readonly kind: string
  readonly out: string
  readonly tasks: number
  readonly attempts: number
  readonly requests: Forecast
  readonly sampledTokens: Forecast
  readonly promptTokens: Forecast
  readonly seconds: number
  readonly bytes: Forecast
  readonly money?: Forecast
  /** Why it would end before its tasks do. */
  readonly budget?: string
  readonly perAttempt: PerAttempt
  readonly settings: readonly PlannedSetting[]
}

/** A setting, its value and where that came from. */
export interface PlannedSetting {
  readonly name: SettingName
  readonly value: unknown
  readonly from: string
}

/** What is planned: which command, into which folder. */
export interface PlanOptions {
  readonly kind: RunKind
  readonly out: string
}

/** Counts what settings would lead to; samples nothing and writes nothing. */
export async function planRun(
  { values, origins }: ResolvedSettings,
  { kind, out }: PlanOptions,
): Promise<Plan> {
  if (kind === 'train') await checkLearning(withoutUndefined(values))
  const { environment } = await openPlainParts(
    needed(values, 'environment'),
    values.tasks,
    withoutUndefined(values),
  )
  const tasks = await countTasks(environment, values, kind)
  const attempts = tasks * membersOf(values, kind)
  const per = (await fromEarlierRun(values, out)) ?? guess(values)
  const mostTurns = values.maxTurns
  const mostSampled = Math.min(values.maxRolloutTokens, mostTurns * values.maxNewTokens)
  const mostPrompt = mostTurns * values.maxContext
  const tokens = { prompt: per.prompt * attempts, sampled: per.sampled * attempts }
  const most = { prompt: mostPrompt * attempts, sampled: mostSampled * attempts }
  const budget = whatEnds(values, tokens, attempts)
  return {
    kind,
    out,
    tasks,
    attempts,
    requests: { expected: Math.round(per.turns * attempts), most: mostTurns * attempts },
    sampledTokens: { expected: Math.round(tokens.sampled), most: most.sampled },
    promptTokens: { expected: Math.round(tokens.prompt), most: most.prompt },
    seconds: per.seconds * attempts,
    bytes: { expected: Math.round(per.bytes * attempts), most: bytesFor(most) },
    ...moneyFor(values, tokens, most),
    ...(budget !== undefined && { budget }),
    perAttempt: per,
    settings: settingsOf(kind).map(name => ({ name, value: values[name], from: origins[name] })),
  }
}

/** How many tasks will be rolled; in training the steps decide, as its stream of tasks never ends. */
async function countTasks(
  environment: Environment,
  values: Settings,
  kind: string,
): Promise<number> {
  if (kind === 'train') return values.steps * values.tasksPerStep
  const source = values.tasks ?? defaultTasks
  const { seed, split } = values
  if (typeof source === 'number') return source
  let count = 0
  const reading = { seed, ...(split !== undefined && { split }) }
  for await (const _ of readTasks(environment, source, reading)) count++
  return count
}

function membersOf({ group, trials, strategy, leaves }: Settings, kind: string): number {
  if (kind === 'eval') return trials
  return strategy === 'tree' ? group * leaves : group
}

interface Tokens {
  readonly prompt: number
  readonly sampled: number
}

/** Ids and log-probabilities of samples, ids and text of all else. */
function bytesFor({ prompt, sampled }: Tokens): number {
  return sampled * 16 + prompt * 2
}

function moneyFor({ budget }: Settings, tokens: Tokens, most: Tokens): Pick<Plan, 'money'> {
  const { price } = budget ?? {}
  if (!price) return {}
  const cost = ({ prompt, sampled }: Tokens): number =>
    (prompt * price.prompt + sampled * price.sampled) / 1e6
  return { money: { expected: cost(tokens), most: cost(most) } }
}

function whatEnds({ budget }: Settings, tokens: Tokens, attempts: number): string | undefined {
  if (!budget) return undefined
  const shares = [
    ['tokens', (budget.tokens ?? Number.POSITIVE_INFINITY) / tokens.sampled],
    ['trajectories', (budget.trajectories ?? Number.POSITIVE_INFINITY) / attempts],
  ] as const
  const [kind, share] = shares.toSorted((a, b) => a[1] - b[1])[0]!
  if (!(share < 1)) return undefined
  return `the budget of ${budget[kind]} ${kind} is expected to end it after ${Math.floor(share * 100)} % of the attempts`
}

/** Without an earlier run: a few short turns, marked as a guess. */
function guess(values: Settings): PerAttempt {
  const turns = Math.min(4, values.maxTurns)
  const sampled = Math.min(turns * Math.min(200, values.maxNewTokens), values.maxRolloutTokens)
  const prompt = turns * Math.min(1000, values.maxContext)
  const width = typeof values.concurrency === 'number' ? values.concurrency : 64
  return {
    turns,
    sampled,
    prompt,
    bytes: bytesFor({ prompt, sampled }),
    seconds: (sampled * 0.02) / width,
    from: 'a guess (no earlier run of this environment here): roll a few tasks first to know better',
  }
}

/** The newest finished run beside this one with the same environment, strategy and policy, or all but the policy. */
async function fromEarlierRun(values: Settings, out: string): Promise<PerAttempt | undefined> {
  const parent = dirname(out)
  const names = existsSync(parent) ? await readdir(parent) : []
  const runs = await Promise.all(names.map(name => readEarlier(join(parent, name))))
  const like = runs
    .flatMap(run => (run && isLike(run.manifest, values) ? [run] : []))
    .toSorted((a, b) => (a.manifest.started < b.manifest.started ? 1 : -1))
  const same = like.find(({ manifest }) => isEqual(manifest.config.policy, values.policy))
  return (same ?? like[0])?.per
}

function isLike({ config }: RunManifest, { environment, strategy }: Settings): boolean {
  return config.environment === environment && (config.strategy ?? 'chain') === strategy
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

async function readEarlier(
  run: string,
): Promise<{ readonly manifest: RunManifest; readonly per: PerAttempt } | undefined> {
  try {
    const paths = runPaths(run)
    const manifest = JSON.parse(await readFile(paths.manifest, 'utf8')) as RunManifest
    const report = JSON.parse(await readFile(paths.report, 'utf8')) as RunReport
    const { size } = await stat(paths.journal)
    const { trajectories, turns, tokens, started, finished } = report
    if (!finished || !(trajectories > 0)) return undefined
    const seconds = (Date.parse(finished) - Date.parse(started)) / 1000
    const per = {
      turns: turns.mean,
      sampled: tokens.perTrajectory.mean,
      prompt: tokens.prompt / trajectories,
      bytes: size / trajectories,
      seconds: seconds / trajectories,
      from: `${run}, ${trajectories} trajectories`,
    }
    return { manifest, per }
  } catch {
    // Not a run folder.
    return undefined
  }
}
