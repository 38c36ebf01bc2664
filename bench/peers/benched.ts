import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Comparison, type Measure, ratioOf, spreadOf } from './line.ts'
import type { Given } from './lines.ts'

/** A benchmark of `bench/` that includes a peer itself, and where its figures are. */
export interface Benched {
  readonly bench: string
  readonly line: string
  readonly peer: string
  readonly measure: Measure
  /** Paths into what it prints. */
  readonly ours: string
  readonly theirs: string
  /** What it needs besides Python; `undefined` if it was not given. */
  readonly environment: Readonly<Record<string, string>> | undefined
}

/** The benchmarks that have a peer of their own. */
export function benchedLines({ tauBench, tau2Bench }: Given): readonly Benched[] {
  const calls: Measure = { figure: 'calls', unit: 'calls/s', better: 'more', target: 1 }
  const episodes: Measure = { figure: 'episodes', unit: 'episodes/s', better: 'more', target: 20 }
  return [
    {
      bench: 'template',
      line: 'chat templates, the median one',
      peer: 'jinja2',
      measure: { figure: 'median', unit: 'of its time', better: 'less', target: 6.7 },
      ours: 'ratioToJinja2.median',
      theirs: '1',
      environment: {},
    },
    {
      bench: 'export',
      line: 'Parquet, 2 million tokens',
      peer: 'pyarrow',
      measure: { figure: 'seconds', unit: 's CPU', better: 'less', target: 1 },
      ours: 'parquet.seconds',
      theirs: 'parquet.pyarrowSeconds',
      environment: { ESPALIER_EXPORT_TOKENS: '2000000' },
    },
    {
      bench: 'tau',
      line: "tau-bench's retail tools",
      peer: 'the original',
      measure: calls,
      ours: 'retail.ours.calls',
      theirs: 'retail.python.calls',
      environment: tauBench === undefined ? undefined : { TAU_BENCH_CHECKOUT: tauBench },
    },
    {
      bench: 'tau2',
      line: "tau2-bench's retail episodes",
      peer: 'the original',
      measure: episodes,
      ours: 'retail.ours.episodes',
      theirs: 'retail.python.episodes',
      environment: tau2Bench === undefined ? undefined : { TAU2_BENCH_CHECKOUT: tau2Bench },
    },
  ]
}

/** Runs the benchmark as a person does, as often as asked. */
export function runBenched(
  benched: Benched,
  { python, turns }: { readonly python: string; readonly turns: number },
): Comparison {
  const printed = Array.from({ length: turns }, () => runBench(benched, python))
  const ours = spreadOf(printed.map(figures => at(figures, benched.ours)))
  const theirs = spreadOf(printed.map(figures => at(figures, benched.theirs)))
  const { measure } = benched
  const ratio = ratioOf(measure, ours, theirs)
  const { line, peer } = benched
  const reached = ratio >= (measure.target ?? 0)
  return { line, measure, peer, version: '', ours, theirs, ratio, reached }
}

function runBench({ bench, environment }: Benched, python: string): object {
  const script = fileURLToPath(new URL('../../scripts/bench.ts', import.meta.url))
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', script, bench, '--json'],
    {
      encoding: 'utf8',
      env: { ...process.env, ...environment, ESPALIER_PYTHON: python },
      maxBuffer: 1 << 28,
    },
  )
  // A benchmark that misses what it expects ends with 1, and its figures count all the same.
  const figures = stdout.trim().split('\n').at(-1)
  if (!figures?.startsWith('{')) {
    throw new Error(`npm run bench -- ${bench} failed: ${stderr.trim()}`)
  }
  return JSON.parse(figures) as object
}

/** The number at a path such as `retail.ours.calls`; a path that is a number is that number. */
function at(figures: object, path: string): number {
  if (!Number.isNaN(Number(path))) return Number(path)
  let value: unknown = figures
  for (const key of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[key]
  if (typeof value !== 'number') throw new Error(`no figure at ${path}: ${JSON.stringify(value)}`)
  return value
}
