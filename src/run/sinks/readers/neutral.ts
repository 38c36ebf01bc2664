import type { TrajectoryImportance } from '../../../base/core/credit.ts'
import type { Json } from '../../../base/core/ids.ts'
import {
  type LogprobBasis,
  type OtherLogprobs,
  scorerNames,
  type VersionRange,
} from '../../../base/core/segment.ts'
import { readExperts } from '../experts.ts'
import { checkLengths, type Fields, openFields, ReadError } from '../fields.ts'
import {
  type FormatReader,
  namedReward,
  type ReadPassage,
  type ReadPath,
  type ReadSpan,
  type ReadTrajectory,
  unknownParts,
} from '../reader.ts'
import { fidelityIn, messagesIn, numbersIn, outcomeIn, toolsIn, wordIn } from './checked.ts'
import { consecutive } from './consecutive.ts'
import { samplingIn } from './sampling.ts'
import { runsOfMask } from './token-rows.ts'

const bases: readonly LogprobBasis[] = ['tempered', 'raw', 'renormalised']
const ratioKinds: readonly TrajectoryImportance['ratios'][] = ['none', 'trajectories', 'tokens']

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
  'experts',
  'trajectories',
  'passages',
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
      checkRows(own)
      yield toTrajectory(
        own,
        shared.filter(each => each.trajectory === id),
      )
    }
    const rowless = new Set(shared.map(each => each.trajectory))
    for (const id of rowless) {
      if (byTrajectory.has(id)) continue
      yield withoutRow(
        rows[0]!,
        id,
        shared.filter(each => each.trajectory === id),
      )
    }
  }
}

/** Refuses rows that are missing, come twice, or name a tree that is not their trajectory's. */
function checkRows(rows: readonly Fields[]): void {
  const { place } = rows[0]!
  const id = rows[0]!.text('trajectory')
  const tree = rows[0]!.text('tree')
  if (id.slice(0, id.lastIndexOf('/')) !== tree) {
    throw new ReadError(`${place}: trajectory should be ${tree}/NUMBER, found "${id}"`)
  }
  rows.forEach((row, index) => {
    if (!row.has('rows')) return
    const count = row.integer('rows')
    if (row.integer('row') === index && count === rows.length) return
    throw new ReadError(
      `${row.place}: row ${row.integer('row')} of ${count} of ${id}, as number ${index} of ${rows.length} in the file`,
    )
  })
}

/** A trajectory whose tokens all lie in rows of others, which keep what they are worth to it and not its reward. */
function withoutRow(first: Fields, id: string, shared: readonly SharedPath[]): ReadTrajectory {
  return {
    ...unknownParts,
    ...namesIn(first),
    id,
    paths: shared.slice(-1).map(({ path }) => path),
    reward: null,
    ...samplingIn(first),
  }
}

/** The beginning of a row that several trajectories pass through. */
interface SharedPath {
  readonly path: ReadPath
  readonly trajectory: string
}

function sharedPaths(row: Fields): readonly SharedPath[] {
  const own = row.text('trajectory')
  const path = toPath(row)
  const ends = new Map<string, number>()
  for (const { end, value } of path.passages ?? []) {
    for (const { trajectory = own } of value) if (trajectory !== own) ends.set(trajectory, end)
  }
  return [...ends].map(([trajectory, end]) => ({ path: beginning(path, end), trajectory }))
}

