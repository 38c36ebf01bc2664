import { createReadStream, existsSync, realpathSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isRun, readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { parquetRows } from './parquet-rows.ts'

/** Where tasks come from: a file, another run, a number to make, or anything that gives their data one by one. */
export type TaskSource<Data = unknown> =
  | string
  | number
  | Iterable<TaskInput<Data>>
  | AsyncIterable<TaskInput<Data>>

/** A task's data, with an id of its own if it has one; otherwise its number is its id. */
export type TaskInput<Data> = Data & { readonly id?: string | number }

/** Which of the tasks that an environment makes. */
export interface ReadTasksOptions {
  readonly seed: number
  readonly split?: string
}

/** Reads tasks, each checked by the environment; a bad one says where it stands and what is wrong. */
export async function* readTasks<Data>(
  environment: Environment<Data>,
  source: TaskSource<Data>,
  options: ReadTasksOptions,
): AsyncGenerator<Task<Data>> {
  if (typeof source === 'number') {
    yield* makeTasks(environment, source, options)
    return
  }
  if (typeof source === 'string' && isRun(source)) {
    yield* tasksOfRun(environment, source)
    return
  }
  const seen = new Set<string>()
  let number = 0
  for await (const { entry, place } of entriesOf(source)) {
    number++
    const task = toTask(environment, entry, { number, place })
    if (seen.has(task.id)) throw new Error(`${place}: a task with id "${task.id}" came before`)
    seen.add(task.id)
    yield task
  }
  // A pipe cannot be looked into before, as files are.
  if (number === 0 && typeof source === 'string' && isPipe(source)) throw holdsNone(source)
}

function holdsNone(source: string): SettingError {
  return new SettingError(`${source} holds no tasks`)
}

/** Most tasks that are checked before a run begins; reading more would take too long. */
const checkedTasks = 20_000

/** Refuses a file or run that holds no task or wrong ones, before anything is made for it. */
export async function checkTaskSource<Data>(
  environment: Environment<Data>,
  source: TaskSource<Data>,
): Promise<void> {
  if (typeof source !== 'string' || isPipe(source)) return
  let count = 0
  for await (const _ of readTasks(environment, source, { seed: 0 })) {
    if (++count === checkedTasks) return
  }
  if (count === 0) throw holdsNone(source)
}

/** Whether a path names something that can be read only once. */
function isPipe(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined || stats.isFile() || stats.isDirectory()) return false
  return realpathSync(path) !== devNull
}

/** How many tasks a source holds, if that can be seen without reading them one by one. */
export async function countTasks(source: TaskSource<never>): Promise<number | undefined> {
  if (typeof source === 'number') return source
  if (typeof source !== 'string' || !existsSync(source) || isPipe(source)) return undefined
  if (isRun(source)) {
    await using reader = await openRunReader(source)
    return new Set(reader.tasks().map(({ id }) => id)).size
  }
  if (source.endsWith('.parquet')) {
    const { asyncBufferFromFile, parquetMetadataAsync } = await import('hyparquet')
    const file = await asyncBufferFromFile(source)
    return Number((await parquetMetadataAsync(file)).num_rows)
  }
  let lines = 0
  for await (const line of linesOf(source)) if (line.trim() !== '') lines++
  return lines
}

/** The error for an environment that cannot make tasks. */
export function makesNone(environment: string): SettingError {
  return new SettingError(
    `environment "${environment}" makes no tasks of its own: name a file with --tasks`,
  )
}

function makeTasks<Data>(
  environment: Environment<Data>,
  count: number,
  { seed, split }: ReadTasksOptions,
): readonly Task<Data>[] {
  if (!environment.makeTasks) {
    throw makesNone(environment.name)
  }
  return environment.makeTasks({ count, seed, ...(split !== undefined && { split }) })
}

/** Refuses a run of training: tasks that it held out would be trained on, or those that it trained on be held out. */
async function refuseTraining(run: string): Promise<void> {
  if ((await readManifest(run)).kind !== 'train') return
  throw new SettingError(
    `${run} is a run of training, which held some of its tasks out: name the tasks that it was given instead`,
  )
}

