import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missedOf } from './expectation.ts'

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
/** Threads that are compared, as far as there are cores for them. */
const counts = [1, 2, 4, 8, 16]
/** Each count is measured so often, in turns with the others. */
const rounds = 5
const group = 8
/** The share of a run in which its threads start and their code is compiled: it is not counted. */
const warmUp = 0.4

/** What is rolled, and how many tasks of it for every thread. */
interface Case {
  readonly name: string
  readonly tasks: number
  readonly words: readonly string[]
}

/** One count of threads: rollouts per second, and how often that of one thread it is. */
interface Figures {
  readonly threads: number
  readonly perSecond: number
  readonly ratio: number
  /** The smallest and the largest ratio of a round. */
  readonly spread: readonly [number, number]
}

/** The same run on 1, 2, 4, … threads: where the engine is the bottleneck, and with the model inside. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const cores = availableParallelism()
  const compared = counts.filter(count => count <= cores)
  const folder = mkdtempSync(join(tmpdir(), 'espalier-threads-'))
  try {
    const engine = await measure(engineCase(folder), compared, folder)
    const embedded = await measure(embeddedCase, compared, folder)
    if (!json) {
      show('a scripted policy, 8 turns with a tool: the engine is the bottleneck', engine)
      show('the embedded model, one copy and one core of it per thread', embedded)
    }
    const expectations = engine
      .filter(({ threads }) => threads > 1)
      .map(({ threads, ratio: value }) => ({
        what: `${threads} threads against one`,
        value,
        atLeast: (threads === 2 ? 0.9 : 0.7) * threads,
      }))
    return { cores, engine, embedded, missed: missedOf(expectations) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Seven calls of a tool and an answer, said at once: nothing is waited for. */
function engineCase(folder: string): Case {
  const calls = Array.from({ length: 7 }, (_, index) => ({
    text: `<tool_call>\n{"name": "calculate", "arguments": {"expression": "${index + 2} * ${index + 3}"}}\n</tool_call>`,
  }))
  const script = join(folder, 'answers.jsonl')
  const lines = [...calls, { text: '42' }].map(answer => JSON.stringify(answer))
  writeFileSync(script, `${lines.join('\n')}\n`)
  return { name: 'engine', tasks: 400, words: ['--policy', `scripted:${script}`] }
}

const embeddedCase: Case = {
  name: 'embedded',
  tasks: 16,
  words: ['--policy', 'embedded', '--max-turns', '2', '--max-new-tokens', '24'],
}

async function measure(
  { name, tasks, words }: Case,
  compared: readonly number[],
  folder: string,
): Promise<readonly Figures[]> {
  const speeds = new Map<number, number[]>(compared.map(threads => [threads, []]))
  for (let round = 0; round < rounds; round++) {
    for (const threads of compared) {
      const out = join(folder, `${name}-${threads}-${round}`)
      await roll([...words, '--tasks', String(tasks * threads), '--threads', String(threads)], out)
      speeds.get(threads)!.push(speedOf(out))
      rmSync(out, { recursive: true, force: true })
    }
  }
  const one = speeds.get(1)!
  return compared.map(threads => {
    const own = speeds.get(threads)!
    const ratios = own.map((speed, round) => speed / one[round]!)
    return {
      threads,
      perSecond: median(own),
      ratio: median(ratios),
      spread: [Math.min(...ratios), Math.max(...ratios)],
    }
  })
}

async function roll(words: readonly string[], out: string): Promise<void> {
  const all = ['roll', '--environment', 'calculator', '--group', String(group), '--out', out]
  const child = spawn(process.execPath, [program, ...all, ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`espalier roll ${words.join(' ')} ended with ${code}: ${said}`)
}

/** Rollouts per second after the run has warmed up, by the times that its events tell. */
function speedOf(out: string): number {
  const ends = readFileSync(join(out, 'events.jsonl'), 'utf8')
    .split('\n')
    .filter(line => line.includes('"tree-end"'))
    .map(line => Date.parse((JSON.parse(line) as { readonly time: string }).time))
  const from = Math.floor(ends.length * warmUp)
  return ((ends.length - from) * 1000) / (ends.at(-1)! - ends[from]!)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function show(title: string, figures: readonly Figures[]): void {
  console.log(`${title}\nthreads  rollouts/s  against one thread (of ${rounds} rounds)`)
  for (const { threads, perSecond, ratio, spread } of figures) {
    const [least, most] = spread.map(each => each.toFixed(2))
    const row = [String(threads).padStart(7), perSecond.toFixed(0).padStart(10)]
    console.log(`${row.join('  ')}  ${ratio.toFixed(2)} (${least} to ${most})`)
  }
}
