import type { Group } from '../../base/core/group.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { grpoAdvantages } from '../../base/math/advantages/grpo.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import type { Settings } from '../../run/settings/settings.ts'

/**
 * What is taken out of the groups before they are learned from: which trajectory an advantage
 * belongs to (`shuffled`), or any relation of rewards to what was done (`noise`).
 */
export type Control = NonNullable<Settings['control']>

/** A trainer that learns from groups with their information removed, as a control: it should learn nothing. */
export function withControl(trainer: Trainer, control: Control, seed: number): Trainer {
  let steps = 0
  return {
    name: `${trainer.name}+${control}`,
    step(groups, call) {
      const draw = random(seedOf(seed, control, steps++))
      const changed = control === 'noise' ? withNoise(groups, draw) : withShuffled(groups, draw)
      return trainer.step(changed, call)
    },
    ...(trainer.publish && { publish: call => trainer.publish!(call) }),
    save: (folder, call) => trainer.save(folder, call),
    load: (folder, call) => trainer.load(folder, call),
    [Symbol.asyncDispose]: () => trainer[Symbol.asyncDispose](),
  }
}

function withShuffled(groups: readonly Group[], draw: () => number): readonly Group[] {
  const advantages = groups.flatMap(({ members }) => members.map(({ advantage }) => advantage))
  const shuffled = shuffle(advantages, draw)
  let index = 0
  return groups.map(group => ({
    ...group,
    members: group.members.map(member => ({ ...member, advantage: shuffled[index++] ?? null })),
  }))
}

function withNoise(groups: readonly Group[], draw: () => number): readonly Group[] {
  return groups.map(group => {
    const entries = group.members.map(({ trajectory }) => ({
      group: group.id,
      trajectory: trajectory.id,
      reward: draw() < 0.5 ? 1 : 0,
    }))
    const advantages = grpoAdvantages(entries)
    const members = group.members.map((member, index) => ({
      ...member,
      advantage: advantages[index] ?? null,
    }))
    return { ...group, members }
  })
}
