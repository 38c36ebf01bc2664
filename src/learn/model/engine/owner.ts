import { openWeights } from '../pretrained/open-weights.ts'
import type {
  AdapterOrder,
  FromOwner,
  OwnerStart,
  RowGradients,
  RowOrder,
  ToOwner,
} from '../protocol.ts'
import { placeAdapter } from './adapted.ts'
import { checkTensors, loadFrozen } from './frozen.ts'
import { Heap } from './heap.ts'
import { frozenCacheBytes } from './memory.ts'
import { fromTensors, initialise, toTensors } from './parameters.ts'
import { makePlan, type Plan, type TrainedArrays, takeWhole } from './plan.ts'
import { Sampler } from './sampler.ts'
import { Threads } from './threads.ts'
import { Trainer } from './trainer.ts'
import { instantiate, type Kernels } from './webassembly.ts'

/** Bytes of activations that a gradient may keep in memory: of a model trained whole, and of a pretrained one. */
const keptBudgets = { whole: 256 * 2 ** 20, frozen: 1024 * 2 ** 20 } as const

/** Bytes of the key-value cache, reserved but not touched before they are needed. */
const cacheBytes = 256 * 2 ** 20

/** How the owner is connected. */
export interface OwnerPort {
  /** The file that helping threads run. */
  readonly file: URL
  readonly send: (news: readonly FromOwner[]) => void
  readonly close: () => void
}

type Message<K extends ToOwner['kind']> = Extract<ToOwner, { kind: K }>

/** Messages that are handled one at a time, in order. */
type Exclusive = Exclude<ToOwner, { kind: 'sample' | 'abort' | 'backward' }>

/**
 * Owns a model: takes messages, samples one step at a time, and handles everything else in between.
 * Messages that change the weights wait until no sample is under way, and new samples wait for them.
 */
export class Owner {
  readonly #port: OwnerPort
  readonly #heap = new Heap()
  readonly #plan: Plan
  readonly #threads: Threads
  readonly #sampler: Sampler
  readonly #trainer: Trainer
  readonly #queue: Exclusive[] = []
  #news: FromOwner[] = []
  /** The gradient that waits for the main thread's loss. */
  #awaited: number | undefined
  #version = 0
  #isScheduled = false

