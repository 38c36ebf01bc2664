import type { Group, Unscored, Weighted } from '../core/group.ts'
import type { Row } from '../core/row.ts'
import { shortestFloat32 } from './number.ts'
import {
  type GroupRowOptions,
  groupRows,
  type MemberRow,
  toTriples,
  versionNumber,
} from './row-record.ts'

/** What the neutral format is told besides the group. */
export interface JsonlOptions extends GroupRowOptions {
  /** The name of the run, written into every row. */
  readonly run: string
  /** Also write what depends on clocks and servers. @default false */
  readonly volatile?: boolean
}

/** The rows of a group in the neutral format, one JSON object per line. */
export function toJsonl(group: Group, options: JsonlOptions): string {
  return groupRows(group, options)
    .map(row => `${toLine(group, row, options)}\n`)
    .join('')
}

function toLine(group: Group, { row, member, tree }: MemberRow, options: JsonlOptions): string {
  const { trajectory } = row
  const head = {
    run: options.run,
    group: group.id,
    tree: tree.id,
    trajectory: trajectory.id,
    row: row.index,
    rows: row.count,
    task: group.task,
    member: tree.member,
  }
  const tail = {
    origins: toTriples(row.origins, origin => origin),
    versions: toTriples(row.versions, versionNumber),
    ...rewardFields(member),
    ...creditFields(row, member),
    outcome: isUnscored(member) ? member.outcome : trajectory.outcome,
    sampling: { ...tree.sampling, seed: tree.seed },
    basis: row.basis,
    messages: trajectory.messages,
    tools: tree.tools,
    ...(trajectory.report !== undefined && { report: trajectory.report }),
    ...(group.step !== undefined && { step: group.step }),
    fidelity: trajectory.fidelity,
    filtered: isUnscored(member) || !member.dropped ? null : filteredBy(member.dropped),
    usage: trajectory.usage,
    ...(options.volatile && volatileFields(row)),
  }
  // Numbers are written by hand: they are most of the line, and floats want their shortest form.
  return (
    `${JSON.stringify(head).slice(0, -1)},"ids":[${row.ids.join()}],"mask":[${row.mask.join()}],` +
    `"logprobs":[${floats(row.logprobs)}],${JSON.stringify(tail).slice(1)}`
  )
}

const isUnscored = (member: Weighted | Unscored): member is Unscored => !('reward' in member)

function floats(values: Float32Array): string {
  const words: string[] = []
  for (const value of values) words.push(shortestFloat32(value))
  return words.join()
}

function rewardFields(member: Weighted | Unscored) {
  if (isUnscored(member)) return { reward: null, rewards: {}, advantage: null }
  const { reward, advantage } = member
  return {
    reward: reward.total,
    rewards: Object.fromEntries(reward.parts.map(part => [part.name, part.score])),
    advantage: member.dropped ? null : advantage,
  }
}

/** Token by token only where the trajectory's own advantage and a weight of 1 do not say it all. */
function creditFields(row: Row, member: Weighted | Unscored) {
  if (isUnscored(member) || member.dropped) return {}
  const isTrained = (_: number, index: number): boolean => row.mask[index] === 1
  const advantages = row.advantages.filter(isTrained)
  const weights = row.weights.filter(isTrained)
  return {
    ...(advantages.some(value => value !== member.advantage) && {
      tokenAdvantages: [...row.advantages],
    }),
    ...(weights.some(value => value !== 1) && { tokenWeights: [...row.weights] }),
    ...(row.trajectories.some(({ value }) => value.length > 1) && {
      trajectories: toTriples(row.trajectories, ids => ids),
    }),
  }
}

function filteredBy({ filter, reason }: { readonly filter: string; readonly reason: string }) {
  return { filter, reason }
}

function volatileFields({ trajectory: { volatile } }: Row) {
  return { seconds: volatile.seconds, cached: volatile.cached, server: volatile.servers.join(',') }
}
