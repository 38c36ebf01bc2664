import { glanceAt, isHeldOut } from '../../../base/core/group.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/** Warns if every reward of the run is the same: nothing can be learned. */
export function equalRewards(): Sentinel {
  let groups = 0
  let count = 0
  let first: number | undefined
  let isOver = false
  return {
    name: 'equal-rewards',
    seeGroup(group): Alarm | undefined {
      if (isOver || isHeldOut(group)) return undefined
      groups++
      for (const reward of glanceAt(group).rewards) {
        first ??= reward
        count++
        if (reward !== first) isOver = true
      }
      if (isOver || groups < 8 || count < 32) return undefined
      isOver = true
      return {
        message: `all ${count} rewards of ${groups} groups are ${first}`,
        likely:
          first === 0
            ? 'the answers are not in the form that the reward reads, or the tasks are too hard; look at one with espalier show, and at the reward with espalier score --probe'
            : 'the reward does not look at the answer, or the tasks are too easy; see espalier score --probe',
      }
    },
  }
}

/** Groups that must be seen before the warning about missing contrast. */
const enoughGroups = 24

/** Warns if rewards are equal within every group, though groups differ: nothing can be learned. */
export function noContrast(): Sentinel {
  const means = new Set<number>()
  let groups = 0
  let isOver = false
  return {
    name: 'no-contrast',
    seeGroup(group): Alarm | undefined {
      if (isOver || isHeldOut(group)) return undefined
      const [first, ...others] = glanceAt(group).rewards
      if (first === undefined || others.length === 0) return undefined
      isOver = others.some(reward => reward !== first)
      means.add(first)
      groups++
      if (isOver || groups < enoughGroups || means.size < 2) return undefined
      isOver = true
      return {
        message: `in each of ${groups} groups all attempts have the same reward: without contrast nothing can be learned`,
        likely:
          'one of three: the policy always or never solves a task (take tasks of middling difficulty, or teach it first), ' +
          'its attempts at a task are all alike (raise --temperature or --group), or the reward sees no differences (give it parts); ' +
          'look at two attempts of one group with espalier show, and at the reward with espalier score --probe',
      }
    },
  }
}
