import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import { readWhere, type WhereFields } from './where.ts'

/** Which trajectories of a run are written. */
export interface Selection {
  /** A condition on trajectories, such as `reward >= 1`. */
  readonly where?: string
  /** The most trajectories of a group, those of the highest reward. */
  readonly best?: number
  /** Trajectories to write besides those that are trained on. */
  readonly include?: readonly ('failed' | 'filtered')[]
}

/** A group with only the members that were selected. */
export interface Selected {
  readonly group: Group
  /** Trajectories that were left out, by reason: failed, filtered, where, best. */
  readonly leftOut: Readonly<Record<string, number>>
}

type Candidate = Weighted | Unscored

interface Item {
  readonly group: Group
  readonly member: Candidate
}

/**
 * Reads a selection once; the returned function is used group by group. With `comparesRewards`, members
 * that a filter dropped from the loss only are kept, as the trainer needs their rewards.
 */
export function makeSelection(
  { where, best, include = [] }: Selection,
  { comparesRewards = false } = {},
): (group: Group) => Selected {
  if (best !== undefined && !(Number.isInteger(best) && best > 0)) {
    throw new RangeError(`--best takes a whole number of trajectories, not ${best}`)
  }
  const holds = where === undefined ? () => true : readWhere(where, trajectoryFields)
  return group => {
    const leftOut: Record<string, number> = {}
    const leave = (reason: string): false => {
      leftOut[reason] = (leftOut[reason] ?? 0) + 1
      return false
    }
    const passes = (member: Candidate): boolean => holds({ group, member }) || leave('where')
    const unscored = group.unscored.filter(
      member => (include.includes('failed') || leave('failed')) && passes(member),
    )
    const members = group.members.filter(
      member =>
        (member.dropped === null ||
          include.includes('filtered') ||
          (comparesRewards && member.dropped.from === 'loss') ||
          leave('filtered')) &&
        passes(member),
    )
    const kept = best === undefined ? members : bestOf(members, best)
    if (kept.length < members.length) leftOut.best = members.length - kept.length
    return { group: { ...group, members: kept, unscored }, leftOut }
  }
}

/** The `count` members of the highest reward, in their own order; the first wins a tie. */
function bestOf(members: readonly Weighted[], count: number): readonly Weighted[] {
  const ranked = [...members].sort((a, b) => b.reward.total - a.reward.total)
  const kept = new Set(ranked.slice(0, count))
  return members.filter(member => kept.has(member))
}

const isScored = (member: Candidate): member is Weighted => 'reward' in member

function outcomeOf(member: Candidate): Outcome {
  return isScored(member) ? member.trajectory.outcome : member.outcome
}

/** What a condition can name: one value each for a trajectory. */
const trajectoryFields: WhereFields<Item> = {
  fields: {
    task: ({ group }) => group.task,
    group: ({ group }) => group.id,
    step: ({ group }) => group.step ?? null,
    tree: ({ member }) => member.tree.id,
    trajectory: ({ member }) => member.trajectory.id,
    member: ({ member }) => member.tree.member,
    reward: ({ member }) => (isScored(member) ? member.reward.total : null),
    advantage: ({ member }) => (isScored(member) ? member.advantage : null),
    weight: ({ member }) => (isScored(member) ? member.weight : null),
    outcome: ({ member }) => outcomeOf(member).kind,
    limit: ({ member }) => {
      const outcome = outcomeOf(member)
      return outcome.kind === 'truncated' ? outcome.limit : null
    },
    turns: ({ member }) => member.trajectory.turns.length,
    calls: ({ member }) => member.trajectory.calls.length,
    messages: ({ member }) => member.trajectory.messages.length,
    sampled: ({ member }) => member.trajectory.usage.sampled,
    prompt: ({ member }) => member.trajectory.usage.prompt,
    fidelity: ({ member }) => member.trajectory.fidelity.kind,
    filtered: ({ member }) => (isScored(member) ? (member.dropped?.filter ?? null) : null),
    temperature: ({ member }) => member.tree.sampling.temperature,
  },
  families: {
    rewards: ({ member }, name) =>
      (isScored(member) ? member.reward.parts.find(part => part.name === name)?.score : null) ??
      null,
  },
}
