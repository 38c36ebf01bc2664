import { setMaxListeners } from 'node:events'
import type { Renderer } from '@espalier/text'
import { steadySeconds } from '../../base/core/call.ts'
import type { Environment } from '../../base/core/environment.ts'
import { type Filter, type Group, glanceAt } from '../../base/core/group.ts'
import type { Guard } from '../../base/core/guard.ts'
import { type GroupId, seatGroup } from '../../base/core/ids.ts'
import { type LaneLimits, type Lanes, makeLanes } from '../../base/core/lane.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { type Policy, plainSampling } from '../../base/core/policy.ts'
import { mean } from '../../base/math/statistics.ts'
import { usualStrategy } from '../../engine/capture/agent.ts'
import { seatedPolicy } from '../../engine/policies/seated.ts'
import type { Instrument } from '../../engine/rollout/attempt.ts'
import {
  type CondenseSettings,
  defaultLimits,
  type RolloutContext,
  type Seating,
} from '../../engine/rollout/attempt.ts'
import type { ImageSettings } from '../../engine/rollout/images/keep.ts'
import { makeSharedState } from '../../engine/rollout/shared.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import { makeYielding } from '../../engine/rollout/yielding.ts'
import { type Estimate, refuseBatch } from '../../engine/weigh/estimate.ts'
import type { GatherOptions } from '../../engine/weigh/gather.ts'
import type { ExampleSchedule } from '../demonstrations/shots.ts'
import { defaults, withoutUndefined } from '../settings/settings.ts'
import type { RunWriter } from '../store/store.ts'
import { type ReadTasksOptions, readTasks, type TaskSource } from '../tasks/tasks.ts'
import { listenAll } from '../watch/events.ts'
import type { Signals } from '../watch/signals.ts'
import { type AdaptiveOptions, makeAdaptive } from './adaptive.ts'
import { type Scorers, withScorers } from './attach-scores.ts'
import { type Budget, openBudget, type Spent } from './budget.ts'
import type { Elsewhere } from './elsewhere.ts'
import type { MemberOptions } from './member.ts'
import { type Job, openPipeline, type Pipeline, type PipelineOptions, seatsOf } from './pipeline.ts'
import { makeQuota, type QuotaOptions } from './quota.ts'
import type { RollOptions } from './roll-options.ts'

/** The options that stay what they are when a run is opened. */
type SameOption =
  | 'group'
  | 'sampling'
  | 'limits'
  | 'onLength'
  | 'onTime'
  | 'rewardSeconds'
  | 'stop'
  | 'topLogprobs'
  | 'weighting'
  | 'concurrency'
  | 'seed'
  | 'split'
  | 'signal'
  | 'listen'
  | 'instruments'
  | 'budget'
  | 'adaptive'
  | 'today'

/** Everything `rollGroups` needs, opened. */
export interface RollParts<Data = unknown> extends QuotaOptions, Pick<RollOptions, SameOption> {
  readonly environment: Environment<Data>
  readonly policy: Policy
  readonly renderer: Renderer
  readonly estimate: Estimate
  /** @default chain */
  readonly strategy?: Strategy
  /** Most trajectories of one tree. @default 1 */
  readonly leaves?: number
  /** Used instead of the environment's own reward. */
  readonly reward?: Environment['reward']
  readonly filters?: readonly Filter[]
  readonly writer?: RunWriter
  readonly known?: PipelineOptions['known']
  readonly unfinished?: PipelineOptions['unfinished']
  /** Groups that were finished before the run was interrupted. */
  readonly finished?: ReadonlySet<GroupId>
  /** What it had cost before it was interrupted. */
  readonly spent?: Spent
  /** Tokens that all its attempts had sampled by then, those that were made anew included. */
  readonly everSampled?: number
  /** The policy's signals, such as retries. */
  readonly signals?: Signals
  readonly guards?: readonly Guard[]
  /** Makes attempts in other places than this process. @default none */
  readonly elsewhere?: Elsewhere
  readonly endpoint?: PipelineOptions['endpoint']
  readonly lend?: PipelineOptions['lend']
  readonly lease?: PipelineOptions['lease']
  /** Policies that score every sampled token. @default none */
  readonly scorers?: Scorers
  /** What contexts are condensed with. @default nothing */
  readonly condense?: CondenseSettings | undefined
  /** Which images attempts may see. @default none */
  readonly images?: ImageSettings
  /** Conversations shown before each task. @default none */
  readonly examples?: ExampleSchedule
  /** Who plays seats that the policy does not. @default nobody */
  readonly seats?: Seating
  /** Lanes that others use too; whoever made them tells of them. @default its own */
  readonly lanes?: ReturnType<typeof makeLanes>
}

