import { leafWeight } from '../../base/core/credit.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import {
  type AdvantageEstimator,
  advantageNamed,
  type NamedOptions,
} from '../../base/math/registry.ts'
import { type BatchScale, batchScale } from './batch-scale.ts'
import { type Compared, comparedReward } from './compared.ts'
import { compareNodes } from './node-advantages.ts'
import { compareTurns } from './turn-advantages.ts'

/** Compares the members of a group with each other: one result each, in their order. */
export interface Estimate {
  (group: Group<Judged>, weighting: LeafWeighting): readonly Compared[]
  /** Set if advantages are scaled later, over all groups of a training step. */
  readonly batch?: BatchScale
}

/** The comparison within a group that a name stands for: `grpo`, `rloo`, `gigpo:gamma=0.9`. */
export function makeEstimate(text: string): Estimate {
  const { name, options } = parsePartName(text)
  const estimator = advantageNamed(name)
  const given = Object.fromEntries([...options].map(([key, value]) => [key, toValue(value)]))
  switch (estimator.kind) {
    case 'trajectory':
      // Called once with two members, so that options are refused before anything is rolled.
      estimator.compute(probe, given)
      if (given.scale === 'batch') return overBatch(estimator, given)
      return (group, weighting) => compareTrajectories(group, weighting, { estimator, given })
    case 'turn':
      estimator.compute(probe, given)
      return (group, weighting) =>
        compareTurns(group, weighting, turns => estimator.compute(turns, given))
    case 'node':
      refuseOptions(name, given)
      return (group, weighting) => compareNodes(group, weighting, estimator.compute)
    case 'token':
      throw new Error(
        `advantage "${name}" is whitened over the tokens of a whole training batch, but a run ` +
          'compares each group as it completes. Use dr-grpo, which is reinforce++-baseline without ' +
          'the whitening, or compute it in a trainer of your own from the rows it is given.',
      )
    default:
      return estimator satisfies never
  }
}

/** Two members, as trajectories or as their only turns. */
const probe = [0, 1].map(reward => ({ group: 0, trajectory: reward, reward, length: 1, tree: 0 }))

type OfTrajectories = Extract<AdvantageEstimator, { kind: 'trajectory' }>

function compareTrajectories(
  group: Group<Judged>,
  weighting: LeafWeighting,
  { estimator, given }: { readonly estimator: OfTrajectories; readonly given: NamedOptions },
): readonly Compared[] {
  const entries = group.members.map(member => ({
    group: group.id,
    trajectory: member.trajectory.id,
    tree: member.tree.id,
    reward: comparedReward(member),
    weight: leafWeight(member.trajectory, weighting),
    length: member.trajectory.usage.sampled,
  }))
  return estimator.compute(entries, given).map(advantage => ({ advantage: advantage ?? null }))
}

/** A group alone is centred; the spread of the whole batch is known when all its groups are there. */
function overBatch(estimator: OfTrajectories, given: NamedOptions): Estimate {
  const centred = { ...given, scale: 'none' }
  const compare = (group: Group<Judged>, weighting: LeafWeighting): readonly Compared[] =>
    compareTrajectories(group, weighting, { estimator, given: centred })
  const { deviation = 'sample', epsilon = 1e-6 } = given as Parameters<typeof batchScale>[1]
  return Object.assign(compare, { batch: batchScale(compare, { deviation, epsilon }) })
}

/** Refuses a comparison over batches if there are none: groups are weighed one by one. */
export function refuseBatch({ batch }: Estimate, where: string): void {
  if (!batch) return
  throw new SettingError(
    `--advantage with scale=batch is for train, which knows the groups of a step; ${where} weighs each ` +
      'group by itself. Use scale=group or scale=none',
  )
}

function refuseOptions(name: string, given: NamedOptions): void {
  const [option] = Object.keys(given)
  if (option === undefined) return
  throw new Error(`advantage "${name}" has no option "${option}"; it has none`)
}

function toValue(text: string): unknown {
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : text
}
