import type { LeafWeighting } from '../math/credit.ts'
import { type Credit, type CreditSpan, creditByNode, ownSpans, type Passage } from './credit.ts'
import { expertsOf, type RowExperts } from './experts.ts'
import type { TrajectoryId } from './ids.ts'
import { type ImagePlace, imagesTo } from './image.ts'
import type { LogprobBasis, OtherLogprobs, ScorerName, Segment, VersionRange } from './segment.ts'
import type { Trajectory } from './trajectory.ts'
import {
  hasLogprobs,
  lengthTo,
  type Place,
  pathEnds,
  pathTo,
  type Span,
  type Tree,
} from './tree.ts'

/**
 * Which rows a tree becomes. `once`: each sampled token is trained in one row, with the credit of all
 * trajectories through it. `paths`: each trajectory's paths are rows of their own, trained with its
 * own advantage, so that a token is trained once for every trajectory through it.
 */
export const rowForms = ['once', 'paths'] as const

/** The name of a form of rows. */
export type RowForm = (typeof rowForms)[number]

/** A root-to-end path as one training sequence. */
export interface Row {
  readonly trajectory: Trajectory
  /** Its number among the rows of its trajectory that are written. */
  readonly index: number
  readonly count: number
  readonly ids: Int32Array
  /** 1 if the token is trained in this row. */
  readonly mask: Uint8Array
  /** 0 if the origin is not sampled, NaN if the policy gave none. */
  readonly logprobs: Float32Array
  /** Tokens that are not trained here for want of a log-probability, which others of the tree have. */
  readonly unknown: number
  /** Under other policies, if they were asked: 0 if the origin is not sampled, NaN if one gave none. */
  readonly others: OtherLogprobs
  /** Of trained tokens; 0 elsewhere. */
  readonly advantages: Float64Array
  /** Of trained tokens; 0 elsewhere. */
  readonly weights: Float64Array
  /** Importance weights of trained tokens, alike for all trajectories through them; those of one are in `passages`. */
  readonly importance?: Float64Array
  /** The images among its tokens, in their order, if it shows any. */
  readonly images?: readonly ImagePlace[]
  /** The experts that served each token, if the policy told them. */
  readonly experts?: RowExperts
  readonly origins: readonly Run<Segment['origin']>[]
  /** Of sampled tokens. */
  readonly versions: readonly Run<VersionRange>[]
  /** The trajectories that pass through the trained tokens, with what those are worth to each. */
  readonly passages: readonly Run<readonly Passage[]>[]
  /** Which distribution the log-probabilities are of; of several, the one furthest from tempered. */
  readonly basis: LogprobBasis
  /** Which distribution the log-probabilities of each span are of. */
  readonly bases: readonly Run<LogprobBasis>[]
}

/** A value that holds for the tokens `[start, end)` of a row. */
export interface Run<Value> {
  readonly start: number
  readonly end: number
  readonly value: Value
}

/** Which trajectories become rows, and with what credit. */
export interface RowOptions {
  readonly credits: readonly Credit[]
  /** @default 'uniform' */
  readonly weighting?: LeafWeighting
  /** @default 'once' */
  readonly form?: RowForm
  /** Trajectories written without credit, for people to look at: their tokens have advantage 0. */
  readonly include?: ReadonlySet<TrajectoryId>
}

interface Plan {
  readonly trajectory: Trajectory
  readonly end: Place
  /** Per span, from which of its tokens on this row trains them; at or past its length: none. */
  readonly spans: readonly (Span & { readonly trainFrom: number })[]
}

/**
 * The training rows of a tree. In the form `once`, each sampled token is trained in exactly one row
 * and is context in the others (T5); rows that would train nothing are left out.
 */
