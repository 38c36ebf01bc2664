import type { AdapterShape } from '../src/learn/model/adapter.ts'
import { placeAdapter } from '../src/learn/model/engine/adapted.ts'
import { checkTensors, loadFrozen } from '../src/learn/model/engine/frozen.ts'
import { Heap } from '../src/learn/model/engine/heap.ts'
import { fromTensors, toTensors } from '../src/learn/model/engine/parameters.ts'
import { makePlan } from '../src/learn/model/engine/plan.ts'
import { Threads } from '../src/learn/model/engine/threads.ts'
import { Trainer } from '../src/learn/model/engine/trainer.ts'
import { instantiate } from '../src/learn/model/engine/webassembly.ts'
import { loadKernel } from '../src/learn/model/kernel-file.ts'
import type { TrainingRow } from '../src/learn/model/model.ts'
import { openWeights } from '../src/learn/model/pretrained/open-weights.ts'
import { readPretrained } from '../src/learn/model/pretrained/source.ts'

/** The engine's trainer over a pretrained model with an adapter, on this thread. */
export async function openWithAdapter(
  folder: string,
  options: {
    readonly adapter: AdapterShape
    readonly keptBudget: number
    /** The number at a place of a factor. */
    readonly factor: (name: string, at: number) => number
  },
) {
  const { adapter, keptBudget, factor } = options
  const { module } = await loadKernel('relaxed-fma')
  const { shape } = await readPretrained(folder)
  const heap = new Heap()
  const kernels = instantiate(module, heap.memory)
  using file = openWeights(folder)
  const type = checkTensors(file, shape)
  const plan = makePlan(heap, kernels, { shape, threads: 1, cacheBytes: 0, type })
  loadFrozen(heap, file, { plan, kernels })
  const threads = new Threads(heap, kernels, { count: 1, file: new URL(import.meta.url), module })
  const trainer = new Trainer({ heap, plan, kernels, threads, keptBudget })
  const arrays = placeAdapter(heap, plan, adapter)
  const array = (address: number) => heap.f32.subarray(address / 4, address / 4 + arrays.count)
  const tensors = arrays.places.map(({ name, shape: sizes }) => {
    const length = sizes.reduce((product, side) => product * side, 1)
    return { name, shape: sizes, data: Float32Array.from({ length }, (_, at) => factor(name, at)) }
  })
  fromTensors(array(arrays.values), arrays.places, tensors)
  trainer.train(arrays)
  return {
    /** The loss whose slopes by log-probabilities and entropies are given, and its gradients by name. */
    gradient(
      rows: readonly TrainingRow[],
      slopes: (row: number, at: number) => readonly [number, number],
    ) {
      const wanted = rows.flatMap(({ mask }, row) =>
        [...mask.keys()].filter(at => mask[at] === 1).map(at => slopes(row, at)),
      )
      const { logprobs, entropies, computed } = trainer.forward(rows, { keep: true })
      trainer.backward({
        logprobs: Float32Array.from(wanted, ([slope]) => slope),
        entropies: Float32Array.from(wanted, ([, slope]) => slope),
      })
      const loss = wanted.reduce(
        (sum, [slope, bend], index) => sum + slope * logprobs[index]! + bend * entropies[index]!,
        0,
      )
      const found = toTensors(array(arrays.gradient), arrays.places)
      const gradients = new Map(found.map(({ name, data }) => [name, data]))
      return { loss, gradients, computed }
    },
    [Symbol.dispose]: () => threads.stop(),
  }
}
