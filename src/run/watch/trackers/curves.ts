import { isHeldOut } from '../../../base/core/group.ts'
import type { RunEvent } from '../events.ts'

/** Numbers of one step, by the names of their curves. */
export interface CurvePoint {
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

/** Reads the curves of a run out of its events: those of training by step, others by group. */
export function curveReader(): (event: RunEvent) => CurvePoint | undefined {
  let groups = 0
  return event => {
    if (event.kind === 'curves') return { step: event.step, values: event.values }
    if (event.kind !== 'group-end' || event.group.step !== undefined || isHeldOut(event.group))
      return undefined
    groups++
    const { members, unscored } = event.group
    const rewards = members.map(({ reward }) => reward.total)
    const mean = rewards.reduce((sum, each) => sum + each, 0) / Math.max(1, rewards.length)
    const values = {
      ...(rewards.length > 0 && { 'roll/reward': mean }),
      'roll/unscored': unscored.length,
    }
    return { step: groups, values }
  }
}
