import { type Group, isOfAnother } from '../../base/core/group.ts'
import { attemptMeans, type Ending, succeeds } from '../../base/math/attempts.ts'
import {
  type Cluster,
  clusteredInterval,
  rewardInterval,
} from '../../base/math/bounds/clustered.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { passAtKOf, passHatKOf } from '../../base/math/pass-at-k.ts'
import { mean } from '../../base/math/statistics.ts'
import { openRunReader } from '../store/store.ts'

/** How one task went. */
export interface TaskResult {
  readonly task: string
  /** Whose attempts these are, if attempts have several seats. */
  readonly seat?: string
  /** A tree counts the share of its endings that succeeded. */
  readonly successes: number
  /** Attempts that could be scored; a tree is one, however many endings it has. */
  readonly trials: number
  /** Attempts that failed outside the policy; they count neither way. */
  readonly unscored: number
  /** One per attempt that was scored; a tree's is the mean of its endings. */
  readonly rewards: readonly number[]
  /** Per attempt: 1 if it succeeded, 0 if not; for a tree, the share of its endings that succeeded. */
  readonly chances: readonly number[]
}

/** A share or a mean with the bounds that hold it at 95 %. */
export interface Estimated extends Interval {
  /** Not a number (`null` in JSON) if nothing was scored: what was not measured is not 0. */
  readonly value: number
  /** Tasks with enough trials for it. */
  readonly tasks: number
}

/** How well a policy does. */
export interface Evaluated {
  readonly tasks: number
  readonly trials: number
  readonly unscored: number
  readonly success: Estimated
  readonly meanReward: Estimated
  /** The chance that at least one of k attempts succeeds, by k. */
  readonly passAtK: Readonly<Record<number, Estimated>>
  /** The chance that all of k attempts succeed, by k. */
  readonly passHatK: Readonly<Record<number, Estimated>>
  readonly tokens: { readonly sampled: number; readonly prompt: number }
  readonly byTask: readonly TaskResult[]
  /** Success and mean reward of each seat, if attempts have several that are measured. */
  readonly bySeat?: Readonly<Record<string, Pick<Evaluated, 'success' | 'meanReward'>>>
}

/** How an evaluation is measured. */
export interface MeasureOptions {
  /** The reward from which on an attempt counts as a success. @default 1 */
  readonly successAt?: number
  /** The k of pass@k and pass^k. @default 1 and the powers of 2 up to the number of trials */
  readonly k?: readonly number[] | undefined
}

/** Adds up the groups of an evaluation. */
export interface Measure {
  add(group: Group): TaskResult
  result(): Evaluated
}

/** Opens the measure of an evaluation; the order in which groups come makes no difference. */
export function makeMeasure({ successAt = 1, k }: MeasureOptions = {}): Measure {
  const results: TaskResult[] = []
  const tokens = { sampled: 0, prompt: 0 }
  return {
    add(group) {
      for (const { trajectory } of [...group.members, ...group.unscored]) {
        tokens.sampled += trajectory.usage.sampled
        tokens.prompt += trajectory.usage.prompt
      }
      const chances = attemptMeans(endingsOf(group, total => Number(succeeds(total, successAt))))
      const scored = new Set(group.members.map(({ tree }) => tree))
      const failed = new Set(
        group.unscored.map(({ tree }) => tree).filter(each => !scored.has(each)),
      )
      const result = {
        task: group.task,
        ...(group.seat !== undefined && { seat: group.seat }),
        successes: chances.reduce((sum, chance) => sum + chance, 0),
        trials: chances.length,
        unscored: failed.size,
        rewards: attemptMeans(endingsOf(group, total => total)),
        chances,
      }
      results.push(result)
      return result
    },
    result() {
      const byTask = results.toSorted((a, b) => (a.task < b.task ? -1 : 1))
      const most = byTask.reduce((most, { trials }) => Math.max(most, trials), 0)
      const wanted = (k ?? powersUpTo(most)).filter(each => each <= most)
      const scored = byTask.filter(({ trials }) => trials > 0)
      return {
        tasks: byTask.length,
        trials: scored.reduce((sum, { trials }) => sum + trials, 0),
        unscored: byTask.reduce((sum, { unscored }) => sum + unscored, 0),
        ...worthOf(scored),
        ...seatBySeat(scored),
        passAtK: byK(scored, wanted, passAtKOf),
        passHatK: byK(scored, wanted, passHatKOf),
        tokens,
        byTask,
      }
    },
  }
}

function worthOf(scored: readonly TaskResult[]): Pick<Evaluated, 'success' | 'meanReward'> {
  return {
    success: estimateShare(scored.map(clusterOf)),
    meanReward: {
      value: meanOf(scored.map(({ rewards }) => mean(rewards))),
      tasks: scored.length,
      ...rewardInterval(scored.map(({ rewards }) => rewards)),
    },
  }
}

function seatBySeat(scored: readonly TaskResult[]): Pick<Evaluated, 'bySeat'> {
  const seats = [...new Set(scored.flatMap(({ seat }) => seat ?? []))].sort()
  if (seats.length < 2) return {}
  const of = (seat: string) => worthOf(scored.filter(result => result.seat === seat))
  return { bySeat: Object.fromEntries(seats.map(seat => [seat, of(seat)])) }
}

function endingsOf({ members }: Group, worth: (total: number) => number): readonly Ending[] {
  return members.map(({ tree, trajectory, reward }) => ({
    tree,
    share: trajectory.share,
    value: worth(reward.total),
  }))
}

function powersUpTo(most: number): readonly number[] {
  const powers: number[] = []
  for (let power = 1; power <= most; power *= 2) powers.push(power)
  return powers.at(-1) === most || most === 0 ? powers : [...powers, most]
}

function byK(
  results: readonly TaskResult[],
  wanted: readonly number[],
  pass: (chances: readonly number[], k: number) => number,
): Readonly<Record<number, Estimated>> {
  return Object.fromEntries(
    wanted.map(k => [
      k,
      // So many draws of k are worth that many independent ones.
      estimateShare(
        results
          .filter(({ trials }) => trials >= k)
          .map(({ chances, trials }) => ({ share: pass(chances, k), trials: trials / k })),
      ),
    ]),
  )
}

function clusterOf({ successes, trials }: TaskResult): Cluster {
  return { share: successes / trials, trials }
}

/** A share over tasks; attempts at one task resemble each other. */
function estimateShare(clusters: readonly Cluster[]): Estimated {
  const value = meanOf(clusters.map(({ share }) => share))
  return { value, tasks: clusters.length, ...clusteredInterval(clusters) }
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : mean(values)
}

/** Measures what a run folder holds, however often it was interrupted. */
export async function measureRun(run: string, options: MeasureOptions = {}): Promise<Evaluated> {
  const measure = makeMeasure(options)
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) if (!isOfAnother(group)) measure.add(group)
  return measure.result()
}
