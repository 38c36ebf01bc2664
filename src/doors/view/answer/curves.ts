import { succeeds } from '../../../base/math/attempts.ts'
import { clusteredInterval } from '../../../base/math/bounds/clustered.ts'
import type { Chart, Curves, EvaluationPoint, GroupRow, Series } from '../answers.ts'
import type { TreeFacts } from '../index/facts.ts'

/** One line of `metrics.jsonl`, as far as it is looked at. */
export type Metrics = Readonly<Record<string, unknown>> & { readonly step: number }

/** What was sampled in one second of the run, from its events. */
export interface Pace {
  readonly second: number
  readonly tokens: number
}

/** What curves are drawn from. */
export interface CurveSource {
  readonly rows: readonly GroupRow[]
  readonly treesOf: (group: string) => readonly TreeFacts[]
  readonly metrics: readonly Metrics[]
  readonly pace: readonly Pace[]
  readonly successAt: number
}

const mostPoints = 240

/** Every curve that a run has something to show for. */
export function curvesOf(source: CurveSource): Curves {
  const rolled = source.rows.filter(row => !row.isEvaluation)
  const hasSteps = source.metrics.length > 0 || rolled.some(({ step }) => step !== null)
  const buckets = hasSteps ? byStep(rolled) : byOrder(rolled)
  const charts = [
    ...outcomeCharts(buckets, source),
    ...learningCharts(source.metrics),
    ledgerChart(source.metrics),
    ...lengthCharts(buckets, source),
    paceChart(source, hasSteps),
    ...countCharts(buckets),
  ]
  return {
    axis: hasSteps ? 'step' : 'group',
    charts: charts.filter(hasValues),
    evaluations: evaluationsOf(source.rows, source.successAt),
  }
}

interface Bucket {
  readonly x: number
  readonly rows: readonly GroupRow[]
}

function byStep(rows: readonly GroupRow[]): readonly Bucket[] {
  const steps = new Map<number, GroupRow[]>()
  for (const row of rows) {
    const step = row.step ?? 0
    const others = steps.get(step)
    if (others) others.push(row)
    else steps.set(step, [row])
  }
  const all = [...steps].sort(([a], [b]) => a - b).map(([x, each]) => ({ x, rows: each }))
  const size = Math.ceil(all.length / mostPoints)
  return chunk(all, size).map(several => ({
    x: several.at(-1)!.x,
    rows: several.flatMap(each => each.rows),
  }))
}

function byOrder(rows: readonly GroupRow[]): readonly Bucket[] {
  const size = Math.max(1, Math.ceil(rows.length / 60))
  return chunk(rows, size).map((each, index) => ({
    x: Math.min((index + 1) * size, rows.length),
    rows: each,
  }))
}

function chunk<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks: T[][] = []
  for (let at = 0; at < items.length; at += Math.max(1, size))
    chunks.push(items.slice(at, at + Math.max(1, size)))
  return chunks
}

type Draw = Omit<Chart, 'x' | 'series'> & {
  readonly value: (rows: readonly GroupRow[]) => number | null
}

function draw(buckets: readonly Bucket[], { value, ...chart }: Draw): Chart {
  return {
    ...chart,
    x: buckets.map(({ x }) => x),
    series: [{ name: chart.title, values: buckets.map(({ rows }) => value(rows)) }],
  }
}

function outcomeCharts(buckets: readonly Bucket[], { successAt }: CurveSource): readonly Chart[] {
  const rewards = (rows: readonly GroupRow[]): readonly number[] => rows.flatMap(row => row.rewards)
  return [
    draw(buckets, {
      name: 'reward',
      title: 'Reward',
      about: 'Mean total reward of scored trajectories.',
      form: 'number',
      value: rows => meanOf(rewards(rows)),
    }),
    draw(buckets, {
      name: 'success',
      title: 'Success',
      about: `Share of scored trajectories with a reward of ${successAt} or more.`,
      form: 'share',
      value: rows => meanOf(rewards(rows).map(reward => Number(succeeds(reward, successAt)))),
    }),
    draw(buckets, {
      name: 'contrast',
      title: 'Contrast',
      about: 'Share of groups whose members do not all have the same reward: only those teach.',
      form: 'share',
      value: rows =>
        meanOf(rows.filter(row => row.rewards.length > 1).map(row => Number(row.spread! > 0))),
    }),
  ]
}

