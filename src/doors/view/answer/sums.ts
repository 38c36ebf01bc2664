import { describeOutcome } from '../../../base/core/outcome.ts'
import { succeeds } from '../../../base/math/attempts.ts'
import { clusteredInterval } from '../../../base/math/bounds/clustered.ts'
import { mean } from '../../../base/math/statistics.ts'
import type { GroupRecord } from '../../../run/store/group-record.ts'
import type { GroupRow, RunSums } from '../answers.ts'
import { type Facts, outcomeLabel, type TreeFacts } from '../index/facts.ts'
import { isOfAnother } from './comparison.ts'

/** Where the sums of a run come from, besides its rows. */
export interface SumSource {
  readonly treesOf: (group: string) => readonly TreeFacts[]
  readonly unscoredOf: (group: string) => GroupRecord['unscored']
  readonly successAt: number
}

/** Adds up a run's groups; evaluations are left out, and of what others played only its seats are told. */
export function sumsOf(
  rows: readonly GroupRow[],
  { treesOf, unscoredOf, successAt }: SumSource,
): RunSums {
  const all = rows.filter(row => !row.isEvaluation)
  const rolled = all.filter(row => !isOfAnother(row))
  const rewards = rolled.flatMap(row => row.rewards)
  const compared = rolled.filter(row => row.rewards.length > 1)
  const trees = rolled.flatMap(({ id }) => treesOf(id))
  const unscored = rolled.flatMap(({ id }) => unscoredOf(id))
  // A reward may have failed after its trajectory had completed: the record knows.
  const ended = new Map(unscored.map(each => [each.trajectory as string, each.outcome]))
  const facts = trees.flatMap(({ trajectories }) => [...trajectories.values()])
  const sum = (value: (facts: Facts) => number): number =>
    facts.reduce((total, each) => total + value(each), 0)
  const tasks = rolled
    .filter(row => row.rewards.length > 0)
    .map(row => row.rewards.map(reward => Number(succeeds(reward, successAt))))
    .map(solved => ({ share: mean(solved), trials: solved.length }))
  return {
    groups: rolled.length,
    trajectories: rolled.reduce((total, row) => total + row.members, 0),
    scored: rewards.length,
    reward:
      rewards.length === 0
        ? null
        : rewards.reduce((total, reward) => total + reward, 0) / rewards.length,
    success:
      rewards.length === 0
        ? null
        : { rate: mean(tasks.map(({ share }) => share)), ...clusteredInterval(tasks) },
    compared: compared.length,
    contrast: compared.filter(row => row.spread! > 0).length,
    sampled: trees.reduce((total, { sampled }) => total + sampled, 0),
    prompt: sum(({ prompt }) => prompt),
    cached: sum(({ cached }) => cached),
    seconds: {
      policy: sum(({ seconds }) => seconds.policy),
      tools: sum(({ seconds }) => seconds.tools),
      environment: sum(({ seconds }) => seconds.environment),
      reward: sum(({ seconds }) => seconds.reward),
    },
    outcomes: countsOf(
      trees.flatMap(({ trajectories }) => [...trajectories]),
      ([id, { outcome }]) => [ended.has(id) ? outcomeLabel(ended.get(id)!) : outcome],
    ),
    failures: countsOf(unscored, ({ outcome }) => [describeOutcome(outcome)]),
    seats: seatsOf(all),
    filters: countsOf(all, ({ reasons }) => reasons),
    tools: toolsOf(facts),
    fidelity: countsOf(facts, ({ fidelity }) => [fidelity]),
  }
}

/** Names come from policies and files: one called `__proto__` is a name like any other. */
function countsOf<T>(
  items: readonly T[],
  names: (item: T) => readonly string[],
): Record<string, number> {
  const counts = new Map<string, number>()
  for (const item of items)
    for (const name of names(item)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a))
}

/** Whether somebody who does not learn played the seat. */
function seatsOf(rows: readonly GroupRow[]): RunSums['seats'] {
  const rewards = new Map<string, number[]>()
  for (const { seat, rewards: own } of rows) {
    if (seat === undefined || own.length === 0) continue
    const known = rewards.get(seat) ?? []
    rewards.set(seat, known)
    known.push(...own)
  }
  return Object.fromEntries([...rewards].map(([seat, all]) => [seat, mean(all)]))
}

function toolsOf(facts: readonly Facts[]): RunSums['tools'] {
  const tools = new Map<string, { calls: number; problems: number }>()
  for (const each of facts) {
    for (const [name, { calls, problems }] of each.byTool) {
      const sofar = tools.get(name) ?? { calls: 0, problems: 0 }
      tools.set(name, { calls: sofar.calls + calls, problems: sofar.problems + problems })
    }
  }
  return Object.fromEntries([...tools].sort(([, a], [, b]) => b.calls - a.calls))
}
