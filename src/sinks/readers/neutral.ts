import type { Json } from '../../core/ids.ts'
import type { Message, ToolDefinition } from '../../core/message.ts'
import type { Outcome } from '../../core/outcome.ts'
import type { LogprobBasis, VersionRange } from '../../core/segment.ts'
import type { Fidelity } from '../../core/trajectory.ts'
import { checkLengths, type Fields, openFields, ReadError } from '../fields.ts'
import {
  type FormatReader,
  namedReward,
  type ReadPath,
  type ReadSpan,
  type ReadTrajectory,
} from '../reader.ts'
import { consecutive } from './consecutive.ts'
import { samplingIn } from './sampling.ts'

/** The neutral format, line by line. */
export const jsonlReader: FormatReader = { name: 'jsonl', kind: 'lines', read: readNeutral }

/** The neutral format as a table; what is nested lies there as JSON text. */
export const parquetReader: FormatReader = {
  name: 'parquet',
  kind: 'table',
  read: records => readNeutral(unfolded(records)),
}

const folded = [
  'origins',
  'versions',
  'rewards',
  'trajectories',
  'outcome',
  'sampling',
  'messages',
  'tools',
  'report',
  'fidelity',
  'filtered',
  'usage',
]

async function* unfolded(records: AsyncIterable<Fields>): AsyncGenerator<Fields> {
  for await (const record of records) {
    const value: Record<string, unknown> = { ...record.value }
    for (const name of folded) {
      if (typeof value[name] === 'string') value[name] = JSON.parse(value[name])
    }
    yield openFields(value, record.place)
  }
}

async function* readNeutral(records: AsyncIterable<Fields>): AsyncGenerator<ReadTrajectory> {
  for await (const rows of consecutive(records, row => row.text('tree'))) {
    const byTrajectory = new Map<string, Fields[]>()
    for (const row of rows) {
      const id = row.text('trajectory')
      byTrajectory.set(id, [...(byTrajectory.get(id) ?? []), row])
    }
    const shared = rows.flatMap(sharedPaths)
    for (const [id, own] of byTrajectory) {
      const others = shared.filter(each => each.trajectory === id)
      yield toTrajectory(own, others)
    }
  }
}

/** The beginning of a row that several trajectories pass through. */
interface SharedPath {
  readonly path: ReadPath
  readonly trajectory: string
}

function sharedPaths(row: Fields): readonly SharedPath[] {
  if (!row.has('trajectories')) return []
  const path = toPath(row)
  const ends = new Map<string, number>()
  for (const [, end, ids] of runsOf(row, 'trajectories')) {
    for (const id of ids as readonly string[]) ends.set(id, end)
  }
  return [...ends].map(([id, end]) => ({ path: beginning(path, end), trajectory: id }))
}

function beginning({ ids, logprobs, spans }: ReadPath, end: number): ReadPath {
  return {
    ids: ids.subarray(0, end),
    logprobs: logprobs.subarray(0, end),
    spans: spans
      .filter(span => span.start < end)
      .map(span => ({ ...span, end: Math.min(span.end, end) })),
  }
}

/** Adds sequences that have no row, because another trajectory trains all their tokens; they are restored from its row. */
function withShared(own: readonly ReadPath[], shared: readonly SharedPath[]): readonly ReadPath[] {
  const missing = shared
    .map(({ path }) => path)
    .filter(({ ids }) => !own.some(path => ids.every((id, token) => path.ids[token] === id)))
  return [...missing, ...own]
}

function toTrajectory(rows: readonly Fields[], shared: readonly SharedPath[]): ReadTrajectory {
  const first = rows[0]!
  const own = rows.map(toPath)
  const paths = withShared(own, shared)
  const usage = first.inner('usage')
  const turns = turnAdvantages(rows, own)
  return {
    group: first.text('group'),
    task: first.text('task'),
    data: null,
    member: first.integer('member'),
    tree: first.text('tree'),
    id: first.text('trajectory'),
    ...(first.has('step') && { step: first.integer('step') }),
    paths,
    messages: first.list('messages') as readonly Message[],
    tools: first.list('tools') as readonly ToolDefinition[],
    reward: namedReward(
      first.numberOrNull('reward'),
      first.inner('rewards').value as Readonly<Record<string, number>>,
    ),
    advantage: first.numberOrNull('advantage'),
    weight: ownWeight(rows),
    ...(turns && { turns }),
    dropped: first.has('filtered') ? droppedBy(first.inner('filtered')) : null,
    outcome: first.inner('outcome').value as unknown as Outcome,
    ...samplingIn(first),
    basis: first.text('basis') as LogprobBasis,
    fidelity: first.inner('fidelity').value as unknown as Fidelity,
    usage: { sampled: usage.number('sampled'), prompt: usage.number('prompt') },
    ...(first.has('report') && { report: first.value.report as Json }),
  }
}

