import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Expectation, missedOf } from './expectation.ts'
import { median } from './median.ts'

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
/** Threads that are compared, as far as there are cores for them. */
const counts = [1, 2, 4, 8, 16]
/** Each count is measured so often, in turns with the others. */
const rounds = 5
const group = 8
/**
 * The share of a run in which its threads start and their code is compiled: it is not counted. Each thread
 * compiles for itself, most of it during its first 3,000 rollouts, and all share V8's four compiling threads.
 */
const warmUp = 0.4

/** Microseconds per rollout that the thread may take that gathers: with more, it would hold up 16 others. */
const mostGathering = 40
/** Least part of what as many separate programs make, which share nothing and gather nothing. */
const leastOfSeparate = 0.85

/** What is rolled, and how many tasks of it for every thread. */
interface Case {
  readonly name: string
  readonly tasks: number
  readonly words: readonly string[]
  /** Whether one thread of it leaves the other cores alone, so that separate programs show what the machine can do. */
  readonly isApart: boolean
}

/** One count of threads: rollouts per second, and the ratio to one thread. */
interface Figures {
  readonly threads: number
  readonly perSecond: number
  readonly ratio: number
  /** The smallest and the largest ratio of a round. */
  readonly spread: readonly [number, number]
  /** Microseconds of the main thread's processor time per rollout; with threads it does nothing but gather. */
  readonly main: number
  /** As many separate programs of one thread, at the same time: together against one, and ours against them. */
  readonly separate?: { readonly ratio: number; readonly reached: number }
}

/** The same run on 1, 2, 4, … threads: where the engine is the bottleneck, and with the model inside. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const cores = availableParallelism()
  const compared = counts.filter(count => count <= cores)
  const folder = mkdtempSync(join(tmpdir(), 'espalier-threads-'))
  try {
    const engine = await measure(engineCase(folder), compared, folder)
    if (!json) show('a scripted policy, 8 turns with a tool: the engine is the bottleneck', engine)
    const embedded = await measure(embeddedCase, compared, folder)
    if (!json) show('the embedded model, one copy and one core of it per thread', embedded)
    return { cores, engine, embedded, missed: missedOf(expectationsOf(engine)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function expectationsOf(engine: readonly Figures[]): readonly Expectation[] {
  const spread = engine.filter(({ threads }) => threads > 1)
  const ratios = spread.map(({ threads, separate }) => ({
    what: `${threads} threads against ${threads} separate programs`,
    value: separate?.reached ?? Number.NaN,
    atLeast: leastOfSeparate,
  }))
  const what = 'microseconds per rollout of the thread that gathers'
  // Only Linux tells what a thread took.
  const gathering = spread.slice(-1).filter(({ main }) => Number.isFinite(main))
  return [...ratios, ...gathering.map(({ main }) => ({ what, value: main, atMost: mostGathering }))]
}

/** Seven calls of a tool and an answer, said at once: nothing is waited for. */
function engineCase(folder: string): Case {
  const calls = Array.from({ length: 7 }, (_, index) => ({
    text: `<tool_call>\n{"name": "calculate", "arguments": {"expression": "${index + 2} * ${index + 3}"}}\n</tool_call>`,
  }))
  const script = join(folder, 'answers.jsonl')
  const lines = [...calls, { text: '42' }].map(answer => JSON.stringify(answer))
  writeFileSync(script, `${lines.join('\n')}\n`)
  const words = ['--policy', `scripted:${script}`]
  return { name: 'engine', tasks: 1200, words, isApart: true }
}

const embeddedCase: Case = {
  name: 'embedded',
  tasks: 16,
  words: ['--policy', 'embedded', '--max-turns', '2', '--max-new-tokens', '24'],
  isApart: false,
}

/** What one run came to. */
interface Measured {
  readonly perSecond: number
  readonly main: number
}

