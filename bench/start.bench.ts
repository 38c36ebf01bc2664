import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Expectation, missedOf } from './expectation.ts'

const run = promisify(execFile)
const rounds = 9
const program = resolve('dist/cli/main.js')

/** The median of all rounds in milliseconds, with the fastest and the slowest. */
interface Milliseconds {
  readonly median: number
  readonly spread: readonly [fastest: number, slowest: number]
}

/** How long it takes to load the library, to answer `--version` and `--help`, and from `espalier roll` to its requests. */
export async function bench({ json }: { json: boolean }) {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-start-'))
  try {
    const taken = new Map<Measured, number[]>(measured.map(name => [name, []]))
    // The sides take turns; the first round only brings files into the system's cache.
    for (let round = 0; round <= rounds; round++) {
      const each = await measureOnce(folder, round)
      if (round > 0) for (const name of measured) taken.get(name)!.push(each[name])
    }
    const figures = Object.fromEntries(
      [...taken].map(([name, values]) => [name, middle(values)]),
    ) as Figures
    if (!json) print(figures)
    return { ...figures, ratios: ratiosOf(figures), missed: missedOf(expectationsOf(figures)) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const measured = ['node', 'import', 'version', 'help', 'roll', 'sample'] as const
type Measured = (typeof measured)[number]
type Figures = Readonly<Record<Measured, Milliseconds>>

async function measureOnce(
  folder: string,
  round: number,
): Promise<Readonly<Record<Measured, number>>> {
  return {
    node: await runTime(['-e', '']),
    import: await importTime(),
    version: await runTime([program, '--version']),
    help: await runTime([program, '--help']),
    ...(await timesToRequests(folder, round)),
  }
}

/** How often the time of a bare Node each takes: what depends least on the machine. */
function ratiosOf({ node, ...rest }: Figures): Readonly<Record<string, number>> {
  const entries = Object.entries(rest).map(([name, { median }]) => [name, median / node.median])
  return Object.fromEntries(entries) as Record<string, number>
}

const lines: Readonly<Record<Measured, string>> = {
  node: 'node alone, start to end',
  import: "import 'espalier'",
  version: 'espalier --version, start to end',
  help: 'espalier --help, start to end',
  roll: 'espalier roll, start to its first request',
  sample: 'espalier roll, start to its first sample',
}

function print(figures: Figures): void {
  const ratios = ratiosOf(figures)
  for (const name of measured) {
    const ratio = ratios[name] === undefined ? '' : `, ${ratios[name].toFixed(2)} of node alone`
    console.log(`${lines[name].padEnd(43)}${show(figures[name])}${ratio}`)
  }
}

function expectationsOf({ import: imported, roll }: Figures): readonly Expectation[] {
  return [
    { what: "ms to import 'espalier'", value: imported.median, atMost: 150 },
    { what: 'ms from `espalier roll` to its first request', value: roll.median, atMost: 400 },
  ]
}

async function runTime(words: readonly string[]): Promise<number> {
  const started = performance.now()
  await run(process.execPath, [...words])
  return performance.now() - started
}

/** Measured inside the importing process, so that its own start does not count. */
async function importTime(): Promise<number> {
  const file = JSON.stringify(resolve('dist/index.js'))
  const code = `const started = performance.now(); await import(${file}); console.log(performance.now() - started)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code])
  return Number(stdout)
}

/**
 * A server that fails every request: what counts is when the first ones came. The first asks what is served, the
 * first that posts asks for a sample.
 */
async function timesToRequests(
  folder: string,
  round: number,
): Promise<{ readonly roll: number; readonly sample: number }> {
  let first: number | undefined
  let sampled: number | undefined
  const server = createServer(({ method }, answer) => {
    first ??= performance.now()
    if (method === 'POST') sampled ??= performance.now()
    answer.writeHead(400).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const tasks = join(folder, 'tasks.jsonl')
  await writeFile(tasks, '{"prompt":"Say yes.","answer":"yes"}\n')
  const started = performance.now()
  const words = ['--environment', 'single-turn', '--tasks', tasks, '--group', '1']
  const out = ['--out', join(folder, `run-${round}`)]
  const policy = ['--policy', `sglang:http://127.0.0.1:${port}`, '--model', 'models/chatml-bytes']
  const ended = await run(process.execPath, [program, 'roll', ...policy, ...words, ...out]).catch(
    (error: unknown) => error,
  )
  server.closeAllConnections()
  server.close()
  if (first === undefined || sampled === undefined) {
    throw new Error(`espalier roll asked for nothing: ${String(ended)}`)
  }
  return { roll: first - started, sample: sampled - started }
}

function middle(values: readonly number[]): Milliseconds {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1]!, spread: [sorted[0]!, sorted.at(-1)!] }
}

function show({ median, spread }: Milliseconds): string {
  const [fastest, slowest] = spread.map(value => Math.round(value))
  return `${Math.round(median)} ms (${fastest} to ${slowest})`
}