/** The tasks of another run, each once, in its order. */
async function* tasksOfRun<Data>(
  environment: Environment<Data>,
  run: string,
): AsyncGenerator<Task<Data>> {
  await refuseTraining(run)
  const seen = new Set<string>()
  await using reader = await openRunReader(run)
  for (const { id, data } of reader.tasks()) {
    if (seen.has(id)) continue
    seen.add(id)
    try {
      yield { id, data: environment.readTask(data) }
    } catch (cause) {
      throw new Error(`${run}, task "${id}": ${(cause as Error).message}`, { cause })
    }
  }
}

/** A task of its data, checked by its environment; what is wrong is told with its place. */
export function toTask<Data>(
  environment: Environment<Data>,
  entry: unknown,
  { number, place }: { readonly number: number; readonly place: string },
): Task<Data> {
  try {
    const data = environment.readTask(entry)
    return { id: readId(entry, number), data }
  } catch (cause) {
    throw new Error(`${place}: ${(cause as Error).message}`, { cause })
  }
}

/** A task's own id, or its number. */
function readId(entry: unknown, number: number): TaskId {
  const id = (entry as { readonly id?: unknown } | null)?.id ?? number
  if ((typeof id === 'string' && id !== '') || Number.isFinite(id)) return String(id) as TaskId
  if (typeof id === 'bigint') return String(id) as TaskId
  throw new TypeError(
    `the id ${JSON.stringify(id)} is not possible: an id is a text that is not empty, or a number; without one a task is called by its number`,
  )
}

/** The data of a task, and its place; blank lines are skipped but counted. */
interface Entry {
  readonly entry: unknown
  readonly place: string
}

async function* entriesOf(
  source: string | Iterable<unknown> | AsyncIterable<unknown>,
): AsyncGenerator<Entry> {
  if (typeof source === 'string') {
    yield* readFile(source)
    return
  }
  let number = 0
  for await (const entry of source) yield { entry, place: `task ${++number}` }
}

async function* readFile(path: string): AsyncGenerator<Entry> {
  if (!existsSync(path)) throw new SettingError(`no task file ${path}`)
  if (statSync(path).isDirectory()) {
    throw new SettingError(`${path} is a folder without a run.json: name a file of tasks or a run`)
  }
  if (path.endsWith('.parquet')) {
    let row = 0
    for await (const entry of parquetRows(path)) yield { entry, place: `${path}:${++row}` }
    return
  }
  let number = 0
  for await (const line of linesOf(path)) {
    const place = `${path}:${++number}`
    if (line.trim() !== '') yield { entry: parseLine(line, place), place }
  }
}

function parseLine(line: string, place: string): unknown {
  const entry = parseJson(line, place)
  const changed = numbersOf(line).find(changes)
  if (changed === undefined) return entry
  throw new Error(
    `${place}: the number ${changed.slice(0, 60)} would be changed, since it does not fit into 64-bit floating point: write it as a text`,
  )
}

function parseJson(line: string, place: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    const { message } = cause as Error
    throw new Error(
      `${place}: not JSON: ${message}. A task file has one JSON object per line, or is parquet`,
      { cause },
    )
  }
}

/** The numbers of a JSON text as they are written; none if all are short. */
function numbersOf(json: string): readonly string[] {
  if (!/\d{16}|\d[eE]/.test(json)) return []
  return json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/[-\d][-+.\deE]*/g) ?? []
}

/** Whether a number is another one when it is read: an integer that is rounded, or one without a bound. */
function changes(written: string): boolean {
  const read = Number(written)
  if (!Number.isFinite(read)) return true
  return /^-?\d+$/.test(written) && BigInt(read) !== BigInt(written)
}

/** The lines of a file, without a byte-order mark, which editors of some systems begin it with. */
async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let number = 1
  let rest = ''
  const read = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch (cause) {
      throw new Error(`${path} is not UTF-8, in line ${number} or soon after`, { cause })
    }
  }
  for await (const bytes of createReadStream(path) as AsyncIterable<Buffer>) {
    const [end = '', ...lines] = read(bytes).split('\n')
    // What was searched is not searched again: a line may be longer than many pieces of the file.
    rest += end
    for (const line of lines) {
      yield withoutReturn(rest)
      number++
      rest = line
    }
  }
  yield withoutReturn(rest + read())
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}
