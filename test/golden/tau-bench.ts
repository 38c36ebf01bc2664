import { existsSync } from 'node:fs'
import type { GoldenOptions, GoldenResult, GoldenSuite } from './suite.ts'
import { checkCalculation, checkMetrics, checkValue } from './tau-bench/plain.ts'
import { checkGroundTruth, FuzzSessions } from './tau-bench/replays.ts'
import { checkSimulation } from './tau-bench/simulations.ts'
import { type Problem, type TauRow, TauSource } from './tau-bench/source.ts'
import { checkStatic, checkTask } from './tau-bench/static.ts'

/** Gives what is wrong with our answer to a row, nothing when it is right. */
type Check = (row: TauRow) => Promise<Problem> | Problem

/** Categories of wrong calls whose texts may differ in a few rows, and the share that must agree. */
const LENIENT = new Map([
  ['wrong_type', 0.95],
  ['wrong_nested', 0.95],
])

/** tau-bench: values, calculator, tasks, tools, rewards, users, agents, metrics. */
export const tauBenchSuite: GoldenSuite = {
  name: 'tau-bench',
  matches: path => /(^|\/)tau-bench\//.test(path),
  async run(text, options) {
    const file =
      options.name
        .split('/')
        .at(-1)
        ?.replace(/\.jsonl\.gz$|\.json$/, '') ?? ''
    const check = checkFor(file, options)
    if (typeof check === 'string') return { passed: 0, failures: [], notes: [`skipped: ${check}`] }
    const rows = file === 'static' ? [text] : text.split('\n').filter(line => line !== '')
    return await checkRows(rows, check)
  },
}

function checkFor(file: string, { tauBench }: GoldenOptions): Check | string {
  if (file === 'values') return checkValue
  if (file === 'calc') return checkCalculation
  if (file === 'metrics') return checkMetrics
  if (tauBench === undefined) return 'needs a checkout, given by --tau-bench'
  if (!existsSync(tauBench)) throw new Error(`No tau-bench checkout in ${tauBench}.`)
  const source = new TauSource(tauBench)
  if (file === 'static') return row => checkStatic(row, source)
  if (file === 'tasks') return row => checkTask(row, source)
  if (file === 'sims') return row => checkSimulation(row, source)
  const [kind, domain, split] = file.split('-')
  if (kind === 'gt') return row => checkGroundTruth(row, { source, domain, split })
  if (kind === 'fuzz') {
    const sessions = new FuzzSessions(source, domain)
    return row => sessions.check(row)
  }
  return `no check reads ${file}`
}

async function checkRows(rows: readonly string[], check: Check): Promise<GoldenResult> {
  let passed = 0
  const failures: string[] = []
  const notes: string[] = []
  const lenient = new Map<string, { total: number; problems: string[] }>()
  for (const [index, text] of rows.entries()) {
    const row = JSON.parse(text) as TauRow
    const problem = await check(row)
    if (problem?.startsWith('skipped')) {
      notes.push(`row ${index}: ${problem}`)
      continue
    }
    const category = lenient.get(row.cat) ?? { total: 0, problems: [] }
    if (LENIENT.has(row.cat)) lenient.set(row.cat, category)
    category.total++
    if (problem === undefined) passed++
    else (LENIENT.has(row.cat) ? category.problems : failures).push(`row ${index}: ${problem}`)
  }
  for (const [name, { total, problems }] of lenient) {
    const isEnough = total - problems.length >= total * (LENIENT.get(name) as number)
    if (isEnough) {
      notes.push(...problems.map(problem => `allowed (${name}): ${problem}`))
      passed += problems.length
    } else failures.push(...problems)
  }
  return { passed, failures, notes }
}
