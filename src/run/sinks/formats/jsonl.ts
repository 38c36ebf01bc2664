import type { Passage } from '../../../base/core/credit.ts'
import type { Group, Unscored, Weighted } from '../../../base/core/group.ts'
import type { Row } from '../../../base/core/row.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { isUnscored, type MemberRow, toTriples, versionNumber } from '../../rows/row-record.ts'
import { writtenExperts } from '../experts.ts'
import { neutralFeatures } from '../features.ts'
import type { FormatOptions } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { type ImageNaming, writtenImages } from '../images.ts'
import { lineFormat } from '../line-format.ts'

/** The reader of neutral rows decides what to compute from them. */
export const neutralTraining: Training = {
  form: 'once',
  because: 'the rows carry the passages of trajectories, from which a reader gathers every path',
  sequence: 'reader',
}

/** The neutral format: every row with all its data, one JSON object per line. */
export const jsonl = lineFormat({
  name: 'jsonl',
  summary: 'Every training row with all that is known of it, one JSON object per line',
  carries: neutralFeatures,
  training: neutralTraining,
  start: ({ run, volatile, cuts, imageFile, ...options }) =>
    function* toRows({ group }) {
      for (const row of rowsFor({ name: 'jsonl', training: neutralTraining }, group, options)) {
        const tail = rowTail(group, row, { volatile, cuts, imageFile })
        yield { ...rowHead(run, group, row), ...tail }
      }
    },
  loading: file => [
    `python:  rows = [json.loads(line) for line in open(${JSON.stringify(file)})]`,
    `pandas:  pd.read_json(${JSON.stringify(file)}, lines=True)`,
  ],
})

/** What names a row, and its tokens. */
export function rowHead(run: string, group: Group, { row, tree }: MemberRow) {
  return {
    run,
    group: group.id,
    tree: tree.id,
    trajectory: row.trajectory.id,
    row: row.index,
    rows: row.count,
    task: group.task,
    member: tree.member,
    ...(tree.seat !== undefined && { seat: tree.seat }),
    ids: row.ids,
    mask: row.mask,
    logprobs: row.logprobs,
    ...otherLogprobs(row),
    ...(row.experts && {
      experts: { ...writtenExperts(row.experts), known: row.experts.known },
    }),
    origins: toTriples(row.origins, origin => origin),
    versions: toTriples(row.versions, versionNumber),
  }
}

/** `referenceLogprobs`, `teacherLogprobs` and `proximalLogprobs`, if those policies were asked. */
function otherLogprobs({ others }: Row): Readonly<Record<string, Float32Array>> {
  return Object.fromEntries(
    Object.entries(others).map(([name, values]) => [`${name}Logprobs`, values]),
  )
}

/** Whether the order of cuts decides what they leave. */
function isCutTwice({ sampling: { topP, topK, minP } }: Tree): boolean {
  return Number(topP < 1) + Number(topK > 0) + Number(minP > 0) > 1
}

/** A row's credit, its origin, and its messages. */
export function rowTail(
  group: Group,
  { row, member, tree }: MemberRow,
  { volatile, cuts, imageFile }: Pick<FormatOptions, 'volatile' | 'cuts'> & ImageNaming,
) {
  const { trajectory } = row
  return {
    ...rewardFields(member),
    ...creditFields(row, member),
    outcome: isUnscored(member) ? member.outcome : trajectory.outcome,
    sampling: { ...tree.sampling, seed: tree.seed },
    basis: row.basis,
    ...(cuts && row.basis === 'renormalised' && isCutTwice(tree) && { cuts }),
    ...(row.bases.length > 1 && { bases: toTriples(row.bases, basis => basis) }),
    ...(row.images && { images: writtenImages(row, imageFile) }),
    messages: trajectory.messages,
    tools: tree.tools,
    ...(trajectory.report !== undefined && { report: trajectory.report }),
    ...(group.step !== undefined && { step: group.step }),
    fidelity: trajectory.fidelity,
    filtered: isUnscored(member) || !member.dropped ? null : filteredBy(member.dropped),
    usage: trajectory.usage,
    ...(volatile && volatileFields(row)),
  }
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

/** Credit token by token, unless the trajectory's own advantage with weight 1 is all there is. */
function creditFields(row: Row, member: Weighted | Unscored) {
  if (isUnscored(member) || member.dropped) return {}
  const isOwn = row.passages.every(({ value }) => isPlain(value, member))
  const weights = row.importance && {
    importance: row.importance,
    ratios: member.importance?.ratios ?? 'none',
  }
  if (isOwn && arePassed(row)) return weights ?? {}
  return {
    ...(differs(row, row.advantages, member.advantage) && { tokenAdvantages: row.advantages }),
    ...(differs(row, row.weights, 1) && { tokenWeights: row.weights }),
    ...weights,
    ...(row.passages.some(({ value }) => value.length > 1) && {
      trajectories: toTriples(row.passages, passages => passages.map(each => each.trajectory)),
    }),
    ...(!isOwn && { passages: toTriples(row.passages, passages => passages) }),
  }
}

/** Whether there is one trajectory, with weight 1 and the row's own advantage, so that `advantage` suffices. */
function isPlain(passages: readonly Passage[], { advantage, trajectory }: Weighted): boolean {
  const [only, ...others] = passages
  return (
    others.length === 0 &&
    only?.trajectory === trajectory.id &&
    only.advantage === advantage &&
    only.weight === 1 &&
    only.share === 1 &&
    (only.importance ?? 1) === 1
  )
}

/** Whether some trajectory passes through every trained token. */
function arePassed({ mask, passages }: Row): boolean {
  let from = 0
  for (const { start, end } of passages) {
    const trained = mask.indexOf(1, from)
    if (trained >= 0 && trained < start) return false
    from = end
  }
  return mask.indexOf(1, from) < 0
}

function differs({ mask }: Row, values: Float64Array, usual: number | null): boolean {
  for (let token = 0; token < mask.length; token++) {
    if (mask[token] === 1 && values[token] !== usual) return true
  }
  return false
}

function filteredBy({ filter, reason }: { readonly filter: string; readonly reason: string }) {
  return { filter, reason }
}

function volatileFields({ trajectory: { volatile } }: Row) {
  return { seconds: volatile.seconds, cached: volatile.cached, server: volatile.servers.join(',') }
}
