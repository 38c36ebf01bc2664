import { createReadStream, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Renderer } from '@espalier/text'
import type { Environment } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isGradableOutcome, type Outcome } from '../../base/core/outcome.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { weigh } from '../../engine/weigh/gather.ts'
import { openNamed } from '../settings/open-named.ts'
import { type Fields, openFields, ReadError } from '../sinks/fields.ts'
import type { FormatReader, ReadTrajectory } from '../sinks/reader.ts'
import { readerNamed } from '../sinks/readers/registry.ts'
import { newManifest } from '../store/manifest.ts'
import { createRun, readManifest, writeManifest } from '../store/run-folder.ts'
import { openRunWriter, type RunWriter } from '../store/store.ts'
import { parquetRows } from '../tasks/parquet-rows.ts'
import { readTasks } from '../tasks/tasks.ts'
import { type Grown, growImported } from './imported-tree.ts'
import { encodeAgain } from './re-encode.ts'

/** What to import, and how. */
export interface ImportOptions {
  /** The format of the file. */
  readonly from: string
  /** The run folder to make. */
  readonly out: string
  /** Encodes messages, for formats that keep nothing else. */
  readonly renderer?: Renderer
  /** Keeps trajectories that have only messages, without tokens, for viewing. @default false */
  readonly keepsMessages?: boolean
  /** A file of tasks by id, for formats that do not keep what tasks are made of. */
  readonly tasks?: string
}

/** What was read. */
export interface Imported {
  readonly groups: number
  readonly trajectories: number
  readonly rows: number
  /** Trajectories whose tokens were made anew from their messages. */
  readonly encodedAgain: number
}

/** Makes a run of a foreign file, so that it can be shown, scored and exported. */
export async function importRun(file: string, options: ImportOptions): Promise<Imported> {
  const reader = readerNamed(options.from)
  if (!existsSync(file)) throw new SettingError(`no file ${file}`)
  if (reader.hasOnlyMessages && !options.renderer && !options.keepsMessages) {
    throw new SettingError(
      `${reader.name} keeps messages only: name the model to encode them with --model DIR|ID`,
    )
  }
  const tasks = options.tasks === undefined ? new Map() : await readTaskData(options.tasks)
  const groups = readGroups(reader, file)
  // Read the first rows before a folder is made, so that a file in another format leaves none.
  const first = await openNamed(undefined, () => groups.next())
  if (first.done) throw new SettingError(`${file} holds no trajectories`)
  const lock = await createRun(options.out, newManifest('import', {}))
  const counts = { groups: 0, trajectories: 0, rows: 0, encodedAgain: 0 }
  const writer = await openRunWriter(options.out, lock)
  const manifest = await readManifest(options.out)
  let weighting: LeafWeighting = 'uniform'
  try {
    const write = async (group: readonly ReadTrajectory[]): Promise<void> => {
      if (weighting === 'uniform') weighting = weightingIn(group)
      await writeImported(writer, group, { order: counts.groups, counts, options, tasks })
      counts.groups++
    }
    await write(first.value)
    for await (const group of groups) await write(group)
    await writer.complete()
    const finished = new Date().toISOString()
    const config = { ...manifest.config, weighting }
    await writeManifest(options.out, { ...manifest, config, status: 'finished', finished })
  } catch (error) {
    const reason = describeCause(error)
    await writeManifest(options.out, { ...manifest, status: 'stopped', reason })
    throw error
  } finally {
    await writer[Symbol.asyncDispose]()
  }
  return counts
}

/** How the trees of a file share their tokens, by the weights that it has. */
function weightingIn(group: readonly ReadTrajectory[]): LeafWeighting {
  const passages = group
    .flatMap(({ paths }) => paths.flatMap(path => path.passages ?? []))
    .flatMap(({ value }) => value)
  if (passages.some(({ share }) => share !== 1)) return 'hard'
  return group.some(({ weight }) => weight !== 1) ? 'branch' : 'uniform'
}

/** The data of tasks as their file has it, unchecked: no environment is known. */
async function readTaskData(file: string): Promise<ReadonlyMap<string, unknown>> {
  const anything: Environment = {
    name: 'import',
    readTask: data => data,
    open: () => Promise.reject(new Error('an import opens no worlds')),
    reward: {},
  }
  const tasks = new Map<string, unknown>()
  for await (const { id, data } of readTasks(anything, file, { seed: 0 })) tasks.set(id, data)
  return tasks
}

/** The trajectories of a file in a format that can be read. */
export async function* readTrajectories(
  file: string,
  from: string,
): AsyncGenerator<ReadTrajectory> {
  const reader = readerNamed(from)
  if (!existsSync(file)) throw new SettingError(`no file ${file}`)
  yield* reader.read(readRecords(reader, file))
}

