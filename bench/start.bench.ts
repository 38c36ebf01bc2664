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

/** How long it takes to load the library, and from calling `espalier roll` to its first request. */
export async function bench({ json }: { json: boolean }) {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-start-'))
  try {
    const node: number[] = []
    const imported: number[] = []
    const rolled: number[] = []
    // The sides take turns; the first round only brings files into the system's cache.
    for (let round = 0; round <= rounds; round++) {
      const each = [await nodeStart(), await importTime(), await timeToRequest(folder, round)]
      if (round === 0) continue
      for (const [index, list] of [node, imported, rolled].entries()) list.push(each[index]!)
    }
    const figures = { node: middle(node), import: middle(imported), roll: middle(rolled) }
    if (!json) {
      console.log(`node alone, start to end           ${show(figures.node)}`)
      console.log(`import 'espalier'                  ${show(figures.import)}`)
      console.log(`espalier roll, start to a request  ${show(figures.roll)}`)
    }
    return { ...figures, missed: missedOf(expectationsOf(figures.import, figures.roll)) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function expectationsOf(imported: Milliseconds, rolled: Milliseconds): readonly Expectation[] {
  return [
    { what: "ms to import 'espalier'", value: imported.median, atMost: 80 },
    { what: 'ms from `espalier roll` to its first request', value: rolled.median, atMost: 300 },
  ]
}

async function nodeStart(): Promise<number> {
  const started = performance.now()
  await run(process.execPath, ['-e', ''])
  return performance.now() - started
}

/** Measured inside the importing process, so that its own start does not count. */
async function importTime(): Promise<number> {
  const file = JSON.stringify(resolve('dist/index.js'))
  const code = `const started = performance.now(); await import(${file}); console.log(performance.now() - started)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code])
  return Number(stdout)
}

/** A server that fails every request: what counts is when the first one came. */
async function timeToRequest(folder: string, round: number): Promise<number> {
  let first: number | undefined
  const server = createServer((_, answer) => {
    first ??= performance.now()
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
  if (first === undefined) throw new Error(`espalier roll asked for nothing: ${String(ended)}`)
  return first - started
}

function middle(values: readonly number[]): Milliseconds {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1]!, spread: [sorted[0]!, sorted.at(-1)!] }
}

function show({ median, spread }: Milliseconds): string {
  const [fastest, slowest] = spread.map(value => Math.round(value))
  return `${Math.round(median)} ms (${fastest} to ${slowest})`
}
