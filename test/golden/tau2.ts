import { existsSync } from 'node:fs'
import type { GoldenOptions, GoldenResult, GoldenSuite } from './suite.ts'
import { checkConversation } from './tau2/conversations.ts'
import { checkEvaluation } from './tau2/evaluations.ts'
import { checkMetrics, checkValue } from './tau2/plain.ts'
import { checkReplay } from './tau2/replays.ts'
import { type Problem, type Tau2Row, Tau2Source } from './tau2/source.ts'
import { checkKnowledge, checkPrompt, checkSchema, checkStatic } from './tau2/texts.ts'

/** `text` is the row as it stands in the file, where 2.0 is not yet 2. */
type Check = (row: Tau2Row, text: string) => Promise<Problem> | Problem

/** tau2-bench: values, schemas, prompts, tools, rewards, conversations, metrics, documents. */
export const tau2Suite: GoldenSuite = {
  name: 'tau2',
  matches: path => /(^|\/)tau2\//.test(path),
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

function checkFor(file: string, { tau2Bench, tauBench }: GoldenOptions): Check | string {
  if (file === 'values') return checkValue
  if (file === 'metrics') return checkMetrics
  if (tau2Bench === undefined) return 'needs a checkout, given by --tau2-bench'
  if (!existsSync(tau2Bench)) throw new Error(`No tau2-bench checkout in ${tau2Bench}.`)
  const source = Tau2Source.of(tau2Bench, tauBench)
  if (file === 'static') return row => checkStatic(row, source)
  if (file === 'schemas') return row => checkSchema(row, source)
  if (file === 'prompts') return row => checkPrompt(row, source)
  if (file === 'knowledge') return row => checkKnowledge(row, source)
  if (file === 'orchestrator') return (row, text) => checkConversation(row, text, source)
  const [kind, domain = ''] = file.split('-')
  const missing = source.lacks(domain)
  if (missing !== undefined) return missing
  if (kind === 'replay' || kind === 'fuzz') return row => checkReplay(row, domain, source)
  if (kind === 'eval') return row => checkEvaluation(row, domain, source)
  return `no check reads ${file}`
}

async function checkRows(rows: readonly string[], check: Check): Promise<GoldenResult> {
  let passed = 0
  const failures: string[] = []
  const notes: string[] = []
  for (const [index, text] of rows.entries()) {
    const problem = await check(JSON.parse(text) as Tau2Row, text)
    if (problem === undefined) passed++
    else if (problem.startsWith('skipped')) notes.push(`row ${index}: ${problem}`)
    else failures.push(`row ${index}: ${problem}`)
  }
  return { passed, failures, notes }
}
