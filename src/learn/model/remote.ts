import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { whenAborted } from '../../base/core/call.ts'
import { Line, type Waiting } from '../../base/core/threads/line.ts'
import { type AdapterShape, checkAdapter } from './adapter.ts'
import { readCheckpoint, readOptimizer, writeCheckpoint, writeOptimizer } from './checkpoint.ts'
import { workerFile } from './kernel-file.ts'
import type {
  EmbeddedModel,
  EmbeddedSample,
  EmbeddedSampleRequest,
  LossGradient,
  ModelCall,
  ModelWeights,
  TokenNumbers,
  TrainingRow,
  UpdateOptions,
} from './model.ts'
import { digestOf } from './pretrained/digest.ts'
import { isPeft, readPeft, writePeft } from './pretrained/peft.ts'
import type { AdapterOrder, FromOwner, Kernel, OwnerStart, TokenNews, ToOwner } from './protocol.ts'
import {
  toRowGradients,
  toRowOrder,
  toSampleOrder,
  toScoredRow,
  toTokenNumbers,
  toUpdateOrder,
} from './requests.ts'

/** Starts the thread that owns a model and waits until it is ready. */
export async function startModel(start: OwnerStart, facts: ModelFacts): Promise<EmbeddedModel> {
  // Flags of the main program, such as a loader or --input-type, must not apply to this plain file.
  const line = new OwnerLine(new Worker(workerFile, { workerData: start, execArgv: [] }))
  const device = await line.ready
  return new RemoteModel(line, start, { ...facts, device })
}

interface ModelFacts {
  readonly kernel: Kernel
  readonly files: ReadonlyMap<string, Uint8Array>
  readonly memory?: number | undefined
}

type Answer = Exclude<FromOwner, { kind: 'ready' | 'told' | 'token' | 'failed' }>
/** A message to the owner that has no id yet. */
type Asked = ToOwner extends infer M ? (M extends ToOwner ? Omit<M, 'id'> : never) : never

interface Pending extends Waiting {
  readonly resolve: (answer: Answer) => void
  readonly onToken: ((token: TokenNews) => void) | undefined
}

/** The line to the owner: messages sent in one turn of the event loop travel together. */
class OwnerLine {
  /** Gives what computes. */
  readonly ready: Promise<string>
  readonly #line: Line<ToOwner, FromOwner, Pending>

  constructor(worker: Worker) {
    this.#line = new Line(
      worker,
      {
        take: news => this.#take(news),
        failure: cause => cause ?? new Error('The model was closed.'),
      },
      { together: Number.POSITIVE_INFINITY, later: queueMicrotask },
    )
    const opened = once(worker, 'message').then(([news]) => {
      worker.unref()
      return readyDevice(news as readonly FromOwner[])
    })
    this.ready = opened
  }

  /** Asks and waits for the answer; `onId` gets the id at once, for aborting. */
  ask(message: Asked, options: AskOptions = {}): Promise<Answer> {
    const { onToken, id: earlier } = options
    return new Promise<Answer>((resolve, reject) => {
      const { failure } = this.#line
      if (failure) return reject(failure)
      const id = this.#line.open({ resolve, reject, onToken }, earlier)
      this.send({ ...message, id } as ToOwner)
      // Only now, so that an abort never overtakes what it aborts.
      options.onId?.(id)
    })
  }

  /** Sends without waiting. */
  send(message: ToOwner): void {
    this.#line.send(message)
  }

  /** Aborts every open sample and asks the owner to end. */
  async close(): Promise<void> {
    const { failure, worker } = this.#line
    if (failure) return
    for (const id of this.#line.numbers()) this.send({ kind: 'abort', id })
    const ended = once(worker, 'exit')
    await this.ask({ kind: 'close' }).catch(() => undefined)
    worker.ref()
    await ended
  }

  #take(news: FromOwner): void {
    if (news.kind === 'told') process.emitWarning(news.text, 'EspalierWarning')
    if (news.kind === 'ready' || news.kind === 'told') return
    if (news.kind === 'token') {
      this.#show(news.id, news.token)
      return
    }
    const pending = this.#line.settle(news.id)
    if (news.kind === 'failed') pending?.reject(new Error(news.message))
    else pending?.resolve(news)
  }

  /** Passes a token to the watcher; a watcher that throws ends its sample. */
  #show(id: number, token: TokenNews): void {
    const pending = this.#line.question(id)
    try {
      pending?.onToken?.(token)
    } catch (cause) {
      this.#line.settle(id)
      this.send({ kind: 'abort', id })
      pending?.reject(cause)
    }
  }
}

