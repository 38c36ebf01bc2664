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

/** Steps of training without any advantage before the warning. */
const idleSteps = 3

/** Warns if several steps in a row had nothing to learn from, whatever there was before. */
export function idleTraining(): Sentinel {
  let steps = 0
  let isOver = false
  return {
    name: 'idle-training',
    seeStep({ rows = 0, trainedRows }): Alarm | undefined {
      steps = rows > 0 && trainedRows === 0 ? steps + 1 : 0
      if (isOver || steps < idleSteps) return undefined
      isOver = true
      return {
        message: `in ${steps} steps in a row no attempt was better or worse than the others at its task: the weights did not change`,
        likely:
          'the tasks are all too hard or all solved, or attempts are all alike: take tasks of middling difficulty (--sample-tasks band), a larger --group, or teach the policy first',
      }
    },
  }
}

/** Groups of one that must be seen before the warning about them. */
const enoughAlone = 4

/** Warns if training compares attempts and rolls only one of each task. */
export function noSiblings(): Sentinel {
  let groups = 0
  let isOver = false
  return {
    name: 'no-siblings',
    seeGroup(group): Alarm | undefined {
      if (isOver || group.step === undefined || isHeldOut(group)) return undefined
      const [member, ...others] = group.members
      const isAlone = others.length === 0 && group.unscored.length === 0
      if (!member || !isAlone || member.advantage || member.turns || member.stretches) {
        isOver = member !== undefined
        return undefined
      }
      groups++
      if (groups < enoughAlone) return undefined
      isOver = true
      return {
        message:
          'every task is attempted once, and attempts are compared with others at their task: nothing can be learned',
        likely:
          '--group 1: give a larger --group, or an --advantage that compares with something else',
      }
    },
  }
}
