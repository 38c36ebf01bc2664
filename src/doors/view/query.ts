import type { Facet, Facets, GroupRow } from './answers.ts'

/** What the table of groups can be sorted by. */
export const sortKeys = [
  'order',
  'task',
  'step',
  'mean',
  'spread',
  'members',
  'tokens',
  'turns',
] as const
export type SortKey = (typeof sortKeys)[number]

/** Which groups are wanted and in which order. The same query works on a server and in a file. */
export interface GroupQuery {
  readonly sort: SortKey
  readonly isDescending: boolean
  /** Part of a task's or group's name. */
  readonly task?: string
  readonly fromStep?: number
  readonly toStep?: number
  readonly fromReward?: number
  readonly toReward?: number
  readonly outcome?: string
  readonly reason?: string
  readonly tool?: string
  /** `none`: all members have the same reward. */
  readonly contrast?: 'some' | 'none'
  /** Held-out tasks, or all others. */
  readonly part?: 'evaluation' | 'rolled'
  /** A text that some message contains. */
  readonly text?: string
}

export const plainQuery: GroupQuery = { sort: 'order', isDescending: false }

type Params = Readonly<Record<string, string | undefined>>

/**
 * Reads a query from the parameters of a link. Those that cannot be read are told to `onProblem` and
 * left out: by default a link that someone changed by hand still shows a table.
 */
export function readQuery(
  params: Params,
  onProblem: (problem: string) => void = () => undefined,
): GroupQuery {
  const given = (name: string): string | undefined =>
    params[name]?.trim().slice(0, 500) || undefined
  const number = (name: string): number | undefined => {
    const value = given(name)
    if (value === undefined) return undefined
    if (Number.isFinite(Number(value))) return Number(value)
    onProblem(`${name} is a number, not ${JSON.stringify(value)}`)
    return undefined
  }
  const choice = <T extends string>(name: string, choices: readonly T[]): T | undefined => {
    const value = given(name)
    const chosen = choices.find(each => each === value)
    if (value !== undefined && chosen === undefined)
      onProblem(`${name} is one of ${choices.join(', ')}, not ${JSON.stringify(value)}`)
    return chosen
  }
  const text = (name: string): string | undefined => params[name]?.slice(0, 500) || undefined
  return compact({
    sort: choice('sort', sortKeys) ?? 'order',
    isDescending: choice('down', ['0', '1']) === '1',
    task: text('task'),
    fromStep: number('from-step'),
    toStep: number('to-step'),
    fromReward: number('from-reward'),
    toReward: number('to-reward'),
    outcome: text('outcome'),
    reason: text('reason'),
    tool: text('tool'),
    contrast: choice('contrast', ['some', 'none']),
    part: choice('part', ['evaluation', 'rolled']),
    text: text('text'),
  })
}

/** The parameters of a link for this query. */
export function writeQuery(query: GroupQuery): Readonly<Record<string, string>> {
  const { sort, isDescending, fromStep, toStep, fromReward, toReward, ...texts } = query
  return compact({
    ...texts,
    sort: sort === 'order' ? undefined : sort,
    down: isDescending ? '1' : undefined,
    'from-step': fromStep?.toString(),
    'to-step': toStep?.toString(),
    'from-reward': fromReward?.toString(),
    'to-reward': toReward?.toString(),
  })
}

type Compact<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function compact<T extends object>(value: T): Compact<T> {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(entries) as Compact<T>
}

/** The groups that match a query, in its order. `hits` are those that contain its text. */
export function queryGroups(
  rows: readonly GroupRow[],
  query: GroupQuery,
  hits?: ReadonlySet<string>,
): readonly GroupRow[] {
  const wanted = rows.filter(row => isWanted(row, query) && (hits?.has(row.id) ?? true))
  const sign = query.isDescending ? -1 : 1
  const compare = comparers[query.sort]
  // The run's own order decides between equals, whichever way the table is sorted.
  return wanted.sort((a, b) => compare(a, b, sign) || byOrder(a, b))
}

function isWanted(row: GroupRow, query: GroupQuery): boolean {
  const { task, outcome, reason, tool, contrast, part } = query
  if (task && !`${row.task} ${row.id}`.toLowerCase().includes(task.toLowerCase())) return false
  if (!isBetween(row.step, query.fromStep, query.toStep)) return false
  if (!isBetween(row.mean, query.fromReward, query.toReward)) return false
  if (outcome && !row.outcomes.includes(outcome)) return false
  if (reason && !row.reasons.includes(reason)) return false
  if (tool && !row.tools.includes(tool)) return false
  if (part && row.isEvaluation !== (part === 'evaluation')) return false
  if (contrast) return row.rewards.length > 1 && row.spread! > 0 === (contrast === 'some')
  return true
}

function isBetween(value: number | null, low?: number, high?: number): boolean {
  if (low === undefined && high === undefined) return true
  if (value === null) return false
  return (low === undefined || value >= low) && (high === undefined || value <= high)
}

type Compare = (a: GroupRow, b: GroupRow, sign: number) => number

const comparers: Readonly<Record<SortKey, Compare>> = {
  order: (a, b, sign) => sign * byOrder(a, b),
  task: (a, b, sign) => sign * a.task.localeCompare(b.task, 'en', { numeric: true }),
  step: by(row => row.step),
  mean: by(row => row.mean),
  spread: by(row => row.spread),
  members: by(row => row.members),
  tokens: by(row => row.tokens),
  turns: by(row => row.turns),
}

/** Unknown values come last in either direction. */
function by(value: (row: GroupRow) => number | null): Compare {
  return (a, b, sign) => {
    const [left, right] = [value(a), value(b)]
    if (left === null || right === null) return Number(left === null) - Number(right === null)
    return sign * (left - right)
  }
}

/** What was rolled to learn from comes before what was measured. */
function byOrder(a: GroupRow, b: GroupRow): number {
  return (
    Number(a.isEvaluation) - Number(b.isEvaluation) ||
    (a.step ?? 0) - (b.step ?? 0) ||
    a.order - b.order ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  )
}

/** The filters of the table, with their counts. */
export function facetsOf(rows: readonly GroupRow[]): Facets {
  return {
    outcomes: count(rows, row => row.outcomes),
    reasons: count(rows, row => row.reasons),
    tools: count(rows, row => row.tools),
    steps: rangeOf(rows, row => row.step),
    rewards: rangeOf(rows, row => row.mean),
    evaluations: rows.filter(row => row.isEvaluation).length,
  }
}

function count(rows: readonly GroupRow[], values: (row: GroupRow) => readonly string[]): Facet[] {
  const counts = new Map<string, number>()
  for (const row of rows)
    for (const value of values(row)) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts]
    .map(([value, number]) => ({ value, count: number }))
    .sort((a, b) => b.count - a.count || a.value.localeCompare(b.value))
}

function rangeOf(
  rows: readonly GroupRow[],
  value: (row: GroupRow) => number | null,
): { readonly low: number; readonly high: number } | null {
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  for (const row of rows) {
    const each = value(row)
    if (each === null) continue
    low = Math.min(low, each)
    high = Math.max(high, each)
  }
  return low > high ? null : { low, high }
}