async function measure(
  { name, tasks, words, isApart }: Case,
  compared: readonly number[],
  folder: string,
): Promise<readonly Figures[]> {
  const runs = new Map<number, Measured[]>(compared.map(threads => [threads, []]))
  const separate = new Map<number, number[]>(compared.map(threads => [threads, []]))
  const run = async (threads: number, place: string): Promise<Ran> => {
    const out = join(folder, place)
    const all = [...words, '--tasks', String(tasks * threads), '--threads', String(threads)]
    const taken = await roll(all, out)
    const ends = readEnds(out)
    rmSync(out, { recursive: true, force: true })
    return { ends, taken }
  }
  for (let round = 0; round < rounds; round++) {
    for (const threads of compared) {
      const place = `${name}-${threads}-${round}`
      runs.get(threads)!.push(measureRun(await run(threads, place)))
      if (!isApart || threads === 1) continue
      const places = Array.from({ length: threads }, (_, index) => `${place}-${index}`)
      const all = await Promise.all(places.map(each => run(1, each)))
      separate.get(threads)!.push(togetherPerSecond(all.map(({ ends }) => ends)))
    }
  }
  const one = runs.get(1)!
  return compared.map(threads => {
    const own = runs.get(threads)!
    const apart = separate.get(threads)!
    const ratios = own.map(({ perSecond }, round) => perSecond / one[round]!.perSecond)
    return {
      threads,
      perSecond: median(own.map(({ perSecond }) => perSecond)),
      ratio: median(ratios),
      spread: [Math.min(...ratios), Math.max(...ratios)],
      main: median(own.map(({ main }) => main)),
      ...(apart.length > 0 && {
        separate: {
          ratio: median(apart.map((perSecond, round) => perSecond / one[round]!.perSecond)),
          reached: median(apart.map((perSecond, round) => own[round]!.perSecond / perSecond)),
        },
      }),
    }
  })
}

/** Processor time that the main thread of a program had taken at a moment. */
interface Taken {
  readonly at: number
  readonly microseconds: number
}

async function roll(words: readonly string[], out: string): Promise<readonly Taken[]> {
  const all = ['roll', '--environment', 'calculator', '--group', String(group), '--out', out]
  const child = spawn(process.execPath, [program, ...all, ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const taken: Taken[] = []
  const timer = setInterval(() => taken.push(...takenBy(child.pid!)), 20)
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const [code] = await once(child, 'close')
  clearInterval(timer)
  if (code !== 0) throw new Error(`espalier roll ${words.join(' ')} ended with ${code}: ${said}`)
  return taken
}

/** Linux tells the nanoseconds of every thread; the main thread has the number of its process. */
function takenBy(process: number): readonly Taken[] {
  try {
    const text = readFileSync(`/proc/${process}/task/${process}/schedstat`, 'utf8')
    return [{ at: Date.now(), microseconds: Number(text.split(' ')[0]) / 1000 }]
  } catch {
    return []
  }
}

/** A run that has ended: when its attempts did, and what its main thread took meanwhile. */
interface Ran {
  readonly ends: readonly number[]
  readonly taken: readonly Taken[]
}

/** When the attempts of a run ended, by its events. */
function readEnds(out: string): readonly number[] {
  return readFileSync(join(out, 'events.jsonl'), 'utf8')
    .split('\n')
    .filter(line => line.includes('"tree-end"'))
    .map(line => Date.parse((JSON.parse(line) as { readonly time: string }).time))
}

function warmAt(ends: readonly number[]): number {
  return ends[Math.floor(ends.length * warmUp)]!
}

function countIn(ends: readonly number[], from: number, to: number): number {
  return ends.filter(time => time > from && time <= to).length
}

/** What a run came to after it has warmed up. */
function measureRun({ ends, taken }: Ran): Measured {
  const warm = warmAt(ends)
  const end = ends.at(-1)!
  const perSecond = (countIn(ends, warm, end) * 1000) / (end - warm)
  const seen = taken.filter(({ at }) => at >= warm && at <= end)
  const [first, last] = [seen[0], seen.at(-1)]
  if (!first || !last) return { perSecond, main: Number.NaN }
  const main = (last.microseconds - first.microseconds) / countIn(ends, first.at, last.at)
  return { perSecond, main }
}

/** Rollouts per second of several runs, while all of them were warm and none had ended. */
function togetherPerSecond(runs: readonly (readonly number[])[]): number {
  const from = Math.max(...runs.map(warmAt))
  const to = Math.min(...runs.map(ends => ends.at(-1)!))
  const count = runs.reduce((sum, ends) => sum + countIn(ends, from, to), 0)
  return (count * 1000) / (to - from)
}

function show(title: string, figures: readonly Figures[]): void {
  console.log(
    `${title}\nthreads  rollouts/s  main thread, µs/rollout  against one thread (${rounds} rounds)`,
  )
  for (const { threads, perSecond, ratio, spread, main, separate } of figures) {
    const [least, most] = spread.map(each => each.toFixed(2))
    const row = [
      String(threads).padStart(7),
      perSecond.toFixed(0).padStart(10),
      main.toFixed(0).padStart(23),
    ]
    const apart = separate
      ? `; ${threads} separate programs ${separate.ratio.toFixed(2)}, of which ${(100 * separate.reached).toFixed(0)} % is reached`
      : ''
    console.log(`${row.join('  ')}  ${ratio.toFixed(2)} (${least} to ${most})${apart}`)
  }
  const { main, threads } = figures.at(-1)!
  if (threads > 1) console.log(`gathering thread: ${main.toFixed(0)} µs per rollout`)
}
