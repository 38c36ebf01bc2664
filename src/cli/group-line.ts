import type { Group } from '../core/group.ts'
import { describeOutcome } from '../core/outcome.ts'
import type { Counts } from './progress.ts'

/** A group on one line: its id, which `espalier show` opens, its rewards, what failed. */
export function groupLine(group: Group): string {
  const rewards = group.members.map(({ reward }) => round(reward.total)).join(' ')
  const dropped = group.members.filter(member => member.dropped).length
  const failed = group.unscored.map(({ outcome }) => describeOutcome(outcome))
  const notes = [...(dropped > 0 ? [`${dropped} dropped`] : []), ...failed.slice(0, 2)]
  return `${group.id.padEnd(12)}  reward ${rewards || '–'}${notes.length > 0 ? `  (${notes.join('; ')})` : ''}`
}

/** A group as one JSON object. */
export function groupRecord(group: Group) {
  return {
    group: group.id,
    task: group.task,
    rewards: group.members.map(({ reward }) => reward.total),
    advantages: group.members.map(({ advantage }) => advantage),
    dropped: group.members.filter(member => member.dropped).length,
    unscored: group.unscored.map(({ trajectory, outcome }) => ({
      trajectory: trajectory.id,
      outcome,
    })),
  }
}

/** The counts of a run as plain JSON. */
export function countsRecord(counts: Counts) {
  return {
    trees: counts.done,
    groups: counts.groups,
    dropped: counts.dropped,
    sampledTokens: counts.sampled,
    meanReward: counts.rewards === 0 ? null : counts.rewardSum / counts.rewards,
    outcomes: Object.fromEntries([...counts.outcomes].sort()),
    ...(counts.stopped !== undefined && { stopped: counts.stopped }),
  }
}

function round(value: number): string {
  return String(Math.round(value * 1000) / 1000)
}
