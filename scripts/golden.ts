// Runs golden files under a folder laid out like `golden/`: `npm run golden -- DIR [--only NAME,…] [--templates DIR] [--tau-bench CHECKOUT] [--tau2-bench CHECKOUT] [--smollm2 DIR]`.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { GoldenSuite } from '../test/golden/suite.ts'
import { suites } from '../test/golden/suites.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    templates: { type: 'string' },
    'tau-bench': { type: 'string' },
    'tau2-bench': { type: 'string' },
    smollm2: { type: 'string' },
  },
})
const root = positionals[0]
if (!root || !existsSync(root)) {
  console.error(
    `usage: npm run golden -- DIR: ${root ? `no folder ${root}` : 'name the folder of golden files'}`,
  )
  process.exit(2)
}
const templates = [
  values.templates,
  join(root, '../data/chat-templates'),
  '../shared/data/chat-templates',
].find(folder => folder !== undefined && existsSync(folder))
const wanted = values.only?.split(',')
const beginsSo = (name: string, prefix: string): boolean =>
  name.split('/').some(part => part.startsWith(prefix))
const found = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.jsonl.gz') || name.endsWith('.json'))
  // Read with the rows that they belong to.
  .filter(name => !name.endsWith('processor_config.json'))
  .sort()
const files = found.filter(name => !wanted || wanted.some(prefix => beginsSo(name, prefix)))
const missing = (wanted ?? []).filter(prefix => !files.some(name => beginsSo(name, prefix)))

let passed = 0
let failed = 0
for (const name of files) {
  const suite: GoldenSuite | undefined = suites.find(candidate => candidate.matches(name))
  if (!suite) {
    console.log(`${name} skipped: no suite reads this file`)
    continue
  }
  const bytes = readFileSync(join(root, name))
  const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const result = await suite.run(text, {
    name: relative('.', name),
    templates,
    tauBench: values['tau-bench'],
    tau2Bench: values['tau2-bench'],
    smollm2: values.smollm2,
    root,
  })
  for (const failure of result.failures.slice(0, 10)) console.error(`  ${name}: ${failure}`)
  for (const note of result.notes ?? []) console.error(`  ${name}: ${note}`)
  console.log(`${name} ${result.passed} ${result.passed + result.failures.length}`)
  passed += result.passed
  failed += result.failures.length
}
console.log(`${passed} passed, ${failed} failed`)
for (const prefix of missing) console.error(`no file of ${root} begins with "${prefix}"`)
if (passed + failed === 0) console.error(`no row was compared in ${root}`)
process.exit(failed > 0 || passed === 0 || missing.length > 0 ? 1 : 0)