/** What computes, by the first news of an owner. */
function readyDevice([news]: readonly FromOwner[]): string {
  if (news?.kind === 'ready') return news.device
  throw new Error(`The model began with ${news?.kind} and not by being ready.`)
}

interface AskOptions {
  readonly onToken?: ((token: TokenNews) => void) | undefined
  /** Continues an earlier question under its number. */
  readonly id?: number
  readonly onId?: (id: number) => void
}

/** The main thread's view of a model that its owner thread has. */
class RemoteModel implements EmbeddedModel {
  readonly #line: OwnerLine
  readonly #start: OwnerStart
  readonly kernel: Kernel
  readonly device: string
  readonly files: ReadonlyMap<string, Uint8Array>
  readonly memory: number | undefined
  #version = 0
  #adapter: AdapterShape | undefined

  constructor(line: OwnerLine, start: OwnerStart, facts: ModelFacts & { readonly device: string }) {
    this.#line = line
    this.#start = start
    this.kernel = facts.kernel
    this.device = facts.device
    this.files = facts.files
    this.memory = facts.memory
  }

  get shape() {
    return this.#start.shape
  }

  get threads() {
    return this.#start.threads
  }

  get wanted() {
    return this.#start.device
  }

  get base() {
    const { weights } = this.#start
    return weights.kind === 'pretrained' ? weights.path : undefined
  }

  get adapter() {
    return this.#adapter
  }

  version(): number {
    return this.#version
  }

