// Exports: rows and tokens per second for jsonl and Parquet on 20 million tokens, and memory while
// they are written, against writing the same bytes raw and, where Python has it, against pyarrow
// writing the same table. ESPALIER_EXPORT_TOKENS scales it down; ESPALIER_PYTHON names a Python
// with pyarrow. Seconds are of processor time, so that a busy machine does not blur the ratio.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { Group } from '../src/core/group.ts'
import type { GroupId, TaskId, TreeId } from '../src/core/ids.ts'
import { plainSampling } from '../src/core/policy.ts'
import { given, sampled } from '../src/core/segment.ts'
import { type Gradable, plainTrajectory } from '../src/core/trajectory.ts'
import { plantTree, root, type Tree } from '../src/core/tree.ts'
import { random, seedOf } from '../src/math/random.ts'
import type { Format } from '../src/sinks/format.ts'
import { jsonl } from '../src/sinks/formats/jsonl.ts'
import { parquet } from '../src/sinks/formats/parquet.ts'
import { openLossReport } from '../src/sinks/lost.ts'
import { groupRows } from '../src/sinks/row-record.ts'

const TOKENS = Number(process.env.ESPALIER_EXPORT_TOKENS ?? 20_000_000)
const MEMBERS = 8
const TURNS = 12
const PROMPT = 800
const SAMPLED = 180
const OBSERVED = 170

/** One trajectory as agents leave them: a long prompt, then samples and observations in turn. */
function makeTree(member: number): Tree {
  const next = random(seedOf('bench', member))
  // Frequent tokens have small ids, as in real vocabularies.
  const ids = (count: number): Int32Array =>
    Int32Array.from({ length: count }, () => Math.floor(next() ** 3 * 150_000))
  const tree = plantTree({
    id: `g/${member}` as TreeId,
    task: 'g' as TaskId,
    member,
    seed: member,
    sampling: plainSampling,
    tools: [],
    renderer: 'bench',
  })
  let place = tree.append(root, given('prompt', ids(PROMPT)))
  const content = 'a line of conversation that a person might read. '.repeat(12)
  for (let turn = 0; turn < TURNS; turn++) {
    const logprobs = Float32Array.from({ length: SAMPLED }, () => -(next() ** 4) * 6)
    const version = { from: 1, to: 1 }
    place = tree.append(place, sampled({ ids: ids(SAMPLED), logprobs, version }))
    place = tree.append(place, given('observed', ids(OBSERVED)))
  }
  tree.end(
    plainTrajectory({
      id: `g/${member}/0` as Gradable['id'],
      end: place,
      outcome: { kind: 'completed' },
      messages: Array.from({ length: TURNS }, () => [
        { role: 'user', content } as const,
        { role: 'assistant', content } as const,
      ]).flat(),
      usage: { sampled: TURNS * SAMPLED, prompt: 0 },
    }),
  )
  return tree
}

function makeGroup(): Group {
  const members = Array.from({ length: MEMBERS }, (_, member) => {
    const tree = makeTree(member)
    return {
      tree,
      trajectory: tree.trajectories[0] as Gradable,
      reward: { total: member % 2, parts: [{ name: 'exact', score: member % 2, weight: 1 }] },
      dropped: null,
      advantage: member % 2 === 0 ? -1 : 1,
      weight: 1,
    }
  })
  return { id: 'g' as GroupId, task: 'g' as TaskId, members, unscored: [] }
}

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

const groupTokens = MEMBERS * (PROMPT + TURNS * (SAMPLED + OBSERVED))

/** Seconds of processor time that some work took. */
async function timed(work: () => Promise<void>): Promise<{ cpu: number; wall: number }> {
  const start = process.cpuUsage()
  const began = performance.now()
  await work()
  const { user, system } = process.cpuUsage(start)
  return { cpu: (user + system) / 1e6, wall: (performance.now() - began) / 1000 }
}

