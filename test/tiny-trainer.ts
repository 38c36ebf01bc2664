import { random, seedOf } from '../src/base/math/random.ts'
import { Heap } from '../src/learn/model/engine/heap.ts'
import { initialise } from '../src/learn/model/engine/parameters.ts'
import { makePlan, takeWhole } from '../src/learn/model/engine/plan.ts'
import { Threads } from '../src/learn/model/engine/threads.ts'
import { Trainer } from '../src/learn/model/engine/trainer.ts'
import { type CompiledKernels, instantiate } from '../src/learn/model/engine/webassembly.ts'
import { loadKernel } from '../src/learn/model/kernel-file.ts'
import type { ModelShape } from '../src/learn/model/shape.ts'

/** Both kernels: every Node that we support can run them. */
export const tinyKernels = [await loadKernel('plain'), await loadKernel('relaxed-fma')] as const

/** A model small enough to be checked by hand. */
export const tinyShape: ModelShape = {
  vocabulary: 21,
  width: 32,
  layers: 2,
  heads: 2,
  hidden: 40,
  context: 64,
}

/** The engine's trainer on one thread, with its parameters and the gradient it adds up. */
export async function openTrainer(
  module: CompiledKernels,
  keptBudget = 2 ** 24,
  { context } = tinyShape,
) {
  const heap = new Heap()
  const exports = instantiate(module, heap.memory)
  const shape = { ...tinyShape, context }
  const plan = makePlan(heap, exports, { shape, threads: 1, cacheBytes: 0, type: 'f32' })
  const file = new URL(import.meta.url)
  const threads = new Threads(heap, exports, { count: 1, file, module })
  const trainer = new Trainer({ heap, plan, kernels: exports, threads, keptBudget })
  const arrays = takeWhole(heap, shape)
  trainer.train(arrays)
  const array = (address: number) => heap.f32.subarray(address / 4, address / 4 + arrays.count)
  const parameters = array(arrays.values)
  initialise(parameters, arrays.places, 3)
  // Norms away from 1, so that a norm's weight that is forgotten somewhere shows.
  const draw = random(seedOf('norms'))
  for (const place of arrays.places) {
    if (place.kind !== 'norm') continue
    for (let at = 0; at < shape.width; at++) parameters[place.offset + at] = 0.5 + draw()
  }
  trainer.pack()
  return { trainer, parameters, gradient: array(arrays.gradient) }
}