/** Trajectories that follow each other with the same group. */
async function* readGroups(
  reader: FormatReader,
  file: string,
): AsyncGenerator<readonly ReadTrajectory[]> {
  const seen = new Set<string>()
  const once = (what: string, id: string): void => {
    if (seen.has(`${what} ${id}`)) throw new ReadError(`${file}: ${what} ${id} comes a second time`)
    seen.add(`${what} ${id}`)
  }
  let group: ReadTrajectory[] = []
  for await (const trajectory of reader.read(readRecords(reader, file))) {
    if (group.length > 0 && group[0]!.group !== trajectory.group) {
      yield group
      group = []
    }
    if (group.length === 0) once('group', trajectory.group)
    const { tree, id } = trajectory
    if (tree !== undefined && group.at(-1)?.tree !== tree) once('tree', tree)
    if (id !== undefined) once('trajectory', id)
    group.push(trajectory)
  }
  if (group.length > 0) yield group
}

async function* readRecords({ kind }: FormatReader, file: string): AsyncGenerator<Fields> {
  if (kind === 'table') yield* readTable(file)
  else if (kind === 'array') yield* readArray(file)
  else yield* readLines(file)
}

async function* readLines(file: string): AsyncGenerator<Fields> {
  const input = createReadStream(file)
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  let number = 0
  for await (const line of lines) {
    number++
    if (line.trim() === '') continue
    yield openFields(parse(line, `${file}:${number}`), `${file}:${number}`)
  }
}

async function* readArray(file: string): AsyncGenerator<Fields> {
  const value = parse(await readFile(file, 'utf8'), file)
  if (!Array.isArray(value)) throw new ReadError(`${file} should be one JSON array`)
  for (const [index, entry] of value.entries()) yield openFields(entry, `${file}[${index}]`)
}

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw new ReadError(`${place}: not JSON: ${(cause as Error).message}`, { cause })
  }
}

async function* readTable(path: string): AsyncGenerator<Fields> {
  let number = 0
  for await (const row of parquetRows(path)) {
    yield openFields(toLists(row), `${path}: row ${number++}`)
  }
}

/** Lists of a table may come as typed arrays; readers expect plain ones. */
function toLists(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<number>) : value,
    ]),
  )
}

async function writeImported(
  writer: RunWriter,
  sources: readonly ReadTrajectory[],
  context: {
    readonly order: number
    readonly counts: { trajectories: number; rows: number; encodedAgain: number }
    readonly options: ImportOptions
    readonly tasks: ReadonlyMap<string, unknown>
  },
): Promise<void> {
  const { order, counts, options, tasks } = context
  const encoded = sources.map(source => {
    counts.trajectories++
    if (source.paths.length > 0 || source.messages.length === 0 || !options.renderer) return source
    counts.encodedAgain++
    return encodeAgain(source, options.renderer)
  })
  const trees = new Map<string, ReadTrajectory[]>()
  for (const source of encoded) {
    const key = source.tree ?? `${source.group}/${source.member}`
    trees.set(key, [...(trees.get(key) ?? []), source])
    counts.rows += source.paths.length
  }
  const grown = [...trees.values()].flatMap(each =>
    growImported(each, options.renderer?.name ?? `import:${options.from}`),
  )
  for (const tree of new Set(grown.map(each => each.tree))) await writer.writeTree(tree)
  const first = sources[0]!
  const task = { id: first.task as TaskId, data: tasks.get(first.task) ?? first.data }
  await writer.writeGroup(toGroup(first, grown), task, order)
}

function toGroup(first: ReadTrajectory, grown: readonly Grown[]): Group {
  const members: Weighted[] = []
  const unscored: Unscored[] = []
  for (const { source, tree, trajectory, stretches, importance } of grown) {
    const { reward, advantage, weight, dropped } = source
    if (reward && isGradableOutcome(trajectory.outcome)) {
      const more = {
        ...(stretches.length > 0 && { stretches }),
        ...(importance && { importance }),
      }
      const gradable = trajectory as Gradable
      members.push({ tree, trajectory: gradable, reward, dropped, advantage, weight, ...more })
    } else unscored.push({ tree, trajectory, outcome: failedOutcome(trajectory.outcome) })
  }
  const { group, task, step, seat } = first
  const read: Group = {
    id: group as GroupId,
    task: task as TaskId,
    ...(seat !== undefined && { seat }),
    ...(step !== undefined && { step }),
    members,
    unscored,
  }
  // A file without advantages has them computed, so that the run can be trained on.
  const isCompared = members.some(({ advantage }) => advantage !== null)
  return isCompared ? read : weigh(read, { estimate: makeEstimate('grpo'), weighting: 'uniform' })
}

/** The outcome of a trajectory without a reward: its own failure, or that scoring failed. */
function failedOutcome(outcome: Outcome): Unscored['outcome'] {
  if (!isGradableOutcome(outcome)) return outcome
  return { kind: 'failed', boundary: 'reward', message: 'the file has no reward for it' }
}