  async sample(request: EmbeddedSampleRequest, { signal }: ModelCall): Promise<EmbeddedSample> {
    const order = toSampleOrder(request, this.shape)
    const { onToken } = request
    let unwatch = () => {}
    const onId = (id: number) => {
      unwatch = whenAborted(signal, () => this.#line.send({ kind: 'abort', id }))
    }
    try {
      const answer = await this.#line.ask({ kind: 'sample', order }, { onToken, onId })
      return expectKind(answer, 'sampled').sample
    } finally {
      unwatch()
    }
  }

  async score(
    ids: Int32Array,
    from: number,
    { temperature }: { temperature: number },
    { signal }: ModelCall,
  ) {
    signal.throwIfAborted()
    const rows = [toScoredRow(ids, { from, temperature }, this.shape)]
    const answer = await this.#line.ask({ kind: 'score', rows })
    signal.throwIfAborted()
    return expectKind(answer, 'numbers').numbers
  }

  async gradient<G extends LossGradient>(
    rows: readonly TrainingRow[],
    loss: (numbers: TokenNumbers) => G,
  ): Promise<G> {
    const orders = rows.map(row => toRowOrder(row, this.shape))
    let asked = -1
    const onId = (id: number) => {
      asked = id
    }
    const forward = await this.#line.ask({ kind: 'gradient', rows: orders }, { onId })
    const numbers = toTokenNumbers(rows, expectKind(forward, 'numbers').numbers)
    let gradients: ReturnType<typeof toRowGradients> | undefined
    try {
      const result = loss(numbers)
      gradients = toRowGradients(result, numbers.mask)
      return result
    } finally {
      // A loss that throws must not leave the owner waiting for it.
      await this.#line.ask({ kind: 'backward', gradients }, { id: asked })
    }
  }

  async applyGradient(options: UpdateOptions) {
    const answer = await this.#line.ask({ kind: 'update', order: toUpdateOrder(options) })
    const { gradientNorm, version } = expectKind(answer, 'updated')
    this.#version = version
    return { gradientNorm, version }
  }

  async weights(): Promise<ModelWeights> {
    const { tensors, version } = expectKind(await this.#line.ask({ kind: 'export' }), 'tensors')
    return { tensors, version }
  }

  async take({ tensors, version }: ModelWeights): Promise<void> {
    this.#moveTo(await this.#line.ask({ kind: 'import', tensors, version }))
  }

  async useThreads(count: number): Promise<void> {
    if (!Number.isSafeInteger(count) || count < 1 || count > this.threads) {
      throw new RangeError(`This model can use 1 to ${this.threads} threads, not ${count}.`)
    }
    await this.#line.ask({ kind: 'use-threads', count })
  }

  async adapt(shape: AdapterShape, { seed = 0 }: { readonly seed?: number } = {}): Promise<void> {
    await this.#adapt({ shape: checkAdapter(shape), factors: { seed } })
  }

  async #adapt(adapter: AdapterOrder): Promise<void> {
    await this.#line.ask({ kind: 'adapt', adapter })
    this.#adapter = adapter.shape
  }

  async save(folder: string): Promise<void> {
    const { tensors } = await this.weights()
    const { shape, files, base, adapter } = this
    if (base === undefined) return await writeCheckpoint(folder, { shape, tensors, files })
    if (!adapter) throw new Error(`The model in ${base} has no adapter that could be saved.`)
    await writePeft(folder, { shape: adapter, tensors, base, digest: digestOf(base), files })
  }

  async load(folder: string): Promise<{ version: number }> {
    if (this.base !== undefined) return await this.#loadAdapter(folder, this.base)
    const { shape, tensors } = await readCheckpoint(folder)
    if (JSON.stringify(shape) !== JSON.stringify(this.shape)) {
      const shapes = `${JSON.stringify(shape)}, this one ${JSON.stringify(this.shape)}`
      throw new Error(`The model in ${folder} has the shape ${shapes}.`)
    }
    return { version: this.#moveTo(await this.#line.ask({ kind: 'import', tensors })) }
  }

  async #loadAdapter(folder: string, base: string): Promise<{ version: number }> {
    if (!isPeft(folder)) throw new Error(`${folder} holds no adapter, which ${base} could take.`)
    const { shape, tensors, digest } = await readPeft(folder)
    if (digest !== undefined && digest !== digestOf(base)) {
      throw new Error(`The adapter in ${folder} was made for another base than ${base}.`)
    }
    checkAdapter(shape)
    if (JSON.stringify(shape) !== JSON.stringify(this.#adapter)) {
      await this.#adapt({ shape, factors: { seed: 0 } })
    }
    return { version: this.#moveTo(await this.#line.ask({ kind: 'import', tensors })) }
  }

  async saveOptimizer(folder: string): Promise<void> {
    const answer = await this.#line.ask({ kind: 'export-optimizer' })
    await writeOptimizer(folder, expectKind(answer, 'optimizer').state)
  }

  async loadOptimizer(folder: string): Promise<void> {
    const state = await readOptimizer(folder)
    this.#moveTo(await this.#line.ask({ kind: 'import-optimizer', state }))
  }

  #moveTo(answer: Answer): number {
    this.#version = expectKind(answer, 'done').version
    return this.#version
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#line.close()
  }
}

function expectKind<K extends Answer['kind']>(
  answer: Answer,
  kind: K,
): Extract<Answer, { kind: K }> {
  if (answer.kind === kind) return answer as Extract<Answer, { kind: K }>
  throw new Error(`The model answered with ${answer.kind} where ${kind} was expected.`)
}