function droppedBy(filtered: Fields) {
  return {
    filter: filtered.text('filter'),
    reason: filtered.text('reason'),
    from: 'loss',
  } as const
}

function toPath(row: Fields): ReadPath {
  const ids = row.ids('ids')
  const logprobs = row.floats('logprobs')
  checkLengths(row.place, { ids, logprobs, mask: row.bits('mask') })
  const versions = runsOf(row, 'versions').map(([start, end, value]) => ({
    start,
    end,
    version: toVersion(value),
  }))
  const spans = runsOf(row, 'origins').flatMap(([start, end, origin]): readonly ReadSpan[] => {
    if (origin !== 'sampled') {
      if (origin !== 'prompt' && origin !== 'observed') {
        throw new ReadError(`${row.place}: no origin called ${JSON.stringify(origin)}`)
      }
      return [{ start, end, origin, version: { from: 0, to: 0 } }]
    }
    return versions
      .filter(each => each.start < end && each.end > start)
      .map(
        (each): ReadSpan => ({
          start: Math.max(start, each.start),
          end: Math.min(end, each.end),
          origin: 'sampled',
          version: each.version,
        }),
      )
      .flatMap(span => splitByKnown(span, logprobs))
  })
  checkTiling(row, spans, ids.length)
  return { ids, logprobs, spans }
}

/** Splits a span so that each part has log-probabilities for all of its tokens or for none. */
function splitByKnown(span: ReadSpan, logprobs: Float32Array): readonly ReadSpan[] {
  const parts: ReadSpan[] = []
  let start = span.start
  for (let token = span.start + 1; token <= span.end; token++) {
    const isSame = Number.isNaN(logprobs[token]) === Number.isNaN(logprobs[token - 1])
    if (token < span.end && isSame) continue
    parts.push({ ...span, start, end: token })
    start = token
  }
  return parts
}

type RawRun = readonly [start: number, end: number, value: unknown]

function runsOf(row: Fields, name: string): readonly RawRun[] {
  return row.list(name).map((run, index) => {
    if (Array.isArray(run) && Number.isInteger(run[0]) && Number.isInteger(run[1]))
      return run as unknown as RawRun
    throw new ReadError(`${row.place}: ${name}[${index}] should be [start, end, value]`)
  })
}

function toVersion(value: unknown): VersionRange {
  if (typeof value === 'number') return { from: value, to: value }
  const [from, to] = value as readonly [number, number]
  return { from, to }
}

function checkTiling(row: Fields, spans: readonly ReadSpan[], length: number): void {
  let read = 0
  for (const { start, end } of spans) {
    if (start !== read || end <= start) {
      throw new ReadError(`${row.place}: origins and versions leave a gap at token ${read}`)
    }
    read = end
  }
  if (read !== length) {
    throw new ReadError(`${row.place}: origins end at token ${read} of ${length}`)
  }
}

/** A trajectory's own weight, from a token that no other trajectory passes through. */
function ownWeight(rows: readonly Fields[]): number {
  for (const row of rows) {
    if (!row.has('tokenWeights')) continue
    const weights = row.doubles('tokenWeights')
    const alone = row.has('trajectories')
      ? runsOf(row, 'trajectories').findLast(([, , ids]) => (ids as readonly string[]).length === 1)
      : [0, weights.length, undefined]
    if (!alone) continue
    const found = weights.subarray(alone[0] as number, alone[1] as number).find(each => each > 0)
    if (found !== undefined) return found
  }
  return 1
}

/** Advantages by turn, if the trajectory is alone in its tree and its tokens differ. */
function turnAdvantages(
  rows: readonly Fields[],
  paths: readonly ReadPath[],
): readonly number[] | undefined {
  if (rows.every(row => !row.has('tokenAdvantages')) || rows.some(row => row.has('trajectories')))
    return undefined
  const advantage = rows[0]!.numberOrNull('advantage') ?? 0
  return rows.flatMap((row, index) => {
    const values = row.has('tokenAdvantages') ? row.doubles('tokenAdvantages') : undefined
    const mask = row.bits('mask')
    return turnSpans(paths[index]!)
      .filter(({ start, end }) => mask.subarray(start, end).includes(1))
      .map(({ start, end }) => values?.[start + mask.subarray(start, end).indexOf(1)] ?? advantage)
  })
}

/** The sampled runs of a path: one for each turn, however many versions sampled it. */
export function turnSpans({ spans }: ReadPath): readonly { start: number; end: number }[] {
  const turns: { start: number; end: number }[] = []
  for (const { start, end, origin } of spans) {
    if (origin !== 'sampled') continue
    const last = turns.at(-1)
    if (last && last.end === start) last.end = end
    else turns.push({ start, end })
  }
  return turns
}
