import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missedOf } from './expectation.ts'
import { median } from './median.ts'

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const seeds = [1, 2, 3]
/** How far rolling may run ahead of learning on either side. */
const sides = [0, 1] as const
/** Has the program say in the end how many seconds of processors it took. */
const tellProcessor =
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();' +
  'process.stderr.write("\\nprocessor "+(user+system)/1e6)})'
/** What success may differ by: the demo's own spread over seeds is about this. */
const bearable = 0.02

/** One demo as it came out. */
interface Run {
  readonly seed: number
  readonly staleness: (typeof sides)[number]
  /** Of the whole program, its start included. */
  readonly seconds: number
  /** Processors in use, on average: what is left of them is all that running ahead can gain. */
  readonly used: number
  readonly before: number
  readonly after: number
}

/** The demo with sampling and learning in turn, and with sampling one step ahead. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-overlap-'))
  const runs: Run[] = []
  if (!json) console.log('seed  staleness  seconds  processors  before  after')
  try {
    for (const [index, seed] of seeds.entries()) {
      // Who goes first changes, so that what else the machine does falls on both.
      for (const staleness of index % 2 === 0 ? sides : sides.toReversed()) {
        const run = await runDemo({ seed, staleness, out: join(folder, `${seed}-${staleness}`) })
        runs.push(run)
        if (!json) show(run)
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const of = (staleness: number) => runs.filter(run => run.staleness === staleness)
  const ratios = seeds.map(
    seed =>
      of(1).find(run => run.seed === seed)!.seconds / of(0).find(run => run.seed === seed)!.seconds,
  )
  const gained = meanAfter(of(1)) - meanAfter(of(0))
  const cores = availableParallelism()
  // The same work on processors that are never idle.
  const leastRatio = median(of(0).map(({ used }) => used / cores))
  if (!json) {
    const each = ratios.map(ratio => ratio.toFixed(2)).join(', ')
    console.log(`seconds one step ahead against in turn: ${each}; success ${signed(gained)}`)
    console.log(
      `no less than ${leastRatio.toFixed(2)}: so much of ${cores} processors is used in turn`,
    )
  }
  return {
    cores,
    runs,
    ratios,
    leastRatio,
    gained,
    missed: missedOf([
      { what: 'seconds one step ahead against in turn', value: median(ratios), atMost: 0.97 },
      { what: 'success gained by running ahead', value: gained, atLeast: -bearable },
    ]),
  }
}

async function runDemo({
  seed,
  staleness,
  out,
}: Pick<Run, 'seed' | 'staleness'> & { readonly out: string }): Promise<Run> {
  const { ESPALIER_OVERLAP_STEPS: steps } = process.env
  const words = ['--seed', String(seed), '--max-staleness', String(staleness), '--out', out]
  const started = performance.now()
  const child = spawn(
    process.execPath,
    [
      ...['--import', tellProcessor, program, 'demo', '--json', ...words],
      ...(steps === undefined ? [] : ['--steps', steps]),
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let said = ''
  let told = ''
  child.stdout.on('data', chunk => {
    said += chunk
  })
  child.stderr.on('data', chunk => {
    told += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`espalier demo ${words.join(' ')} ended with ${code}`)
  const { successBefore: before, successAfter: after } = JSON.parse(said) as Demo
  const seconds = (performance.now() - started) / 1000
  const used = Number(told.slice(told.lastIndexOf(' ') + 1)) / seconds
  return { seed, staleness, seconds, used, before, after }
}

interface Demo {
  readonly successBefore: number
  readonly successAfter: number
}

function meanAfter(runs: readonly Run[]): number {
  return runs.reduce((sum, { after }) => sum + after, 0) / runs.length
}

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`

function show({ seed, staleness, seconds, used, before, after }: Run): void {
  const row = [
    String(seed).padStart(4),
    String(staleness).padStart(9),
    seconds.toFixed(1).padStart(7),
    used.toFixed(2).padStart(10),
  ]
  console.log([...row, before.toFixed(3).padStart(6), after.toFixed(3).padStart(5)].join('  '))
}