export function rowsOf(tree: Tree, options: RowOptions): readonly Row[] {
  const { credits, weighting = 'uniform', form = 'once' } = options
  const { include = new Set<TrajectoryId>() } = options
  const credited = new Set(credits.map(credit => credit.trajectory))
  const spans = creditByNode(tree, credits, weighting)
  const claimed = new Map<number, number>()
  const claims = (): Map<number, number> => (form === 'once' ? claimed : new Map())
  const plan = (trajectory: Trajectory): readonly Plan[] =>
    planRows(tree, trajectory, claims()).filter(row => row.spans.some(isTrained))
  const first = tree.trajectories.filter(({ id }) => credited.has(id)).map(plan)
  const others = tree.trajectories
    .filter(({ id }) => include.has(id) && !credited.has(id))
    .map(plan)
  const place = new Map(tree.trajectories.map(({ id }, index) => [id, index]))
  return [...first, ...others]
    .filter(plans => plans.length > 0)
    .sort((a, b) => place.get(a[0]!.trajectory.id)! - place.get(b[0]!.trajectory.id)!)
    .flatMap(plans => {
      const own = form === 'once' ? spans : ownSpans(spans, plans[0]!.trajectory.id)
      return plans.map((row, index) => fill(tree, row, { spans: own, index, count: plans.length }))
    })
}

const isTrained = ({ length, trainFrom }: { length: number; trainFrom: number }): boolean =>
  trainFrom < length

function planRows(
  tree: Tree,
  trajectory: Trajectory,
  claimed: Map<number, number>,
): readonly Plan[] {
  return pathEnds(tree, trajectory.end).map(end => ({
    trajectory,
    end,
    spans: pathTo(tree, end).map(({ node, start, length }) => {
      if (tree.nodes[node]!.segment.origin !== 'sampled')
        return { node, start, length, trainFrom: length }
      const trainFrom = claimed.get(node) ?? 0
      claimed.set(node, Math.max(trainFrom, length))
      return { node, start, length, trainFrom }
    }),
  }))
}

function fill(
  tree: Tree,
  plan: Plan,
  context: {
    readonly spans: ReadonlyMap<number, readonly CreditSpan[]>
    readonly index: number
    readonly count: number
  },
): Row {
  const size = lengthTo(tree, plan.end)
  const isMeasured = hasLogprobs(tree)
  const row = {
    ids: new Int32Array(size),
    mask: new Uint8Array(size),
    logprobs: new Float32Array(size),
    unknown: 0,
    others: findOthers(tree, plan, size),
    ...(isWeighed(plan, context.spans) && { importance: new Float64Array(size) }),
    origins: [] as Run<Segment['origin']>[],
    versions: [] as Run<VersionRange>[],
    credits: [] as Run<CreditSpan>[],
    passages: [] as Run<readonly Passage[]>[],
    bases: [] as Run<LogprobBasis>[],
  }
  for (const span of plan.spans) {
    const { segment } = tree.nodes[span.node]!
    const end = span.start + span.length
    row.ids.set(beginning(segment.ids, span.length), span.start)
    extend(row.origins, { start: span.start, end, value: segment.origin })
    if (segment.origin !== 'sampled') continue
    extend(row.bases, { start: span.start, end, value: segment.basis })
    extend(row.versions, { start: span.start, end, value: segment.version }, isSameRange)
    if (segment.logprobs) row.logprobs.set(beginning(segment.logprobs, span.length), span.start)
    else row.logprobs.fill(Number.NaN, span.start, end)
    for (const [name, values] of Object.entries(row.others)) {
      const own = segment.others?.[name as ScorerName]
      if (own) values.set(beginning(own, span.length), span.start)
      else values.fill(Number.NaN, span.start, end)
    }
    row.mask.fill(1, span.start + span.trainFrom, end)
    if (isMeasured) row.unknown += unmask(row, span.start + span.trainFrom, end)
    for (const credit of context.spans.get(span.node) ?? []) applyCredit(row, span, credit)
  }
  const experts = expertsOf(tree, plan.spans, size)
  const images = imagesTo(tree, plan.end)
  const { credits, ...rest } = row
  return withCredit(
    {
      ...(experts && { experts }),
      ...(images.length > 0 && { images }),
      trajectory: plan.trajectory,
      index: context.index,
      count: context.count,
      basis: basisOf(row.bases),
      ...rest,
    },
    credits,
  )
}

