// Exports: rows and tokens per second for jsonl and Parquet on 20 million tokens, and memory while
// they are written, against writing the same bytes raw and, where Python has it, against pyarrow
// writing the same rows from three starting points (bench/export/with_pyarrow.py). Ours has two: the trees
// of rollouts, and rows whose lists and texts are ready, of which `hyparquet-writer` writes the lists alone. ESPALIER_EXPORT_TOKENS scales it down;
// ESPALIER_PYTHON names a Python with pyarrow. Every side writes 2 million tokens first. Seconds are
// of processor time, so that a busy machine does not blur the ratio.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Group } from '../src/base/core/group.ts'
import type { TaskId } from '../src/base/core/ids.ts'
import type { Format, Output } from '../src/run/sinks/format.ts'
import { jsonl } from '../src/run/sinks/formats/jsonl.ts'
import { openRows, parquet, toRows } from '../src/run/sinks/formats/parquet.ts'
import { makeLossReport } from '../src/run/sinks/lost.ts'
import { groupMembers, groupTokens, makeGroups } from './export/groups.ts'
import { writeWithLibrary } from './export/library.ts'

const TOKENS = Number(process.env.ESPALIER_EXPORT_TOKENS ?? 20_000_000)

/** Groups that a side writes before it is measured: 2 million tokens. */
const WARM = Math.round(2_000_000 / groupTokens)

const options = {
  run: 'bench',
  weighting: 'uniform',
  form: 'once',
  loss: 'ppo',
  volatile: false,
} as const

interface Figures {
  readonly seconds: number
  readonly wallSeconds: number
  readonly rowsPerSecond: number
  readonly tokensPerSecond: number
  readonly megabytes: number
  /** The most memory the process had, and how much of it came after the first tenth of the rows. */
  readonly residentMegabytes: number
  readonly grownMegabytes: number
}

/** Seconds of processor time that some work took. */
async function timed(work: () => Promise<void>): Promise<{ cpu: number; wall: number }> {
  const start = process.cpuUsage()
  const began = performance.now()
  await work()
  const { user, system } = process.cpuUsage(start)
  return { cpu: (user + system) / 1e6, wall: (performance.now() - began) / 1000 }
}

/** Lets some work write a file. */
async function withFile(file: string, work: (output: Output) => Promise<void>): Promise<void> {
  const stream = createWriteStream(file)
  await work({
    async write(chunk) {
      if (!stream.write(chunk)) await once(stream, 'drain')
    },
  })
  stream.end()
  await finished(stream)
}

async function writeGroups(
  format: Format,
  groups: readonly Group[],
  { file, onGroup = () => {} }: { readonly file: string; readonly onGroup?: (at: number) => void },
): Promise<void> {
  await withFile(file, async output => {
    const writer = format.open(output, { ...options, lost: makeLossReport() })
    for (const [order, group] of groups.entries()) {
      await writer.write({ group, task: { id: 'g' as TaskId, data: {} }, order })
      onGroup(order)
    }
    await writer.end()
  })
}

async function measure(format: Format, groups: readonly Group[], file: string): Promise<Figures> {
  let peak = 0
  let early = 0
  const onGroup = (index: number): void => {
    if (index % 8 === 0) peak = Math.max(peak, process.memoryUsage.rss())
    if (index === Math.floor(groups.length / 10)) early = peak
  }
  await writeGroups(format, groups.slice(0, WARM), { file })
  const time = await timed(() => writeGroups(format, groups, { file, onGroup }))
  return {
    seconds: round(time.cpu),
    wallSeconds: round(time.wall),
    rowsPerSecond: Math.round((groups.length * groupMembers) / time.cpu),
    tokensPerSecond: Math.round((groups.length * groupTokens) / time.cpu),
    megabytes: round(statSync(file).size / 1e6),
    residentMegabytes: Math.round(peak / 1e6),
    grownMegabytes: Math.round((peak - early) / 1e6),
  }
}

/** The same table from rows that are ready: typed lists and texts. */
async function measureRows(groups: readonly Group[], file: string): Promise<number> {
  const ready = new Map([...new Set(groups)].map(group => [group, toRows(group, options)]))
  const write = (some: readonly Group[]): Promise<void> =>
    withFile(file, async output => {
      const table = openRows(output, options.run)
      for (const group of some) for (const row of ready.get(group)!) await table.append(row)
      await table.end()
    })
  await write(groups.slice(0, WARM))
  return (await timed(() => write(groups))).cpu
}

/** Only the lists of tokens of those rows, by the library `hyparquet-writer`. */
async function measureLibrary(groups: readonly Group[], file: string): Promise<number> {
  const ready = new Map([...new Set(groups)].map(group => [group, toRows(group, options)]))
  const rowsOf = (some: readonly Group[]) => some.flatMap(group => ready.get(group)!)
  await writeWithLibrary(rowsOf(groups.slice(0, WARM)), file)
  return (await timed(() => writeWithLibrary(rowsOf(groups), file))).cpu
}

/** The floor: the same bytes written again, as they are. */
async function measureRaw(file: string): Promise<number> {
  const time = await timed(async () => {
    const copy = createWriteStream(`${file}.raw`)
    for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
      if (!copy.write(chunk)) await once(copy, 'drain')
    }
    copy.end()
    await finished(copy)
  })
  rmSync(`${file}.raw`)
  return time.cpu
}

interface Peer {
  /** By what it began with. */
  readonly seconds: Readonly<Record<'rows' | 'arrays' | 'table', number>>
  readonly version: string
  readonly file: string
}

/** pyarrow reads our file and writes the same rows, with its own defaults. */
function measurePyarrow(file: string, folder: string): object {
  const python = process.env.ESPALIER_PYTHON ?? 'python3'
  const script = fileURLToPath(new URL('./export/with_pyarrow.py', import.meta.url))
  const run = spawnSync(python, [script, file, folder], { encoding: 'utf8' })
  if (run.error) return { pyarrow: `no ${python}` }
  if (run.status !== 0) return { pyarrow: run.stderr.trim().split('\n').at(-1) }
  const peer = JSON.parse(run.stdout) as Peer
  const seconds = Object.entries(peer.seconds).map(([name, each]) => [name, round(each)])
  return {
    pyarrow: peer.version,
    pyarrowSeconds: Object.fromEntries(seconds),
    pyarrowMegabytes: round(statSync(peer.file).size / 1e6),
  }
}

const round = (value: number): number => Math.round(value * 1000) / 1000

/** Writes the same rows as jsonl and as Parquet. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-'))
  const groups = makeGroups(Math.max(1, Math.round(TOKENS / groupTokens)))
  const figures: Record<string, object> = {}
  try {
    for (const format of [jsonl, parquet]) {
      const file = join(folder, format.name)
      const ours = await measure(format, groups, file)
      const raw = await measureRaw(file)
      figures[format.name] = {
        ...ours,
        rawSeconds: round(raw),
        ratioToRaw: round(ours.seconds / raw),
        ...(format === parquet && {
          rowSeconds: round(await measureRows(groups, `${file}.rows`)),
          libraryListSeconds: round(await measureLibrary(groups, `${file}.library`)),
          ...measurePyarrow(file, folder),
        }),
      }
      if (!json) console.log(format.name, figures[format.name])
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return { tokens: TOKENS, ...figures }
}
