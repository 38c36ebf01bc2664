import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  bits,
  call,
  likelihood,
  makeRows,
  openTaught,
  prompt,
  request,
  shape,
} from '../../../test/fixtures/small-model.ts'
import { type EmbeddedModel, type EmbeddedSample, openModel, type TrainingRow } from './model.ts'

let model: EmbeddedModel
let folder: string
beforeAll(async () => {
  model = await openTaught(2)
  folder = await mkdtemp(join(tmpdir(), 'model-'))
})
afterAll(async () => {
  await model[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

describe('training', () => {
  it('leaves the same weights, bit for bit, on any number of threads', async () => {
    const weights: Buffer[] = []
    for (const threads of [1, 2, 4]) {
      await using fresh = await openModel({ shape, seed: 2 }, { threads, kernel: 'plain' })
      for (let step = 0; step < 3; step++) {
        await fresh.gradient(makeRows(20), likelihood)
        await fresh.applyGradient({ learningRate: 0.01, clip: 1, weightDecay: 0.1 })
      }
      await fresh.save(join(folder, `threads-${threads}`))
      weights.push(await readFile(join(folder, `threads-${threads}`, 'model.safetensors')))
    }
    expect(weights[1]!.equals(weights[0]!)).toBe(true)
    expect(weights[2]!.equals(weights[0]!)).toBe(true)
  })

  it('gives the same bits on some of its threads, and refuses more than it has', async () => {
    const numbers = async () => model.score(makeRows(1)[0]!.ids, 1, { temperature: 1 }, call)
    const all = await numbers()
    await model.useThreads(1)
    expect(await numbers()).toEqual(all)
    await expect(model.useThreads(3)).rejects.toThrow('can use 1 to 2 threads, not 3')
    await expect(model.useThreads(0)).rejects.toThrow('not 0')
    await model.useThreads(2)
    expect(await numbers()).toEqual(all)
  })

  it('waits for samples under way before the weights change, and holds new ones', async () => {
    await using fresh = await openModel({ shape, seed: 2 }, { threads: 1 })
    await fresh.gradient(makeRows(3), likelihood)
    let update: Promise<unknown> | undefined
    let later: Promise<EmbeddedSample> | undefined
    const onToken = () => {
      update ??= fresh.applyGradient({ learningRate: 0.01, clip: 1 })
      later ??= fresh.sample(request(), call)
    }
    const running = await fresh.sample(request({ maxTokens: 60, onToken }), call)
    expect(running).toMatchObject({ version: 0, ids: { length: 60 } })
    await update
    expect((await later!).version).toBe(1)
    expect(fresh.version()).toBe(1)
  })

  it('survives a loss that throws and one that is not finite', async () => {
    const rows = makeRows(2)
    const boom = () => {
      throw new Error('boom')
    }
    await expect(model.gradient(rows, boom)).rejects.toThrow('boom')
    const nothing = ({ mask }: { mask: Uint8Array }) => ({
      logprobGradient: new Float64Array(mask.length).fill(Number.NaN),
    })
    await expect(model.gradient(rows, nothing)).rejects.toThrow('logprobGradient is NaN')
    expect((await model.sample(request(), call)).ids).toHaveLength(20)
  })
})

describe('checkpoints', () => {
  it('open again with the same weights and the files that came with them', async () => {
    const files = new Map([['tokenizer.json', new TextEncoder().encode('{}')]])
    await using first = await openModel({ shape, seed: 8, files }, { threads: 1 })
    await first.save(join(folder, 'saved'))
    await using second = await openModel({ folder: join(folder, 'saved') }, { threads: 1 })
    expect(second.shape).toEqual(shape)
    expect([...second.files.keys()]).toEqual(['tokenizer.json'])
    expect(bits(await second.sample(request(), call))).toEqual(
      bits(await first.sample(request(), call)),
    )
    expect(await model.load(join(folder, 'saved'))).toEqual({ version: 9 })
    expect((await model.sample(request(), call)).ids).toEqual(
      (await first.sample(request(), call)).ids,
    )
  })

  it('resume training where it was: the same weights as without the break', async () => {
    const step = async (trained: EmbeddedModel) => {
      await trained.gradient(makeRows(5), likelihood)
      await trained.applyGradient({ learningRate: 0.01, clip: 1, warmup: 6 })
    }
    const here = join(folder, 'resumed')
    await using whole = await openModel({ shape, seed: 4 }, { threads: 1 })
    for (let count = 0; count < 2; count++) await step(whole)
    await whole.save(here)
    await whole.saveOptimizer(here)
    await using resumed = await openModel({ folder: here }, { threads: 2 })
    await resumed.loadOptimizer(here)
    expect(resumed.version()).toBe(2)
    for (const each of [whole, resumed]) {
      for (let count = 0; count < 2; count++) await step(each)
    }
    const sample = await whole.sample(request(), call)
    expect(bits(await resumed.sample(request(), call))).toEqual(bits(sample))
  })

  it('refuse what is not an embedded model, saying why', async () => {
    await using first = await openModel({ shape, seed: 8 }, { threads: 1 })
    const here = join(folder, 'broken')
    await first.save(here)
    const config = JSON.parse(await readFile(join(here, 'config.json'), 'utf8'))
    const write = (changes: object) =>
      writeFile(join(here, 'config.json'), JSON.stringify({ ...config, ...changes }))
    await write({ tie_word_embeddings: false })
    await expect(openModel({ folder: here })).rejects.toThrow('has no tensor lm_head.weight')
    await write({ hidden_size: 64 })
    await expect(openModel({ folder: here })).rejects.toThrow('model.embed_tokens.weight')
    await write({ num_attention_heads: 3, num_key_value_heads: 3 })
    await expect(openModel({ folder: here })).rejects.toThrow('multiple of 8')
    await expect(first.load(join(folder, 'nowhere'))).rejects.toThrow('ENOENT')
  })
})

describe('requests', () => {
  it.each([
    [{ prompt: prompt(96) }, "leaves no room in the model's context of 96"],
    [{ prompt: new Int32Array(0) }, '0 tokens do not fit'],
    [{ prompt: Int32Array.of(1, 61) }, 'Token 61 at place 1'],
    [{ maxTokens: 0 }, 'maxTokens must be'],
    [{ temperature: -1 }, 'temperature must be'],
    [{ temperature: Number.NaN }, 'temperature must be'],
    [{ topP: 0 }, 'topP must be'],
    [{ topK: 1.5 }, 'topK must be a whole number'],
    [{ minP: 2 }, 'minP must be'],
    [{ topq: 1 }, 'no "topq". Known: prompt, maxTokens'],
  ])('%o is refused', async (changes, message) => {
    await expect(model.sample(request(changes as object), call)).rejects.toThrow(message)
  })

  it('of rows and scores are refused when they do not fit', async () => {
    const row = { ids: prompt(4), mask: Uint8Array.of(0, 1, 1, 1), temperature: 1 }
    const ask = (changes: Partial<TrainingRow>) =>
      model.gradient([{ ...row, ...changes }], likelihood)
    await expect(ask({ ids: prompt(97) })).rejects.toThrow('context')
    await expect(ask({ mask: Uint8Array.of(0, 1) })).rejects.toThrow('a mask of 2')
    await expect(ask({ mask: Uint8Array.of(1, 1, 1, 1) })).rejects.toThrow('first token')
    await expect(ask({ mask: Uint8Array.of(0, 2, 1, 1) })).rejects.toThrow('only 0 and 1')
    await expect(model.score(prompt(4), 0, { temperature: 1 }, call)).rejects.toThrow('from')
    await expect(model.applyGradient({ learningRate: 1, clip: 0 })).rejects.toThrow('clip')
  })

  it('after the model was closed fail, and closing ends what was running', async () => {
    const fresh = await openModel({ shape, seed: 2 }, { threads: 2 })
    const running = fresh.sample(request({ maxTokens: 80 }), call)
    await fresh[Symbol.asyncDispose]()
    expect((await running).finish).toBe('abort')
    await expect(fresh.sample(request(), call)).rejects.toThrow('closed')
    await fresh[Symbol.asyncDispose]()
  })
})

it('an idle model does not keep its process alive', () => {
  const script = `
    const { openModel } = await import(${JSON.stringify(new URL('model.ts', import.meta.url).href)})
    const model = await openModel(${JSON.stringify({ shape, seed: 1 })}, { threads: 3 })
    const request = { prompt: Int32Array.of(1), maxTokens: 3, temperature: 1, stop: [], seed: 1 }
    const { ids } = await model.sample(request, { signal: AbortSignal.timeout(10_000) })
    console.log(ids.length)`
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { encoding: 'utf8', timeout: 30_000 },
  )
  expect({ stdout, stderr, status }).toEqual({ stdout: '3\n', stderr: '', status: 0 })
})
