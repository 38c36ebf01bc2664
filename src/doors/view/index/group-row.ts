import { treeOf } from '../../../base/core/ids.ts'
import type { GroupRecord } from '../../../run/store/group-record.ts'
import type { GroupRow } from '../answers.ts'
import { type Facts, outcomeLabel, type TreeFacts } from './facts.ts'

/** The ids that evaluations give their groups. */
const evaluation = /^evaluation-\d+\//

/** A group in a line, from what its record says and what is known of its trees so far. */
export function rowOf(
  record: GroupRecord,
  factsOf: (tree: string) => TreeFacts | undefined,
): GroupRow {
  const { id, task, order, members, unscored } = record
  const rewards = members.map(({ reward }) => reward.total)
  const trees = new Map<string, TreeFacts | undefined>()
  const look = ({ trajectory }: { readonly trajectory: string }): readonly Facts[] => {
    const tree = treeOf(trajectory)
    if (!trees.has(tree)) trees.set(tree, factsOf(tree))
    const found = trees.get(tree)?.trajectories.get(trajectory)
    return found ? [found] : []
  }
  const scored = members.flatMap(look)
  const facts = [...scored, ...unscored.flatMap(look)]
  const isKnown = facts.length === members.length + unscored.length && facts.length > 0
  return {
    id,
    task: task.id,
    ...(record.seat !== undefined && { seat: record.seat }),
    step: record.step ?? null,
    order,
    opening: [...trees.values()].find(each => each?.opening)?.opening ?? '',
    rewards,
    members: members.length + unscored.length,
    unscored: unscored.length,
    dropped: members.filter(({ dropped }) => dropped !== null).length,
    isEvaluation: evaluation.test(id),
    mean: rewards.length === 0 ? null : sum(rewards) / rewards.length,
    spread: rewards.length === 0 ? null : Math.max(...rewards) - Math.min(...rewards),
    outcomes: distinct([
      ...scored.map(({ outcome }) => outcome),
      // A reward may have failed after its trajectory had completed: the record knows.
      ...unscored.map(({ outcome }) => outcomeLabel(outcome)),
    ]),
    reasons: distinct(
      members.flatMap(({ dropped }) => (dropped ? `${dropped.filter}: ${dropped.reason}` : [])),
    ),
    tools: distinct(facts.flatMap(({ tools }) => tools)),
    tokens: isKnown ? sum(facts.map(({ sampled }) => sampled)) / facts.length : null,
    turns: isKnown ? sum(facts.map(({ turns }) => turns)) / facts.length : null,
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function distinct(values: readonly string[]): readonly string[] {
  return [...new Set(values)]
}