/** Metrics that trainers report for each step, by their names. */
const learned = [
  ['entropy', 'Entropy', 'Mean entropy of the policy over trained tokens, in nats.'],
  ['kl', 'KL', 'Mean divergence of the new weights from those that sampled, in nats per token.'],
  ['loss', 'Loss', 'What the trainer minimised in the step.'],
  ['gradientNorm', 'Gradient norm', 'Length of the gradient before it was clipped.'],
] as const

function learningCharts(metrics: readonly Metrics[]): readonly Chart[] {
  const size = Math.max(1, Math.ceil(metrics.length / mostPoints))
  const chunks = chunk(metrics, size)
  return learned.map(([name, title, about]) => ({
    name,
    title,
    about,
    form: 'number',
    x: chunks.map(each => each.at(-1)!.step),
    series: [
      {
        name: title,
        values: chunks.map(each =>
          meanOf(each.flatMap(({ [name]: value }) => (isNumber(value) ? value : []))),
        ),
      },
    ],
  }))
}

const entries = [
  ['learned', 'learned'],
  ['dropped', 'dropped'],
  ['inFlight', 'in flight'],
  ['heldOut', 'held out'],
] as const

/** The ledger of a training run, up to each step. */
function ledgerChart(metrics: readonly Metrics[]): Chart {
  const size = Math.max(1, Math.ceil(metrics.length / mostPoints))
  const last = chunk(metrics, size).map(each => each.at(-1)!)
  return {
    name: 'ledger',
    title: 'Where tokens went',
    about:
      'Of all tokens sampled so far: learned, dropped by filters or failures, in flight, held out.',
    form: 'count',
    x: last.map(({ step }) => step),
    series: entries.map(([key, name]) => ({
      name,
      values: last.map(({ ledger }) => sumIn((ledger as Metrics | undefined)?.[key])),
    })),
  }
}

/** A number, or the sum of a record of them. */
function sumIn(entry: unknown): number | null {
  if (isNumber(entry)) return entry
  if (typeof entry !== 'object' || entry === null) return null
  return Object.values(entry).reduce<number>((sum, each) => sum + (isNumber(each) ? each : 0), 0)
}

function lengthCharts(
  buckets: readonly Bucket[],
  { treesOf, metrics }: CurveSource,
): readonly Chart[] {
  const known = (rows: readonly GroupRow[], name: 'tokens' | 'turns'): readonly number[] =>
    rows.flatMap(row => row[name] ?? [])
  const ratio = (rows: readonly GroupRow[], name: 'entropy' | 'surprise'): number | null => {
    const sums = rows.flatMap(({ id }) => treesOf(id).map(tree => tree[name]))
    const count = sums.reduce((total, each) => total + each.count, 0)
    return count === 0 ? null : sums.reduce((total, each) => total + each.sum, 0) / count
  }
  const hasEntropy = metrics.some(each => isNumber(each.entropy))
  return [
    draw(buckets, {
      name: 'sampled-entropy',
      title: 'Entropy',
      about: 'Mean entropy of the distributions that tokens were drawn from, in nats.',
      form: 'number',
      value: rows => (hasEntropy ? null : ratio(rows, 'entropy')),
    }),
    draw(buckets, {
      name: 'surprise',
      title: 'Surprise',
      about: 'Mean of −log p over sampled tokens, in nats.',
      form: 'number',
      value: rows => (hasEntropy ? null : ratio(rows, 'surprise')),
    }),
    draw(buckets, {
      name: 'tokens',
      title: 'Length',
      about: 'Mean number of sampled tokens per trajectory.',
      form: 'number',
      value: rows => meanOf(known(rows, 'tokens')),
    }),
    draw(buckets, {
      name: 'turns',
      title: 'Turns',
      about: 'Mean number of turns per trajectory.',
      form: 'number',
      value: rows => meanOf(known(rows, 'turns')),
    }),
  ]
}

