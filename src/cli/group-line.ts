import { type Group, glanceAt, heldOutFilter, reasonsUnscored } from '../base/core/group.ts'
import type { Counts } from './progress.ts'

/** A group on one line: its id, which `espalier show` opens, its rewards, what failed. */
export function groupLine(group: Group): string {
  const glance = glanceAt(group)
  const rewards = glance.rewards.map(round).join(' ')
  const reasons = reasonsUnscored(group)
  const notes = [
    ...(glance.dropped > 0 ? [droppedNote(group)] : []),
    ...reasons
      .slice(0, 2)
      .map(({ reason, count }) => (count === 1 ? reason : `${count} × ${reason}`)),
    ...(reasons.length > 2 ? [`${reasons.length - 2} more`] : []),
  ]
  return `${group.id.padEnd(12)}  reward ${rewards || '–'}${notes.length > 0 ? `  (${notes.join('; ')})` : ''}`
}

/** How many were dropped, by which filters and why the first of them was. */
function droppedNote({ members }: Group): string {
  const dropped = members.flatMap(member => (member.dropped ? [member.dropped] : []))
  const filters = [...new Set(dropped.map(({ filter }) => filter))].join(', ')
  if (filters === heldOutFilter) return 'held out: measured, never trained'
  return `${dropped.length} dropped by ${filters}: ${dropped[0]!.reason}`
}

/** A group as one JSON object. */
export function groupRecord(group: Group) {
  return {
    group: group.id,
    task: group.task,
    ...(group.seat !== undefined && { seat: group.seat }),
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

/** A reward as people read it. */
export function round(value: number): string {
  return String(Math.round(value * 1000) / 1000)
}
