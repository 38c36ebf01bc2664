import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { loadKernel } from '../kernel-file.ts'
import { fitContext } from './fit.ts'
import { readPretrained } from './source.ts'

const folder = fileURLToPath(new URL('../../../../test/fixtures/pretrained/qwen3', import.meta.url))

/** Something of the size of a model of 0.6 billion weights. */
async function makeWanted(layers: number) {
  const { module } = await loadKernel('plain')
  const { shape } = await readPretrained(folder)
  const family = {
    ...shape.family!,
    keyHeads: 8,
    headSize: 128,
    windows: new Array(layers).fill(0),
  }
  const frequencies = new Array(64).fill(1)
  const sizes = { vocabulary: 151_936, width: 1024, heads: 16, hidden: 3072, context: 8192, layers }
  return {
    module,
    shape: { ...sizes, family: { ...family, isTied: true, rope: { frequencies, factor: 1 } } },
    type: 'bf16',
    threads: 2,
  } as const
}

it('tells memory before anything is read, and takes the longest context that fits', async () => {
  const wanted = await makeWanted(28)
  const within = (available: number) =>
    fitContext(wanted, { source: 'x', isFixed: false, available })
  const { memory, shape } = within(2 ** 34)
  expect(memory.weights / 2 ** 20).toBeCloseTo(1137, 0)
  expect(shape.context).toBe(8192)
  expect(memory.total).toBeLessThan(3.6 * 2 ** 30)
  const less = within(3 * 2 ** 30)
  expect(less.shape.context).toBeLessThan(8192)
  expect(less.memory.total).toBeLessThan(2.5 * 2 ** 30)
})

it('refuses what does not fit, and says what would', async () => {
  const wanted = await makeWanted(28)
  const within = (available: number) =>
    fitContext(wanted, { source: 'x', isFixed: true, available })
  expect(() => within(3 * 2 ** 30)).toThrow(/keys and values .* A context of \d+ tokens would fit/)
  expect(() => within(2 ** 30)).toThrow('Fewer threads want less')
  const large = await makeWanted(200)
  expect(() => fitContext({ ...large, threads: 1 }, { source: 'x', isFixed: false })).toThrow(
    'Take a smaller model.',
  )
})