function paceChart({ metrics, pace }: CurveSource, hasSteps: boolean): Chart {
  const common = { name: 'pace', title: 'Tokens per second', form: 'number' } as const
  if (hasSteps && metrics.length > 0) {
    const values = metrics.map(({ sampledTokens, seconds }) => {
      const roll = (seconds as { roll?: unknown } | undefined)?.roll
      return isNumber(sampledTokens) && isNumber(roll) && roll > 0 ? sampledTokens / roll : null
    })
    const about = 'Sampled tokens of a step over the seconds it rolled.'
    return {
      ...common,
      about,
      x: metrics.map(({ step }) => step),
      series: [{ name: common.title, values }],
    }
  }
  const size = Math.max(1, Math.ceil(pace.length / mostPoints))
  const parts = chunk(pace, size)
  return {
    ...common,
    about:
      'Sampled tokens of trajectories that ended, per second of the run; below, seconds since it began.',
    x: parts.map(each => each.at(-1)!.second),
    series: [
      {
        name: common.title,
        values: parts.map(each => each.reduce((sum, { tokens }) => sum + tokens, 0) / each.length),
      },
    ],
  }
}

function countCharts(buckets: readonly Bucket[]): readonly Chart[] {
  const tally = (
    rows: readonly GroupRow[],
    of: (row: GroupRow) => readonly string[],
  ): Map<string, number> => {
    const counts = new Map<string, number>()
    for (const row of rows)
      for (const each of of(row)) counts.set(each, (counts.get(each) ?? 0) + 1)
    return counts
  }
  const chart = (
    texts: Pick<Chart, 'name' | 'title' | 'about'>,
    of: (row: GroupRow) => readonly string[],
  ): Chart => {
    const names = [
      ...tally(
        buckets.flatMap(({ rows }) => rows),
        of,
      ),
    ]
      .sort(([, a], [, b]) => b - a)
      .slice(0, 6)
      .map(([name]) => name)
    const series: readonly Series[] = names.map(name => ({
      name,
      values: buckets.map(({ rows }) => tally(rows, of).get(name) ?? 0),
    }))
    return { ...texts, form: 'count', x: buckets.map(({ x }) => x), series }
  }
  return [
    chart(
      {
        name: 'failures',
        title: 'Failures',
        about: 'Groups with a trajectory that failed or was aborted, by boundary.',
      },
      row => row.outcomes.filter(each => each.startsWith('failed') || each.startsWith('aborted')),
    ),
    chart(
      {
        name: 'filters',
        title: 'Filtered',
        about: 'Groups with a trajectory that a filter dropped, by reason.',
      },
      row => row.reasons,
    ),
  ]
}

/** Success on held-out tasks by step, with its bounds. A group is one attempt, whatever it branched into. */
function evaluationsOf(rows: readonly GroupRow[], successAt: number): readonly EvaluationPoint[] {
  const steps = new Map<number, GroupRow[]>()
  for (const row of rows) {
    if (!row.isEvaluation || row.rewards.length === 0) continue
    const step = row.step ?? 0
    steps.set(step, [...(steps.get(step) ?? []), row])
  }
  return [...steps]
    .sort(([a], [b]) => a - b)
    .map(([step, attempts]) => {
      const solved = (rows: readonly GroupRow[]): readonly number[] =>
        rows.map(({ rewards }) => meanOf(rewards.map(each => Number(succeeds(each, successAt))))!)
      const success = meanOf(solved(attempts))!
      const meanReward = meanOf(attempts.map(({ rewards }) => meanOf(rewards)!))!
      const tasks = [...new Set(attempts.map(({ task }) => task))]
        .map(name => solved(attempts.filter(({ task }) => task === name)))
        .map(shares => ({ share: meanOf(shares)!, trials: shares.length }))
      const { low, high } = clusteredInterval(tasks)
      return { step, success, low, high, scored: attempts.length, meanReward }
    })
}

function hasValues({ series }: Chart): boolean {
  return series.some(({ values }) => values.some(value => value !== null))
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function meanOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
}
