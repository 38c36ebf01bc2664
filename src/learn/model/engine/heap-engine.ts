import { openWeights } from '../pretrained/open-weights.ts'
import type { OwnerStart } from '../protocol.ts'
import type { Engine } from './engine.ts'
import { checkTensors, loadFrozen } from './frozen.ts'
import { Heap } from './heap.ts'
import { frozenCacheBytes } from './memory.ts'
import { initialise } from './parameters.ts'
import { makePlan, type Plan, takeWhole } from './plan.ts'
import { HeapStepper } from './step.ts'
import { Threads } from './threads.ts'
import { Trainer } from './trainer.ts'
import { instantiate, type Kernels } from './webassembly.ts'

/** Bytes of activations that a gradient may keep in memory: of a model trained whole, and of a pretrained one. */
const keptBudgets = { whole: 256 * 2 ** 20, frozen: 1024 * 2 ** 20 } as const

/** Bytes of the key-value cache, reserved but not touched before they are needed. */
const cacheBytes = 256 * 2 ** 20

/** Computes on threads of this processor, over one memory; `file` is what helping threads run. */
export function openHeapEngine(start: OwnerStart, file: URL): Engine {
  const { module, shape, weights } = start
  const heap = new Heap()
  const kernels = instantiate(module, heap.memory)
  const plan = openPlan(heap, kernels, start)
  const threads = new Threads(heap, kernels, { count: start.threads, file, module })
  const parts = { heap, plan, threads, kernels }
  const stepper = new HeapStepper(parts)
  const keptBudget = keptBudgets[plan.isFrozen ? 'frozen' : 'whole']
  const learner = new Trainer({ ...parts, keptBudget })
  if (weights.kind !== 'pretrained') {
    const arrays = takeWhole(heap, shape)
    learner.train(arrays)
    if (weights.kind === 'tensors') learner.takeTensors(weights.tensors)
    else {
      const { values, count, places } = arrays
      initialise(heap.f32.subarray(values / 4, values / 4 + count), places, weights.seed)
      learner.pack()
    }
  }
  return {
    device: `the processor, ${start.threads} ${start.threads === 1 ? 'thread' : 'threads'}`,
    stepper,
    learner,
    useThreads: count => threads.use(count),
    close: () => threads.stop(),
  }
}

/** Takes memory for a model; weights that stay are read at once. */
function openPlan(heap: Heap, kernels: Kernels, { shape, threads, weights }: OwnerStart): Plan {
  if (weights.kind !== 'pretrained') {
    return makePlan(heap, kernels, { shape, threads, cacheBytes, type: 'f32' })
  }
  using file = openWeights(weights.path)
  const type = checkTensors(file, shape)
  const plan = makePlan(heap, kernels, { shape, threads, cacheBytes: frozenCacheBytes, type })
  loadFrozen(heap, file, { plan, kernels })
  return plan
}