/**
 * Rolls a group for every task; each comes out as soon as it is complete. Throws a
 * `RunStoppedError` if a budget or a quota ends it before the tasks do.
 */
export async function* rollGroups<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
): AsyncGenerator<Group> {
  refuseBatch(parts.estimate, 'rolling alone')
  using budget = openBudget(parts.budget ?? {}, parts.spent && { spent: parts.spent })
  await using pipeline = openRollPipeline(withBudget(parts, budget))
  const quota = makeQuota(parts)
  const { group = defaults.group, finished, leaves = 1, listen } = parts
  const most = (): number =>
    rolloutsOf(parts) + Math.max(rolloutsOf(parts), parts.elsewhere?.room ?? 0)
  const reserved = group * leaves
  refuseTooFew(parts.budget?.trajectories, reserved * pipeline.perJob)
  const next = async (): Promise<Group> => {
    const made = await pipeline.next()
    const { rewards, unscored } = glanceAt(made)
    budget.settle(reserved, rewards.length + unscored)
    quota.take(made)
    return made
  }
  const stopWhereMet = (): void => {
    const { end, kept, length } = quota
    if (!end) return
    const cut = parts.unfinished?.lengths() ?? []
    const lengths = { kept: length, cut: cut.length === 0 ? null : mean(cut) }
    listen?.({ kind: 'early-stop', kept, cut: pipeline.pending, lengths })
    throw end
  }
  const seats = seatsOf(parts)
  const yielding = makeYielding(steadySeconds)
  let order = 0
  for await (const task of readTasks(parts.environment, tasks, readingOf(parts))) {
    const job: Job = { id: task.id as string as GroupId, task, order: order++ }
    if (seats.every(seat => finished?.has(seatGroup(job.id, seat)))) continue
    while (!budget.admit(reserved * pipeline.perJob)) {
      if (pipeline.pending === 0) throw budget.end('trajectories')
      yield await next()
    }
    stopWhereMet()
    while (!quota.begin()) {
      if (pipeline.pending === 0) throw quota.exhausted()
      yield await next()
      stopWhereMet()
    }
    // Thousands of attempts may begin at once.
    await yielding.whenDue()
    pipeline.submit(job)
    // Count attempts, not groups: a group that waits for its last member leaves room for others.
    while (pipeline.attempts >= most() || pipeline.pending >= quota.ahead || pipeline.ready > 0) {
      if (pipeline.ready === 0) await pipeline.change()
      else yield await next()
      stopWhereMet()
    }
  }
  while (pipeline.pending > 0) {
    yield await next()
    if (pipeline.pending > 0) stopWhereMet()
  }
}

/** Parts whose samples are paid from a budget, and which end with it. */
export function withBudget<Data>(parts: RollParts<Data>, budget: Budget): RollParts<Data> {
  const { signal, instruments = [] } = parts
  return {
    ...parts,
    signal: signal ? AbortSignal.any([signal, budget.signal]) : budget.signal,
    // Innermost, so that samples replayed from a record cost nothing.
    instruments: [budget.instrument, ...instruments],
    lend: budget.lend,
    lease: budget.lease,
  }
}

/** Refuses a budget that no group fits into: nothing would ever be rolled. */
function refuseTooFew(allowed: number | undefined, needed: number): void {
  if (allowed === undefined || allowed >= needed) return
  throw new SettingError(
    `--budget: one group takes ${needed} trajectories, more than the ${allowed} of the budget: allow more, or make --group smaller`,
  )
}

function readingOf({
  seed = defaults.seed,
  split,
}: Pick<RollParts, 'seed' | 'split'>): ReadTasksOptions {
  return { seed, ...(split !== undefined && { split }) }
}

