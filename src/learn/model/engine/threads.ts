import { Worker } from 'node:worker_threads'
import { BELL, FAULT, JOB_LIMIT, JOB_LIST, QUIT } from '../kernels/layout.ts'
import type { Heap } from './heap.ts'
import type { CompiledKernels, Kernels, SharedMemory } from './webassembly.ts'

/** What a helping thread is started with. */
export interface ThreadStart {
  readonly kind: 'thread'
  readonly module: CompiledKernels
  readonly memory: SharedMemory
  readonly index: number
}

/** The threads that compute: this one and its helpers, over one list of jobs. */
export class Threads {
  readonly #heap: Heap
  readonly #kernels: Kernels
  readonly #helpers: Worker[]
  #count: number

  constructor(heap: Heap, kernels: Kernels, start: HelperStart) {
    this.#heap = heap
    this.#kernels = kernels
    const { count, file, module } = start
    this.#count = count
    const { memory } = heap
    this.#helpers = Array.from({ length: count - 1 }, (_, index) => {
      const workerData: ThreadStart = { kind: 'thread', module, memory, index: index + 1 }
      const helper = new Worker(file, { workerData, execArgv: [] })
      helper.unref()
      return helper
    })
  }

  /** How many threads work, this one included. */
  get count(): number {
    return this.#count
  }

  /** Lets so many threads work from the next jobs on, at most all of them; the others sleep. */
  use(count: number): void {
    this.#count = Math.min(count, this.#helpers.length + 1)
  }

  /** Runs the jobs at these addresses, in any order and at the same time. */
  run(jobs: readonly number[]): void {
    for (let first = 0; first < jobs.length; first += JOB_LIMIT) {
      const some = jobs.slice(first, first + JOB_LIMIT)
      this.#heap.i32.set(some, JOB_LIST / 4)
      if (this.#kernels.run(some.length, this.#count) === 0) {
        throw new Error('A computing thread failed; the model has to be opened again.')
      }
    }
  }

  /** Ends the helpers after their current jobs. */
  stop(): void {
    Atomics.store(this.#heap.i32, QUIT / 4, 1)
    Atomics.add(this.#heap.i32, BELL / 4, 1)
    Atomics.notify(this.#heap.i32, BELL / 4)
  }
}

interface HelperStart {
  /** Threads in all. */
  readonly count: number
  /** The file that helpers run. */
  readonly file: URL
  readonly module: CompiledKernels
}

/** The main loop of a helper: works until told to end, and reports a failure to the others. */
export function serve(kernels: Kernels, { index, memory }: ThreadStart): void {
  try {
    kernels.configure(index)
    kernels.serve()
  } catch (cause) {
    const words = new Int32Array(memory.buffer)
    Atomics.store(words, FAULT / 4, 1)
    throw cause
  }
}
