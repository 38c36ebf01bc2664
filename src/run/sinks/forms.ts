import type { TrajectoryImportance } from '../../base/core/credit.ts'
import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import type { RowForm } from '../../base/core/row.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { lossKind } from '../../base/math/registry.ts'
import { groupRows, isTrained, isUnscored, type MemberRow } from '../rows/row-record.ts'
import { splitByCredit, trainedMask } from './credited-row.ts'
import { RefusedError } from './format.ts'
import type { LossReport } from './lost.ts'

/** How a trainer reads rows, which decides the form they come in. */
export interface Training {
  /** The form that is right for it unless asked otherwise. */
  readonly form: RowForm
  /** Why, in words. */
  readonly because: string
  /** What counts as a sequence in its means: a row, or all rows of a trajectory. `reader`: the reader decides. */
  readonly sequence: 'row' | 'trajectory' | 'reader'
  /** Whether rows whose tokens have different credit are cut into several. */
  readonly cuts?: boolean
  /**
   * Which importance weights reach its loss: all (`tokens`), those that are equal within a row (`rows`), or only those by
   * age (`age`, if its ratios start from recorded log-probabilities). @default none
   */
  readonly importance?: 'tokens' | 'rows' | 'age'
}

/** Refuses importance weights that a format's trainer would ignore or apply twice. */
export function refuseImportance(
  { name, training }: { readonly name: string; readonly training?: Training },
  { members }: Group,
): void {
  if (!training || training.sequence === 'reader') return
  const { importance: takes } = training
  for (const { importance, trajectory } of members) {
    if (!importance || isWeighedAlike(importance)) continue
    const problem = importanceProblem(takes, importance.ratios)
    if (problem === undefined) continue
    throw new RefusedError(
      name,
      `${trajectory.id} has importance weights, and ${problem}`,
      'Use jsonl, parquet, verl or tinker, which carry all of them, or weigh otherwise with --importance (none weighs nothing).',
    )
  }
}

function importanceProblem(
  takes: Training['importance'],
  ratios: TrajectoryImportance['ratios'],
): string | undefined {
  if (takes === undefined) return 'its trainer takes none'
  if (takes === 'age' && ratios !== 'none') {
    return "its trainer's ratios start from the recorded log-probabilities and hold the same difference already"
  }
  return takes === 'rows' && ratios === 'tokens'
    ? 'they differ from token to token, while its trainer has one number for a row'
    : undefined
}

function isWeighedAlike({ factor, nodes }: TrajectoryImportance): boolean {
  return factor === 1 && [...nodes.values()].every(weights => weights.every(each => each === 1))
}

/** The wanted form of a group's rows. */
export interface FormOptions {
  readonly weighting: LeafWeighting
  readonly form: RowForm
  /** The loss they will be trained with, by our name of it. */
  readonly loss: string
}

/**
 * The rows of a group in a form, for a trainer. Refuses rows whose training would differ from the loss
 * over every trajectory's full path, and counts trajectories that get no row.
 */
export function rowsFor(
  { name, training }: { readonly name: string; readonly training: Training },
  group: Group,
  { weighting, form, loss, lost }: FormOptions & { readonly lost: LossReport },
): readonly MemberRow[] {
  refuseImportance({ name, training }, group)
  const rows = allRows(group, { weighting, form })
  refuseForm({ name, training }, () => rows, { form, loss })
  countRowless(group, rows, lost)
  const unknown = rows.filter(({ member }) => isTrained(member))
  lost.add(
    unknownWords,
    unknown.reduce((sum, { row }) => sum + row.unknown, 0),
  )
  return rows
}

/** What is counted of tokens that have no log-probability while others of their attempt have one. */
export const unknownWords = 'sampled tokens without a log-probability: not trained'

/** Counts, by reason, the trajectories that neither have a row nor are trained in one of another. */
function countRowless(
  { members, unscored }: Group,
  rows: readonly MemberRow[],
  lost: LossReport,
): void {
  const written = new Set<string>(rows.map(({ row }) => row.trajectory.id))
  const missing = [...members, ...unscored].filter(({ trajectory }) => !written.has(trajectory.id))
  if (missing.length === 0) return
  const passing = new Set<string>(
    rows.flatMap(({ row }) =>
      row.passages.flatMap(({ value }) => value.map(each => each.trajectory)),
    ),
  )
  for (const member of missing) {
    if (!passing.has(member.trajectory.id)) lost.add(rowlessWords(member))
  }
}

