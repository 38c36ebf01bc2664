// npm run trainers: ours beside real trainers, gradient by gradient, on a tiny model.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { lossNames } from '../src/math/registry.ts'
import { floatDifference } from '../test/gradient-bound.ts'
import { checkOpenEnv } from '../test/python/openenv/check.ts'

const help = `npm run trainers -- [--python PATH] [--slime DIR] [--rllm DIR] [--openenv PATH] [--only NAMES] [--json]

Drives each trainer's own loss on the rows that Espalier ships to it (chains, trees, steps,
condensed contexts; ratios away from 1) and compares the gradient of a tiny model with ours.
What a trainer cannot do exactly is refused by the export, and the table says so.

  --python PATH   a Python that has them (default: python3); TRL, verl and SkyRL come from PyPI:
                    python3 -m venv trainers && trainers/bin/pip install torch==2.11.0 trl==1.16.0 \\
                      verl==0.9.1 'skyrl[tinker,jax]==0.3.0' 'transformers<=5.8.0' cachetools jaxtyping loguru \\
                      func_timeout skyrl-gym==0.4.0 tensordict polars s3fs torchdata msgspec omegaconf hydra-core
  --slime DIR     a checkout of slime
  --rllm DIR      a checkout of rLLM
  --openenv PATH  a Python that has OpenEnv (pip install openenv==0.10.0): its servers played by ours,
                  its clients playing ours
  --only NAMES    embedded, trl, verl, slime, skyrl, rllm, tinker, gpu, openenv, sdk (the official
                    Tinker SDK drives our test server), skyrl-server (we drive SkyRL's own), by commas
  --json          one JSON object per comparison`

/** One comparison, as check.py prints it. */
interface Comparison {
  readonly trainer: string
  readonly run?: string
  readonly loss?: string
  /** The largest difference of a slope, as a share of the largest slope. */
  readonly apart?: number
  readonly said?: string
  /** A promise of our own GPU server that holds. */
  readonly held?: string
  readonly refused?: string
  readonly absent?: string
  readonly failed?: string
}

/** Trainers compute in float32 between the rows and the loss. */
const tolerance = 5e-6

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    slime: { type: 'string' },
    rllm: { type: 'string' },
    openenv: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(help)
  process.exit(0)
}
const only = values.only?.split(',')
/** Checks that need none of the other trainers. */
const ownChecks = ['embedded', 'gpu', 'openenv', 'sdk', 'skyrl-server']
const found: Comparison[] = []

function tell(comparison: Comparison): void {
  found.push(comparison)
  if (values.json) console.log(JSON.stringify(comparison))
  else console.log(lineOf(comparison))
}

function lineOf({ trainer, run = '', loss = '', ...rest }: Comparison): string {
  const head = `${trainer.padEnd(9)} ${run.padEnd(10)} ${loss.padEnd(6)}`
  if (rest.apart !== undefined) {
    const verdict = rest.apart <= tolerance ? 'same' : 'DIFFERS'
    return `${head} ${verdict.padEnd(8)} ${rest.apart.toExponential(1)}  ${rest.said ?? ''}`
  }
  if (rest.held !== undefined) return `${head} holds    ${rest.held}`
  if (rest.refused !== undefined) return `${head} refused  ${rest.refused.split(': ')[1] ?? ''}`
  if (rest.absent !== undefined) return `${head} not run  ${rest.absent}`
  return `${head} FAILED   ${rest.failed}`
}

/** The embedded trainer goes over each token once; full paths are the measure. */
async function compareEmbedded(): Promise<void> {
  for (const loss of lossNames) {
    const { largest, trees } = await floatDifference(loss, 24)
    const said = `float32, rows once against full paths, ${trees} trees`
    tell({ trainer: 'embedded', run: 'trees', loss, apart: largest, said })
  }
}

