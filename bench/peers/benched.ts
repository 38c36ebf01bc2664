import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Comparison, judge, type Measure } from './line.ts'
import type { Given } from './lines.ts'

/** A benchmark of `bench/` that includes a peer itself. */
export interface Benched {
  readonly bench: string
  readonly lines: readonly BenchedLine[]
  /** What it needs besides Python; `undefined` if it was not given. */
  readonly environment: Readonly<Record<string, string>> | undefined
}

/** A comparison that a benchmark makes, and where its figures are. */
export interface BenchedLine {
  readonly line: string
  readonly peer: string
  readonly measure: Measure
  /** Paths into what it prints. */
  readonly ours: string
  readonly theirs: string
}

/** The benchmarks that have a peer of their own. */
export function benchedLines({ tauBench, tau2Bench }: Given): readonly Benched[] {
  const calls: Measure = { figure: 'calls', unit: 'calls/s', better: 'more', target: 1 }
  const episodes: Measure = { figure: 'episodes', unit: 'episodes/s', better: 'more', target: 20 }
  return [
    {
      bench: 'template',
      lines: [
        {
          line: 'chat templates, the median one',
          peer: 'jinja2',
          measure: { figure: 'median', unit: 'of its time', better: 'less', target: 6.7 },
          ours: 'ratioToJinja2.median',
          theirs: '1',
        },
      ],
      environment: {},
    },
    {
      bench: 'export',
      lines: parquetLines,
      environment: { ESPALIER_EXPORT_TOKENS: '10000000' },
    },
    {
      bench: 'tau',
      lines: [
        {
          line: "tau-bench's retail tools",
          peer: 'the original',
          measure: calls,
          ours: 'retail.ours.calls',
          theirs: 'retail.python.calls',
        },
        {
          line: "tau-bench's retail episodes",
          peer: 'the original',
          measure: episodes,
          ours: 'retail.ours.episodes',
          theirs: 'retail.python.episodes',
        },
      ],
      environment: tauBench === undefined ? undefined : { TAU_BENCH_CHECKOUT: tauBench },
    },
    {
      bench: 'tau2',
      lines: [
        {
          line: "tau2-bench's retail episodes",
          peer: 'the original',
          measure: episodes,
          ours: 'retail.ours.episodes',
          theirs: 'retail.python.episodes',
        },
      ],
      environment: tau2Bench === undefined ? undefined : { TAU2_BENCH_CHECKOUT: tau2Bench },
    },
  ]
}

const parquetSeconds: Measure = { figure: 'seconds', unit: 's CPU', better: 'less', target: 1 }

/** 10 million tokens, by what each side begins with. */
const parquetLines: readonly BenchedLine[] = [
  {
    line: 'Parquet, from rollouts: trees; dicts with lists',
    peer: 'pyarrow',
    measure: parquetSeconds,
    ours: 'parquet.seconds',
    theirs: 'parquet.pyarrowSeconds.rows',
  },
  {
    line: 'Parquet, from rollouts: trees; dicts with numpy arrays',
    peer: 'pyarrow',
    measure: parquetSeconds,
    ours: 'parquet.seconds',
    theirs: 'parquet.pyarrowSeconds.arrays',
  },
  {
    line: 'Parquet, from what is ready: typed lists and texts; an Arrow table',
    peer: 'pyarrow',
    measure: parquetSeconds,
    ours: 'parquet.rowSeconds',
    theirs: 'parquet.pyarrowSeconds.table',
  },
  {
    line: 'Parquet, from trees; from an Arrow table',
    peer: 'pyarrow',
    measure: parquetSeconds,
    ours: 'parquet.seconds',
    theirs: 'parquet.pyarrowSeconds.table',
  },
]

/** Runs the benchmark as a person does, as often as asked. */
export function runBenched(
  benched: Benched,
  { python, turns }: { readonly python: string; readonly turns: number },
): readonly Comparison[] {
  const printed = Array.from({ length: turns }, () => runBench(benched, python))
  return benched.lines.map(({ line, peer, measure, ours, theirs }) => {
    const figuresAt = (path: string): readonly number[] => printed.map(each => at(each, path))
    const judged = judge(measure, { ours: figuresAt(ours), theirs: figuresAt(theirs) })
    return { line, measure, peer, version: '', ...judged }
  })
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