/** The first tokens of a path, trained elsewhere. */
function beginning({ ids, logprobs, spans, experts }: ReadPath, end: number): ReadPath {
  return {
    namesAll: true,
    ...(experts && { experts: { ...experts, known: Math.min(experts.known, end) } }),
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
  const usage = first.inner('usage')
  return {
    ...namesIn(first),
    id: first.text('trajectory'),
    paths: withShared(rows.map(toPath), shared),
    messages: messagesIn(first, 'messages'),
    tools: toolsIn(first, 'tools'),
    reward: namedReward(first.numberOrNull('reward'), numbersIn(first, 'rewards')),
    advantage: first.numberOrNull('advantage'),
    ...ownWeights(rows),
    dropped: first.has('filtered') ? droppedBy(first.inner('filtered')) : null,
    outcome: outcomeIn(first, 'outcome'),
    ...samplingIn(first),
    basis: wordIn(first, 'basis', bases),
    fidelity: fidelityIn(first, 'fidelity'),
    usage: { sampled: usage.number('sampled'), prompt: usage.number('prompt') },
    ...(first.has('report') && { report: first.value.report as Json }),
  }
}

/** What all trajectories of a tree have in common. */
function namesIn(row: Fields) {
  return {
    group: row.text('group'),
    task: row.text('task'),
    data: null,
    member: row.integer('member'),
    tree: row.text('tree'),
    ...(row.has('step') && { step: row.integer('step') }),
    ...(row.has('seat') && { seat: row.text('seat') }),
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
  const logprobs = row.logprobs('logprobs')
  const mask = row.bits('mask')
  checkLengths(row.place, { ids, logprobs, mask })
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
  })
  checkTiling(row, spans, ids.length)
  const others = othersIn(row, ids)
  return {
    ...{ ids, logprobs, spans, others, passages: passagesIn(row, mask), namesAll: true },
    ...(row.has('experts') && { experts: readExperts(row.inner('experts'), ids.length) }),
    ...(row.has('importance') && { importance: importanceIn(row, mask) }),
  }
}

/** The importance weights of the tokens that a row trains; the others are in rows of their own. */
function importanceIn(row: Fields, mask: Uint8Array): Float64Array {
  const weights = row.doubles('importance')
  checkLengths(row.place, { mask, importance: weights })
  return weights.map((weight, token) => (mask[token] === 1 ? weight : Number.NaN))
}

/** What other policies said of the tokens, if they were asked. */
function othersIn(row: Fields, ids: Int32Array): OtherLogprobs {
  const asked = scorerNames.filter(name => row.has(`${name}Logprobs`))
  return Object.fromEntries(
    asked.map(name => {
      const values = row.logprobs(`${name}Logprobs`)
      checkLengths(row.place, { ids, [`${name}Logprobs`]: values })
      return [name, values]
    }),
  )
}

/** Who passes through the trained tokens of a row, and what they are worth to each. */
function passagesIn(row: Fields, mask: Uint8Array): NonNullable<ReadPath['passages']> {
  if (row.has('passages')) {
    return runsOf(row, 'passages').map(([start, end, value], index) => {
      const run = openFields({ value }, `${row.place}: passages[${index}]`)
      return { start, end, value: run.each('value').map(toPassage) }
    })
  }
  const advantage = row.numberOrNull('advantage')
  if (advantage === null) return []
  const each = row.has('tokenAdvantages') ? row.doubles('tokenAdvantages') : undefined
  return runsOfMask(mask, token => each?.[token] ?? advantage)
}

function toPassage(passage: Fields): ReadPassage {
  return {
    trajectory: passage.text('trajectory'),
    advantage: passage.number('advantage'),
    share: passage.number('share'),
  }
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

/** A trajectory's own weights, as any token of it says. */
function ownWeights(rows: readonly Fields[]): Pick<ReadTrajectory, 'weight' | 'importance'> {
  const own = ownPassage(rows)
  const weighed = rows.find(row => row.has('importance'))
  return {
    weight: own?.number('weight') ?? 1,
    ...(weighed && {
      importance: {
        factor: own?.numberOrNull('importance') ?? 1,
        ratios: weighed.has('ratios') ? wordIn(weighed, 'ratios', ratioKinds) : 'tokens',
      },
    }),
  }
}

/** What some token of a trajectory is worth to it, if rows say it passage by passage. */
function ownPassage(rows: readonly Fields[]): Fields | undefined {
  const id = rows[0]!.text('trajectory')
  for (const row of rows) {
    if (!row.has('passages')) continue
    for (const [, , passages] of runsOf(row, 'passages')) {
      const own = (passages as readonly Record<string, unknown>[]).find(
        ({ trajectory }) => trajectory === id,
      )
      if (own) return openFields(own, `${row.place}: passages`)
    }
  }
  return undefined
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