function rowlessWords(member: Weighted | Unscored): string {
  if (member.trajectory.usage.sampled === 0)
    return 'trajectories in which the policy sampled nothing: no row'
  return !isUnscored(member) && member.dropped === null
    ? 'trajectories that could not be compared: no row'
    : 'untrained trajectories whose tokens are all in rows of others: no row of their own'
}

/** Refuses as `rowsFor` does, for formats that do not write rows. */
export function checkForm(
  { name, training }: { readonly name: string; readonly training: Training },
  group: Group,
  { weighting, form, loss }: FormOptions,
): void {
  refuseImportance({ name, training }, group)
  refuseForm({ name, training }, () => allRows(group, { weighting, form }), { form, loss })
}

/** Every row that is written; those of failed and filtered trajectories have no token in the loss. */
function allRows(
  group: Group,
  { weighting, form }: Pick<FormOptions, 'weighting' | 'form'>,
): readonly MemberRow[] {
  const include = { failed: true, filtered: true }
  return groupRows(group, { weighting, form, include }).map(member => {
    const mask = trainedMask(member)
    return mask === member.row.mask ? member : { ...member, row: { ...member.row, mask } }
  })
}

function refuseForm(
  { name, training }: { readonly name: string; readonly training: Training },
  rowsOf: () => readonly MemberRow[],
  { form, loss }: Pick<FormOptions, 'form' | 'loss'>,
): void {
  if (training.sequence === 'reader' || lossKind(loss) === 'token') return
  const rows = rowsOf()
  refuseSharing(name, rows, { form, loss })
  refuseSeveral({ name, training }, rows, loss)
}

/** In the form `once`, a shared token lies in one trajectory's row only: no row is a whole sequence. */
function refuseSharing(
  name: string,
  rows: readonly MemberRow[],
  { form, loss }: Pick<FormOptions, 'form' | 'loss'>,
): void {
  const shared = rows.find(({ row }) => row.passages.some(({ value }) => value.length > 1))
  if (form === 'paths' || !shared) return
  throw new RefusedError(
    name,
    `${shared.row.trajectory.id} shares tokens with other trajectories, and ${loss} has a quantity per sequence, which rows that hold each token once do not show`,
    'Use --rows paths, or a loss that sums tokens, such as --loss ppo.',
  )
}

function refuseSeveral(
  { name, training }: { readonly name: string; readonly training: Training },
  rows: readonly MemberRow[],
  loss: string,
): void {
  if (training.sequence === 'trajectory' && lossKind(loss) === 'sequence-mean') return
  const several = rows.find(
    member => member.row.count > 1 || (training.cuts && splitByCredit(member).length > 1),
  )
  if (!several) return
  throw new RefusedError(
    name,
    `${several.row.trajectory.id} is several sequences (its context was rewritten, each step is a row, or its tokens are worth different things), and ${loss} needs it as one`,
    'Use a loss that sums tokens, such as --loss ppo, or train embedded, or from jsonl with the passages.',
  )
}

/** How many tokens a form gives a trainer. */
export interface FormTokens {
  /** Tokens of the rows, context included. */
  readonly tokens: number
  /** Tokens in the loss. */
  readonly trained: number
  /** Tokens that would be in the loss if each sampled token were trained once. */
  readonly once: number
  /** Sampled tokens that several trajectories pass through. */
  readonly shared: number
}

/** Counts what a group's rows hold in a form, and what `once` would train. */
export function countTokens(
  group: Group,
  {
    weighting,
    form,
    cuts = false,
  }: Pick<FormOptions, 'weighting' | 'form'> & Pick<Training, 'cuts'>,
): FormTokens {
  const once = allRows(group, { weighting, form: 'once' })
  const shared = once.reduce((sum, { row }) => sum + sharedTokens(row), 0)
  const written =
    form === 'once' || hasOnlyChains(group) ? once : allRows(group, { weighting, form })
  const tokens = written.reduce(
    (sum, member) => sum + member.row.ids.length * (cuts ? splitByCredit(member).length : 1),
    0,
  )
  return { tokens, trained: trainedIn(written), once: trainedIn(once), shared }
}

/** Whether no two trajectories of a group share a tree, so that both forms give the same rows. */
function hasOnlyChains({ members, unscored }: Group): boolean {
  const trees = [...members, ...unscored].map(({ tree }) => tree)
  return new Set(trees).size === trees.length
}

function trainedIn(rows: readonly MemberRow[]): number {
  return rows.reduce((sum, { row }) => sum + row.mask.reduce((count, bit) => count + bit, 0), 0)
}

function sharedTokens({ passages }: MemberRow['row']): number {
  return passages.reduce(
    (sum, { start, end, value }) => sum + (value.length > 1 ? end - start : 0),
    0,
  )
}