  constructor(start: OwnerStart, port: OwnerPort) {
    this.#port = port
    const { module, shape, weights } = start
    const kernels = instantiate(module, this.#heap.memory)
    this.#plan = this.#openPlan(start, kernels)
    this.#threads = new Threads(this.#heap, kernels, {
      count: start.threads,
      file: port.file,
      module,
    })
    const parts = { heap: this.#heap, plan: this.#plan, threads: this.#threads, kernels }
    const tell = (news: FromOwner) => {
      this.#news.push(news)
    }
    this.#sampler = new Sampler({ ...parts, tell, version: () => this.#version })
    const keptBudget = keptBudgets[this.#plan.isFrozen ? 'frozen' : 'whole']
    this.#trainer = new Trainer({ ...parts, keptBudget })
    if (weights.kind !== 'pretrained') {
      const arrays = takeWhole(this.#heap, shape)
      this.#trainer.train(arrays)
      if (weights.kind === 'seed') initialise(this.#valuesOf(arrays), arrays.places, weights.seed)
      else fromTensors(this.#valuesOf(arrays), arrays.places, weights.tensors)
      this.#trainer.pack()
    }
    this.#news.push({ kind: 'ready' })
    this.#flush()
  }

  /** Takes memory for a model; weights that stay are read at once. */
  #openPlan({ shape, threads, weights }: OwnerStart, kernels: Kernels): Plan {
    const heap = this.#heap
    if (weights.kind !== 'pretrained') {
      return makePlan(heap, kernels, { shape, threads, cacheBytes, type: 'f32' })
    }
    using file = openWeights(weights.path)
    const type = checkTensors(file, shape)
    const plan = makePlan(heap, kernels, { shape, threads, cacheBytes: frozenCacheBytes, type })
    loadFrozen(heap, file, { plan, kernels })
    return plan
  }

  /** Takes messages from the main thread. */
  receive(messages: readonly ToOwner[]): void {
    for (const message of messages) {
      if (message.kind === 'sample') this.#sampler.add(message.id, message.order)
      else if (message.kind === 'abort') this.#sampler.abort(message.id)
      else if (message.kind === 'backward') this.#backward(message)
      else this.#queue.push(message)
    }
    this.#flush()
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#turn()
    })
  }

  /** One turn: the messages that are due, then a step of sampling. */
  #turn(): void {
    while (this.#isDue(this.#queue[0])) this.#perform(this.#queue.shift()!)
    const admit = !this.#wantsQuiet(this.#queue[0])
    if (admit ? this.#sampler.hasWork : this.#sampler.isRunning) this.#sampler.step({ admit })
    this.#flush()
    const samples = admit ? this.#sampler.hasWork : this.#sampler.isRunning
    if (samples || this.#isDue(this.#queue[0])) this.#schedule()
  }

  #isDue(message: Exclusive | undefined): message is Exclusive {
    if (!message || this.#awaited !== undefined) return false
    return !(this.#sampler.isRunning && changesWeights(message))
  }

  #wantsQuiet(message: Exclusive | undefined): boolean {
    return message !== undefined && changesWeights(message)
  }

  #perform(message: Exclusive): void {
    try {
      this.#news.push(...this.#answer(message))
    } catch (cause) {
      this.#fail(message.id, cause)
    }
  }

  #fail(id: number, cause: unknown): void {
    const message = cause instanceof Error ? cause.message : String(cause)
    this.#news.push({ kind: 'failed', id, message })
  }

  #answer(message: Exclusive): FromOwner[] {
    const { id } = message
    switch (message.kind) {
      case 'score':
        return this.#score(message)
      case 'gradient':
        return this.#forward(message)
      case 'update':
        return [this.#update(message)]
      case 'export':
        return [this.#export(message)]
      case 'import':
        return [this.#import(message)]
      case 'adapt':
        this.#adapt(message.adapter)
        return [this.#done(id)]
      case 'export-optimizer':
        return [{ kind: 'optimizer', id, state: this.#trainer.exportState(this.#version) }]
      case 'import-optimizer':
        this.#trainer.importState(message.state)
        this.#version = message.state.version
        return [this.#done(id)]
      case 'use-threads':
        this.#threads.use(message.count)
        return [this.#done(id)]
      case 'close':
        this.#threads.stop()
        this.#news.push(this.#done(id))
        this.#flush()
        this.#port.close()
        return []
      default:
        return message satisfies never
    }
  }

  /** Scores asked for one after the other go through the model together. */
  #score(first: Message<'score'>): FromOwner[] {
    const messages = [first]
    while (this.#queue[0]?.kind === 'score') messages.push(this.#queue.shift() as typeof first)
    const rows = messages.flatMap(message => message.rows)
    const { logprobs, entropies, computed } = this.#trainer.forward(rows, { keep: false })
    let start = 0
    return messages.map(({ id, rows }) => {
      const end = start + countMasked(rows)
      const numbers = {
        logprobs: logprobs.slice(start, end),
        entropies: entropies.slice(start, end),
        computed,
      }
      start = end
      return { kind: 'numbers', id, numbers }
    })
  }

  #forward({ id, rows }: Message<'gradient'>): FromOwner[] {
    const numbers = this.#trainer.forward(rows, { keep: true })
    this.#awaited = id
    return [{ kind: 'numbers', id, numbers }]
  }

  #backward({ id, gradients }: { id: number; gradients: RowGradients | undefined }): void {
    this.#awaited = undefined
    try {
      if (gradients) this.#trainer.backward(gradients)
      this.#news.push(this.#done(id))
    } catch (cause) {
      this.#fail(id, cause)
    }
  }

  #update({ id, order }: Message<'update'>): FromOwner {
    const gradientNorm = this.#trainer.update(order)
    this.#version++
    this.#sampler.forget()
    return { kind: 'updated', id, gradientNorm, version: this.#version }
  }

  #export({ id }: Message<'export'>): FromOwner {
    const { trained } = this.#trainer
    const tensors = trained ? toTensors(this.#valuesOf(trained), trained.places) : []
    return { kind: 'tensors', id, tensors, version: this.#version }
  }

  #import({ id, tensors, version }: Message<'import'>): FromOwner {
    const { trained } = this.#trainer
    if (!trained) throw new Error('A pretrained model takes an adapter, and it has none yet.')
    fromTensors(this.#valuesOf(trained), trained.places, tensors)
    this.#trainer.pack()
    this.#moveTo(version ?? this.#version + 1)
    return this.#done(id)
  }

  /** Gives a model whose weights stay an adapter; a fresh one changes nothing yet. */
  #adapt({ shape, factors }: AdapterOrder): void {
    const arrays = placeAdapter(this.#heap, this.#plan, shape)
    const values = this.#valuesOf(arrays)
    if ('seed' in factors) initialise(values, arrays.places, factors.seed)
    else fromTensors(values, arrays.places, factors.tensors)
    this.#trainer.train(arrays)
    if ('tensors' in factors) this.#moveTo(this.#version)
  }

  #moveTo(version: number): void {
    this.#version = version
    this.#sampler.forget()
  }

  #done(id: number): FromOwner {
    return { kind: 'done', id, version: this.#version }
  }

  #valuesOf({ values, count }: TrainedArrays): Float32Array {
    return this.#heap.f32.subarray(values / 4, values / 4 + count)
  }

  #flush(): void {
    if (this.#news.length === 0) return
    const news = this.#news
    this.#news = []
    this.#port.send(news)
  }
}

function countMasked(rows: readonly RowOrder[]): number {
  return rows.reduce((sum, { mask }) => mask.reduce((some, wanted) => some + wanted, sum), 0)
}

/** Whether a message changes the weights; keys and values of samples under way would then be wrong. */
function changesWeights({ kind }: Exclusive): boolean {
  return exclusive.has(kind)
}

const exclusive: ReadonlySet<Exclusive['kind']> = new Set([
  'update',
  'import',
  'adapt',
  'import-optimizer',
  'close',
])