async function measure(format: Format, group: Group, file: string): Promise<Figures> {
  const groups = Math.max(1, Math.round(TOKENS / groupTokens))
  let peak = 0
  let early = 0
  const time = await timed(async () => {
    const stream = createWriteStream(file)
    const writer = format.open(
      {
        async write(chunk) {
          if (!stream.write(chunk)) await once(stream, 'drain')
        },
      },
      {
        run: 'bench',
        weighting: 'uniform',
        form: 'once',
        loss: 'ppo',
        volatile: false,
        lost: openLossReport(),
      },
    )
    for (let index = 0; index < groups; index++) {
      await writer.write({ group, task: { id: 'g' as TaskId, data: {} }, order: index })
      if (index % 8 === 0) peak = Math.max(peak, process.memoryUsage.rss())
      if (index === Math.floor(groups / 10)) early = peak
    }
    await writer.end()
    stream.end()
    await finished(stream)
  })
  const tokens = groups * groupTokens
  return {
    seconds: round(time.cpu),
    wallSeconds: round(time.wall),
    rowsPerSecond: Math.round((groups * MEMBERS) / time.cpu),
    tokensPerSecond: Math.round(tokens / time.cpu),
    megabytes: Math.round(statSync(file).size / 1e6),
    residentMegabytes: Math.round(peak / 1e6),
    grownMegabytes: Math.round((peak - early) / 1e6),
  }
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

const PYTHON = `
import json, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
file, copy = sys.argv[1:3]
source = pq.ParquetFile(file)
spent = 0.0
writer = None
for index in range(source.num_row_groups):
    table = source.read_row_group(index)
    start = time.process_time()
    if writer is None:
        writer = pq.ParquetWriter(copy, table.schema, compression="snappy")
    writer.write_table(table)
    spent += time.process_time() - start
writer.close()
check = pq.read_table(file, columns=["ids", "mask", "logprobs", "reward"])
total = sum(int(np.asarray(c.values).sum()) for c in check["ids"].chunks)
print(json.dumps({"seconds": spent, "rows": source.metadata.num_rows, "ids": total, "version": pa.__version__}))
`

interface Peer {
  readonly seconds: number
  readonly rows: number
  readonly version: string
}

/** pyarrow reads our file back and writes the same table, with its own defaults. */
function measurePyarrow(file: string): Peer | string {
  const python = process.env.ESPALIER_PYTHON ?? 'python3'
  const run = spawnSync(python, ['-c', PYTHON, file, `${file}.arrow`], { encoding: 'utf8' })
  if (run.error) return `no ${python}`
  if (run.status === 0) return JSON.parse(run.stdout) as Peer
  return run.stderr.trim().split('\n').at(-1) ?? 'pyarrow failed'
}

const round = (value: number): number => Math.round(value * 100) / 100

/** Writes the same rows as jsonl and as Parquet. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-'))
  const group = makeGroup()
  const figures: Record<string, object> = {}
  try {
    for (const format of [jsonl, parquet]) {
      const file = join(folder, format.name)
      const ours = await measure(format, group, file)
      const raw = await measureRaw(file)
      figures[format.name] = {
        ...ours,
        rawSeconds: round(raw),
        ratioToRaw: round(ours.seconds / raw),
        ...(format === parquet && {
          ...comparePyarrow(file, ours),
          libraryTokensPerSecond: Math.round(await measureLibrary(group)),
        }),
      }
      if (!json) console.log(format.name, figures[format.name])
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return { tokens: TOKENS, ...figures }
}

/** The writer's own way to lists, one boxed value per token, on the three lists of tokens alone. */
async function measureLibrary(group: Group): Promise<number> {
  const rows = groupRows(group).map(({ row }) => row)
  const lists = [
    { name: 'ids', type: 'INT32', data: rows.map(({ ids }) => Array.from(ids)) },
    { name: 'mask', type: 'INT32', data: rows.map(({ mask }) => Array.from(mask)) },
    { name: 'logprobs', type: 'FLOAT', data: rows.map(({ logprobs }) => Array.from(logprobs)) },
  ] as const
  const rounds = 4
  const { cpu } = await timed(async () => {
    for (let round = 0; round < rounds; round++) writeByLibrary(lists, rows.length)
  })
  return (rounds * groupTokens) / cpu
}

function writeByLibrary(
  lists: readonly { name: string; type: 'INT32' | 'FLOAT'; data: readonly number[][] }[],
  rows: number,
): void {
  const schema = lists.flatMap(({ name, type }) => [
    { name, repetition_type: 'REQUIRED', num_children: 1, converted_type: 'LIST' } as const,
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 } as const,
    { name: 'element', repetition_type: 'REQUIRED', type } as const,
  ])
  const root = { name: 'root', num_children: lists.length }
  const library = new ParquetWriter({ writer: new ByteWriter(), schema: [root, ...schema] })
  library.write({
    columnData: lists.map(({ name, data }) => ({ name, data: [...data] })),
    rowGroupSize: rows,
  })
  library.finish()
}

function comparePyarrow(file: string, ours: Figures): object {
  const peer = measurePyarrow(file)
  if (typeof peer === 'string') return { pyarrow: peer }
  const ratioToPyarrow = round(ours.seconds / peer.seconds)
  const { version: pyarrow, seconds } = peer
  return { pyarrow, pyarrowSeconds: round(seconds), ratioToPyarrow }
}