/** Opens the pipeline that these parts make. */
export function openRollPipeline(parts: RollParts<never> | RollParts): Pipeline {
  const signal = parts.signal ?? new AbortController().signal
  // Every waiting attempt listens to this signal, which is not a leak.
  setMaxListeners(0, signal)
  const { writer, listen, known, unfinished, elsewhere, endpoint, lend, lease, leaves } = parts
  const isOwn = parts.lanes === undefined
  const lanes = parts.lanes ?? makeLanes(laneLimits(parts))
  const member = memberOptions(parts, lanes)
  const heard = hearSignals(parts, { lane: lanes.policy, clock: member.context.clock })
  if (isOwn) listen?.({ kind: 'lanes-open', lanes })
  return openPipeline({
    ...member,
    signal,
    group: parts.group ?? defaults.group,
    rollouts: rolloutsOf(parts),
    seed: parts.seed ?? defaults.seed,
    ...gatherOptions(parts),
    ...withoutUndefined({ writer, listen, known, unfinished, elsewhere }),
    ...withoutUndefined({ endpoint, lend, lease, leaves }),
    instruments: [...heard.instruments, ...(parts.instruments ?? [])],
    onClose() {
      heard.stop()
      if (isOwn) listen?.({ kind: 'lanes-close', lanes })
    },
  })
}

/** How groups of these parts are weighed. */
export function gatherOptions({
  filters = noFilters,
  estimate,
  weighting = defaults.weighting,
}: Pick<RollParts, 'filters' | 'estimate' | 'weighting'>): GatherOptions {
  return { filters, estimate, weighting }
}

/** One list, so that parts without filters are known to be weighed alike. */
const noFilters: readonly Filter[] = []

/** What one attempt of these parts is made with. */
export function memberOptions(
  parts: RollParts<never> | RollParts,
  lanes: Lanes,
): Pick<MemberOptions, 'context' | 'strategy' | 'reward'> {
  const context = contextOf(parts, lanes)
  return {
    context,
    strategy: withScorers(
      parts.strategy ?? usualStrategy(context.environment),
      parts.scorers ?? {},
    ),
    reward: parts.reward ?? context.environment.reward,
  }
}

/** What all attempts of these parts share. */
export function contextOf(parts: RollParts<never> | RollParts, lanes: Lanes): RolloutContext {
  return {
    environment: parts.environment as Environment,
    policy: parts.seats ? seatedPolicy(parts.policy, parts.seats) : parts.policy,
    renderer: parts.renderer,
    sampling: { ...plainSampling, ...parts.sampling },
    limits: { ...defaultLimits, ...parts.limits },
    onLength: parts.onLength ?? defaults.onLength,
    onTime: parts.onTime ?? defaults.onTime,
    rewardSeconds: parts.rewardSeconds ?? defaults.rewardSeconds,
    stopStrings: parts.stop ?? defaults.stop,
    topLogprobs: parts.topLogprobs ?? defaults.topLogprobs,
    lanes,
    clock: steadySeconds,
    shared: makeSharedState(steadySeconds),
    ...(parts.guards && { guards: parts.guards }),
    ...(parts.condense && { condense: parts.condense }),
    ...(parts.images && { images: parts.images }),
    ...(parts.examples && { examples: parts.examples }),
    ...(parts.seats && { seats: parts.seats }),
  }
}

/** Passes the policy's signals on, and lets them adjust the concurrency if `adaptive` is set. */
function hearSignals(
  { adaptive, signals, listen }: Pick<RollParts, 'adaptive' | 'signals' | 'listen'>,
  { lane, clock }: Pick<AdaptiveOptions, 'lane' | 'clock'>,
): { readonly instruments: readonly Instrument[]; stop(): void } {
  const moved = adaptive ? makeAdaptive({ lane, clock, listen }) : undefined
  const stop = signals?.on(listenAll(listen, moved?.listen))
  return { instruments: moved ? [moved.instrument] : [], stop: () => stop?.() }
}

/** The default width of a lane. */
const width = defaults.concurrency as number

/** How many attempts run at one time. */
export function rolloutsOf({ concurrency = width }: Pick<RollParts, 'concurrency'>): number {
  return typeof concurrency === 'number'
    ? concurrency
    : (concurrency.rollouts ?? concurrency.policy ?? width)
}

/** How many pieces of work each lane of these parts lets run. */
export function laneLimits({ concurrency = width }: Pick<RollParts, 'concurrency'>): LaneLimits {
  const lanes = typeof concurrency === 'number' ? { policy: concurrency } : concurrency
  const { policy = width, tools = policy, environment = policy, reward = policy } = lanes
  return { policy, tools, environment, reward }
}