/** Takes the tokens of `[start, end)` without a log-probability out of the mask; gives their number. */
function unmask({ mask, logprobs }: Pick<Row, 'mask' | 'logprobs'>, start: number, end: number) {
  let unknown = 0
  for (let token = start; token < end; token++) {
    if (!Number.isNaN(logprobs[token])) continue
    mask[token] = 0
    unknown++
  }
  return unknown
}

/** The first tokens of a list, which mostly are all of them. */
function beginning<List extends Int32Array | Float32Array>(list: List, length: number): List {
  return length === list.length ? list : (list.subarray(0, length) as List)
}

/**
 * A row with the numbers of its credit, which are made when they are first asked for: most rows have one advantage, and
 * exports then write that alone.
 */
function withCredit(
  row: Omit<Row, 'advantages' | 'weights'>,
  credits: readonly Run<CreditSpan>[],
): Row {
  const { length } = row.ids
  const spread = (value: (credit: CreditSpan) => number): Float64Array => {
    const values = new Float64Array(length)
    for (const run of credits) values.fill(value(run.value), run.start, run.end)
    return values
  }
  let advantages: Float64Array | undefined
  let weights: Float64Array | undefined
  return {
    ...row,
    get advantages() {
      advantages ??= spread(({ advantage }) => advantage)
      return advantages
    },
    get weights() {
      weights ??= spread(({ weight }) => weight)
      return weights
    },
  }
}

/** Room for the log-probabilities of every other policy that scored a token of the row. */
function findOthers(tree: Tree, { spans }: Plan, size: number): OtherLogprobs {
  const names = new Set(
    spans.flatMap(({ node }) => Object.keys(tree.nodes[node]!.segment.others ?? {})),
  )
  return Object.fromEntries([...names].map(name => [name, new Float32Array(size)]))
}

/** Whether tokens of a row have importance weights. */
function isWeighed({ spans }: Plan, credit: ReadonlyMap<number, readonly CreditSpan[]>): boolean {
  return spans.some(({ node }) => credit.get(node)?.some(({ importance }) => importance))
}

function applyCredit(
  row: Pick<Row, 'importance'> & {
    credits: Run<CreditSpan>[]
    passages: Run<readonly Passage[]>[]
  },
  span: Span & { readonly trainFrom: number },
  credit: CreditSpan,
): void {
  const start = span.start + Math.max(credit.start, span.trainFrom)
  const end = span.start + Math.min(credit.end, span.length)
  if (start >= end) return
  row.credits.push({ start, end, value: credit })
  if (credit.importance) {
    row.importance?.set(credit.importance.subarray(start - span.start, end - span.start), start)
  }
  extend(row.passages, { start, end, value: credit.passages }, areSamePassages)
}

/** From the nearest to what a trainer computes to the furthest. */
const basisOrder: readonly LogprobBasis[] = ['tempered', 'renormalised', 'raw']

function basisOf(bases: Row['bases']): LogprobBasis {
  const ranks = bases.map(({ value }) => basisOrder.indexOf(value))
  return basisOrder[Math.max(0, ...ranks)]!
}

/** Adds a run, joining it to the last one if they touch and say the same. */
function extend<Value>(
  runs: Run<Value>[],
  run: Run<Value>,
  isSame: (a: Value, b: Value) => boolean = Object.is,
): void {
  const last = runs.at(-1)
  if (last && last.end === run.start && isSame(last.value, run.value)) {
    runs[runs.length - 1] = { ...last, end: run.end }
  } else {
    runs.push(run)
  }
}

function isSameRange(a: VersionRange, b: VersionRange): boolean {
  return a === b || (a.from === b.from && a.to === b.to)
}

function areSamePassages(a: readonly Passage[], b: readonly Passage[]): boolean {
  if (a === b) return true
  return a.length === b.length && a.every((passage, at) => isSamePassage(passage, b[at]!))
}

function isSamePassage(a: Passage, b: Passage): boolean {
  return (
    a.trajectory === b.trajectory &&
    Object.is(a.advantage, b.advantage) &&
    a.weight === b.weight &&
    a.share === b.share &&
    a.importance === b.importance
  )
}
