import type { Alarm, Sentinel } from './sentinel.ts'

/** Every reward of the run is the same: nothing can be learned. */
export function equalRewards(): Sentinel {
  let groups = 0
  let count = 0
  let first: number | undefined
  let isOver = false
  return {
    name: 'equal-rewards',
    seeGroup(group): Alarm | undefined {
      if (isOver) return undefined
      groups++
      for (const { reward } of group.members) {
        first ??= reward.total
        count++
        if (reward.total !== first) isOver = true
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
