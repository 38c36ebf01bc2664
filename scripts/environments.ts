// npm run environments: `espalier check` on every environment that can be named.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import type { CheckResult } from '../src/engine/environments/check.ts'
import { type Started, startServing } from '../test/serving.ts'
import { type Given, type Row, rowsFor } from './environments/rows.ts'

const help = `npm run environments -- [options]

Runs "espalier check" on every environment that can be named, starts the servers that some of them
need, and prints a table. What needs an option that is not given is not run, and the table says so.
Exit 1 where a check fails. It runs what was built: npm run build.

  --python PATH         a Python with reasoning_gym and gymnasium (pip install reasoning_gym 'gymnasium[toy-text]')
  --verifiers PATH      a Python with verifiers 0.4 (pip install verifiers==0.4.0 uv)
  --old-verifiers PATH  a Python with verifiers 0.1 (pip install verifiers==0.1.14 datasets)
  --glossary DIR        environments/glossary of a checkout of verifiers; takes minutes
  --tau-bench DIR       a checkout of tau-bench
  --tau2-bench DIR      a checkout of tau2-bench
  --openenv PATH        a Python with OpenEnv (pip install openenv==0.10.0 fastmcp)
  --games DIR           envs of a checkout of OpenEnv
  --engine NAME         docker or podman, with the images debian:12 and node:22-slim
  --only TEXTS          rows whose names hold one of these texts, by commas
  --json                one JSON object per row`

/** The result of a row. */
interface Outcome {
  readonly name: string
  readonly kind: 'passed' | 'failed' | 'not run'
  readonly detail: string
  readonly seconds: number
}

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    verifiers: { type: 'string' },
    'old-verifiers': { type: 'string' },
    glossary: { type: 'string' },
    'tau-bench': { type: 'string' },
    'tau2-bench': { type: 'string' },
    openenv: { type: 'string' },
    games: { type: 'string' },
    engine: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(help)
  process.exit(0)
}

/** Runs a row; an error becomes its outcome. */
async function run(row: Row, given: Given): Promise<Outcome> {
  const { name } = row
  const missing = row.needs.filter(option => given[option] === undefined)
  if (missing.length > 0) {
    const detail = `${missing.map(option => `--${option}`).join(' and ')} not given`
    return { name, kind: 'not run', detail, seconds: 0 }
  }
  const began = performance.now()
  const ended = (): number => Math.round((performance.now() - began) / 1000)
  try {
    await using started = row.serving ? await startServing(row.serving) : nothing
    const results = await check(row, started.url)
    return { name, ...verdictOf(results), seconds: ended() }
  } catch (cause) {
    return { name, kind: 'failed', detail: String(cause), seconds: ended() }
  }
}

const nothing: Started = { url: '', [Symbol.asyncDispose]: () => Promise.resolve() }

/** What `espalier check` printed, one result per line. */
async function check(row: Row, url: string): Promise<readonly CheckResult[]> {
  const words = ['dist/cli/main.js', 'check', ...row.words(url), '--json']
  const env = { ...process.env, ...row.variables }
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [printed, said] = ['', '']
  child.stdout.on('data', part => (printed += part))
  child.stderr.on('data', part => (said += part))
  await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
  const lines = printed.split('\n').filter(line => line !== '')
  if (lines.length > 0) return lines.map(line => JSON.parse(line) as CheckResult)
  throw new Error(said.trim().slice(-500) || `nothing was printed (exit ${child.exitCode})`)
}

function verdictOf(results: readonly CheckResult[]): Pick<Outcome, 'kind' | 'detail'> {
  const of = (kind: CheckResult['kind']): readonly CheckResult[] =>
    results.filter(result => result.kind === kind)
  const failed = of('failed')
  if (failed.length > 0) {
    const detail = failed.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
    return { kind: 'failed', detail }
  }
  const idle = of('measured').find(({ name }) => name === 'reward of doing nothing')
  const worth = idle ? `, doing nothing earns ${idle.detail}` : ''
  return { kind: 'passed', detail: `${of('passed').length} checks${worth}` }
}

function tableOf(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ name, kind, detail, seconds }) => {
    const cells = [`\`${name.replaceAll('`', '')}\``, kind, detail.replaceAll('|', '\\|')]
    return `| ${[...cells, kind === 'not run' ? '' : seconds].join(' | ')} |`
  })
  return ['| environment | check | found | seconds |', '|---|---|---|---|', ...rows].join('\n')
}

const only = values.only?.split(',')
const rows = rowsFor(values).filter(({ name }) => !only || only.some(text => name.includes(text)))
if (rows.length === 0) {
  console.error(`--only ${values.only}: no row has that in its name. Rows:`)
  for (const { name } of rowsFor(values)) console.error(`  ${name}`)
  process.exit(2)
}
const outcomes: Outcome[] = []
for (const row of rows) {
  const outcome = await run(row, values)
  outcomes.push(outcome)
  const { name, kind, detail, seconds } = outcome
  if (values.json) console.log(JSON.stringify(outcome))
  else console.error(`${kind.padEnd(8)} ${name} (${seconds} s): ${detail}`)
}
const count = (kind: Outcome['kind']): number =>
  outcomes.filter(outcome => outcome.kind === kind).length
if (!values.json) {
  console.log(tableOf(outcomes))
  console.log(`${count('passed')} passed, ${count('failed')} failed, ${count('not run')} not run`)
}
process.exit(count('failed') > 0 ? 1 : 0)