function comparePython(): void {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-trainers-'))
  mkdirSync(folder, { recursive: true })
  const scores = join(folder, 'scores.json')
  runNode(folder)
  runPython([folder, '--score'])
  runNode(folder, scores)
  const sources = [
    ...(values.slime ? ['--slime', values.slime] : []),
    ...(values.rllm ? ['--rllm', values.rllm] : []),
  ]
  const names = only?.filter(name => !ownChecks.includes(name))
  const output = runPython([folder, ...sources, ...(names ? ['--only', names.join(',')] : [])])
  writeFileSync(join(folder, 'compared.jsonl'), output)
  for (const line of output.split('\n').filter(text => text.startsWith('{'))) {
    // Python writes NaN, which JSON does not have.
    tell(JSON.parse(line.replace(': NaN', ': 1e9')) as Comparison)
  }
}

function runNode(...words: readonly string[]): void {
  const script = ['--import', 'tsx', 'test/python/trainers/runs.ts', ...words]
  const { status, stderr } = spawnSync(process.execPath, script, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`runs.ts failed: ${stderr.slice(-2000)}`)
}

function runPython(words: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(
    values.python,
    ['test/python/trainers/check.py', ...words],
    { encoding: 'utf8', maxBuffer: 2 ** 26 },
  )
  if (error || status !== 0) {
    console.error(`${values.python} check.py failed: ${error?.message ?? stderr.slice(-2000)}`)
    console.error('--python names a Python with the trainers; --help says how to make one.')
    process.exit(1)
  }
  return stdout
}

/** Runs a check that prints a line per promise, `ok   …` or `FAIL …`, and at last `all …`. */
function checkPromises(trainer: string, program: string, words: readonly string[]): void {
  const { stdout, stderr, error } = spawnSync(program, words, { encoding: 'utf8' })
  const lines = (stdout ?? '').split('\n')
  for (const line of lines) {
    if (line.startsWith('ok   ')) tell({ trainer, held: line.slice(5) })
    if (line.startsWith('FAIL ')) tell({ trainer, failed: line.slice(5) })
  }
  const isWhole = lines.some(line => line.startsWith('all '))
  if (!isWhole && !found.some(each => each.trainer === trainer && each.failed !== undefined)) {
    tell({ trainer, failed: error?.message ?? stderr.slice(-500) })
  }
}

/** The promises of integrations/python/espalier_gpu.py, on a CPU with tiny models. */
function checkGpu(): void {
  checkPromises('gpu', values.python, ['test/python/trainers/gpu_smoke.py'])
}

/** Tinker's API from both sides: the official SDK against our server, our driver against SkyRL's. */
function checkTinker(name: 'sdk' | 'skyrl-server'): void {
  const script = `test/python/trainers/tinker-${name}.ts`
  checkPromises(name, process.execPath, ['--import', 'tsx', script, values.python])
}

/** OpenEnv's own package as server and as client. */
async function compareOpenEnv(): Promise<void> {
  const trainer = 'openenv'
  if (values.openenv === undefined) tell({ trainer, absent: '--openenv names no Python' })
  else for await (const each of checkOpenEnv(values.openenv)) tell({ trainer, ...each })
}

if (!only || only.includes('openenv')) await compareOpenEnv()
if (!only || only.includes('embedded')) await compareEmbedded()
if (!only || only.includes('gpu')) checkGpu()
if (!only || only.includes('sdk')) checkTinker('sdk')
if (!only || only.includes('skyrl-server')) checkTinker('skyrl-server')
if (!only || only.some(name => !ownChecks.includes(name))) comparePython()
const wrong = found.filter(
  ({ apart, failed }) => failed !== undefined || (apart !== undefined && !(apart <= tolerance)),
)
const held = found.filter(each => each.held !== undefined).length
const same = found.filter(({ apart }) => apart !== undefined && apart <= tolerance).length
if (!values.json) {
  const count = (key: 'refused' | 'absent'): number =>
    found.filter(each => each[key] !== undefined).length
  console.log(
    `${same} the same, ${held} promises held, ${count('refused')} refused, ${count('absent')} not run, ${wrong.length} wrong`,
  )
}
process.exit(wrong.length > 0 ? 1 : 0)
