// A pretrained model with an adapter beside transformers and PEFT: the same log-probabilities from every export, and
// the same gradients. `node --import tsx real-model.ts PYTHON [DIR] [--vllm PYTHON] [--llama-cpp DIR]`; without DIR
// with small models of every family, with the others the exports are opened by them too.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync } from 'node:fs'
import { cp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { writeWhole } from '../../../src/base/core/files/whole-file.ts'
import { adapterMaps } from '../../../src/learn/model/adapter.ts'
import { openExported } from '../../../src/learn/model/exported/open-exported.ts'
import { type FolderType, writeFolder } from '../../../src/learn/model/exported/write-folder.ts'
import { type GgufType, ggufOf } from '../../../src/learn/model/gguf/write-gguf.ts'
import { openModel } from '../../../src/learn/model/model.ts'
import { byteTokenizer } from '../../byte-tokenizer.ts'
import { openWithAdapter } from '../../tiny-adapter.ts'

const { positionals, values: others } = parseArgs({
  allowPositionals: true,
  options: { vllm: { type: 'string' }, 'llama-cpp': { type: 'string' } },
})
const [python = 'python3', real] = positionals
const fixtures = fileURLToPath(new URL('../../fixtures/pretrained/', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'espalier-real-model-'))
const adapter = { rank: 4, alpha: 8, targets: adapterMaps }
const ids = Int32Array.from({ length: 60 }, (_, at) => 3 + ((at * 31 + at * at) % 90))

/** Numbers of factors, small if a model is large. */
function factorNumber(name: string, at: number): number {
  const shift = Buffer.from(name).reduce((sum, byte) => sum + byte, 0) % 17
  return (real === undefined ? 0.2 : 0.01) * Math.sin(at * 0.7 + shift)
}

interface Answer {
  readonly name: string
  readonly failed?: string
  readonly logprobs?: readonly number[]
  readonly gradients?: Readonly<Record<string, readonly [number, number]>>
}

/** How far log-probabilities may be from ours: those of rounded weights differ by their rounding. */
const bounds: Readonly<Record<string, number>> = { f16: 0.05, q8_0: 0.5 }

/** llama.cpp rounds inside too: to half floats in tables, to eight bits beside weights of eight. */
const llamaCppBounds: typeof bounds = { f32: 2e-3, f16: 0.05, q8_0: 1 }

function tell(isGood: boolean, text: string): void {
  console.log(`${isGood ? 'ok  ' : 'FAIL'} ${text}`)
}

async function check(base: string, name: string): Promise<void> {
  const ours = await computeOurs(base)
  const exports = await exportAll(ours.folder, join(scratch, name))
  const spec = { base, adapter: ours.folder, ids: [...ids], exports }
  const input = JSON.stringify(spec)
  for (const [program, ...words] of openers) {
    for (const answer of askOpener(program, words, input)) compare(name, answer, ours)
  }
}

const folder = 'test/python/trainers'

/** The programs that open what was exported, each with its words. */
const openers: readonly (readonly [string, ...string[]])[] = [
  [python, `${folder}/real_model.py`],
  ...(others.vllm ? [[others.vllm, `${folder}/real_model_vllm.py`] as const] : []),
  ...(others['llama-cpp']
    ? [[process.execPath, `${folder}/real-model-llama-cpp.mjs`, others['llama-cpp']] as const]
    : []),
]

/** What a program says of the exports: its last line. */
function askOpener(program: string, words: readonly string[], input: string): readonly Answer[] {
  const run = spawnSync(program, words, { input, encoding: 'utf8', maxBuffer: 2 ** 28 })
  if (run.status !== 0) throw new Error(run.error?.message ?? run.stderr.slice(-500))
  return JSON.parse(run.stdout.trim().split('\n').at(-1)!) as readonly Answer[]
}

type Ours = Awaited<ReturnType<typeof computeOurs>>

/** Our log-probabilities and gradients, and the adapter's folder. */
async function computeOurs(base: string) {
  using opened = await openWithAdapter(base, { adapter, keptBudget: 2 ** 30, factor: factorNumber })
  const row = { ids, mask: Uint8Array.from(ids, (_, at) => Number(at > 0)), temperature: 1 }
  const { gradients } = opened.gradient([row], (_, at) => [Math.cos(at - 1), 0])
  await using model = await openModel({ folder: base }, { threads: 1 })
  await model.adapt(adapter)
  const { tensors, version } = await model.weights()
  const drawn = tensors.map(({ name, shape, data }) => {
    return { name, shape, data: data.map((_, at) => factorNumber(name, at)) }
  })
  await model.take({ tensors: drawn, version })
  const folder = `${mkdtempSync(join(scratch, 'adapter-'))}`
  await model.save(folder)
  const { signal } = new AbortController()
  const { logprobs } = await model.score(ids, 1, { temperature: 1 }, { signal })
  return { folder, logprobs, gradients }
}

/** Every export that this family has. */
async function exportAll(adapterFolder: string, out: string) {
  const exports: Record<string, string> = {}
  for (const type of ['f32', 'f16'] satisfies readonly FolderType[]) {
    using model = await openExported(adapterFolder)
    exports[`safetensors ${type}`] = `${out}-${type}`
    await writeFolder(`${out}-${type}`, model, type)
  }
  // transformers reads no factors of positions, biases or head sizes from other GGUF files.
  if (!['model', 'qwen2'].includes(basename(out))) return exports
  for (const type of ['f32', 'f16', 'q8_0'] satisfies readonly GgufType[]) {
    using model = await openExported(adapterFolder)
    exports[`gguf ${type}`] = `${out}-${type}.gguf`
    await writeWhole(`${out}-${type}.gguf`, ggufOf(model, type))
  }
  return exports
}

function compare(family: string, { name, failed, logprobs, gradients }: Answer, ours: Ours): void {
  if (failed !== undefined || !logprobs) {
    tell(false, `${family}, ${name}: ${failed}`)
    return
  }
  const far = Math.max(...logprobs.map((each, at) => Math.abs(each - ours.logprobs[at]!)))
  const allowed = name.endsWith('llama.cpp') ? llamaCppBounds : bounds
  const bound = allowed[name.split(' ')[1] ?? ''] ?? 1e-4
  tell(far <= bound, `${family}, ${name}: log-probabilities ${far.toExponential(1)} apart`)
  if (!gradients) return
  const apart = Object.entries(gradients).map(([factor, [norm, along]]) => {
    const found = ours.gradients.get(factor)!
    const length = Math.sqrt(found.reduce((sum, value) => sum + value * value, 0))
    const projection = found.reduce((sum, value, at) => sum + value * Math.cos(at), 0)
    return Math.max(Math.abs(length - norm), Math.abs(projection - along)) / norm
  })
  const worst = Math.max(...apart)
  tell(
    worst <= 1e-4,
    `${family}, ${name}: gradients of ${apart.length} factors ${worst.toExponential(1)} apart`,
  )
}

/** A small model with a tokenizer, without which no GGUF file is written. */
async function withTokenizer(family: string): Promise<string> {
  const folder = join(scratch, family)
  await cp(join(fixtures, family), folder, { recursive: true })
  for (const [name, text] of Object.entries(byteTokenizer))
    await writeFile(join(folder, name), text)
  return folder
}

try {
  if (real !== undefined) await check(real, 'model')
  else {
    for (const family of readdirSync(fixtures).filter(name => !name.includes('.'))) {
      await check(await withTokenizer(family), family)
    }
  }
  console.log('all compared')
} finally {
  await rm(scratch, { recursive: true, force: true })
}
