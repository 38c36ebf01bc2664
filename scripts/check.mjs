// Runs what a change must pass: `quick` (under a minute), `all` (npm test), `soak` (the full counts).
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const mode = process.argv[2] ?? 'quick'
const folder = mkdtempSync(join(tmpdir(), 'espalier-check-'))
let passed = 0
let failed = 0
/** Failures, printed again at the end, where people look first. */
const failures = []

/** Runs a program of node_modules or a script; gives whether it succeeded. */
function run(file, words = [], more = {}) {
  const options = { stdio: 'inherit', env: { ...process.env, ...more } }
  return spawnSync(process.execPath, [file, ...words], options).status === 0
}

function step(name, work) {
  const started = Date.now()
  console.log(`\n== ${name}`)
  const isGood = work()
  if (isGood) passed++
  else {
    failed++
    failures.push(name)
  }
  console.log(
    `== ${name}: ${isGood ? 'ok' : 'FAILED'} (${((Date.now() - started) / 1000).toFixed(1)} s)`,
  )
}

/** Runs vitest on some files and counts its tests. */
function vitest(filters, more) {
  const report = join(folder, 'vitest.json')
  rmSync(report, { force: true })
  const words = [
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...filters,
  ]
  const isGood = run('node_modules/vitest/vitest.mjs', words, more)
  if (existsSync(report)) {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    passed += numPassedTests
    failed += numFailedTests
    failures.push(...testResults.flatMap(failuresOf))
  }
  return isGood
}

/** The failed tests of one file, or the file itself where it could not be run. */
function failuresOf({ name: file, status, message, assertionResults }) {
  const tests = assertionResults
    .filter(test => test.status === 'failed')
    .map(test => `${file} > ${test.fullName}\n${test.failureMessages.join('\n')}`)
  return tests.length > 0 || status !== 'failed' ? tests : [`${file}\n${message}`]
}

function golden() {
  if (!existsSync('../shared/golden')) {
    console.log(
      'SKIPPED: no ../shared/golden beside this checkout; golden answers were not compared.',
    )
    return true
  }
  return run('node_modules/tsx/dist/cli.mjs', ['scripts/golden.ts', '../shared/golden'])
}

step('format and lint', () =>
  run('node_modules/@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '.']),
)
step('rooms', () => run('scripts/check-rooms.mjs'))
const types = project => run('node_modules/typescript/bin/tsc', ['-p', project])
step('types', () => types('tsconfig.json') && types('viewer/tsconfig.json'))
/** Small tests spend most of their time loading modules, so test files share a process, one per core. */
const unit = ['src/', 'viewer/', '--no-isolate', '--maxWorkers=100%']
if (mode === 'quick') step('unit', () => vitest(unit))
else {
  const more = mode === 'soak' ? { ESPALIER_SOAK: '20' } : {}
  step('build', () => run('scripts/build.mjs'))
  step('unit', () => vitest(unit, more))
  step('golden', golden)
  step('end to end, examples and docs', () => vitest(['test/', '--maxWorkers=100%'], more))
}
rmSync(folder, { recursive: true, force: true })
for (const failure of failures) console.log(`\nFAILED ${failure}`)
console.log(`\n${passed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
