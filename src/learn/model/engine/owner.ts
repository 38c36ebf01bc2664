import type { FromOwner, RowGradients, RowOrder, ToOwner } from '../protocol.ts'
import type { Engine } from './engine.ts'
import { Sampler } from './sampler.ts'

/** How the owner is connected. */
export interface OwnerPort {
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
  readonly #engine: Engine
  readonly #sampler: Sampler
  /** Messages that came while a turn was under way. */
  #inbox: ToOwner[] = []
  readonly #queue: Exclusive[] = []
  #news: FromOwner[] = []
  /** The gradient that waits for the main thread's loss. */
  #awaited: number | undefined
  #version = 0
  #isScheduled = false

  constructor(engine: Engine, port: OwnerPort) {
    this.#port = port
    this.#engine = engine
    const { stepper } = engine
    this.#sampler = new Sampler({
      stepper,
      tell: news => this.#news.push(news),
      version: () => this.#version,
    })
    this.#news.push({ kind: 'ready', device: engine.device })
    this.#flush()
  }

  /** Takes messages from the main thread. */
  receive(messages: readonly ToOwner[]): void {
    this.#inbox.push(...messages)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => void this.#turn())
  }

  /** One turn: what came, the messages that are due, then a step of sampling. */
  async #turn(): Promise<void> {
    await this.#takeInbox()
    while (this.#isDue(this.#queue[0])) {
      await this.#perform(this.#queue.shift()!)
      await this.#takeInbox()
    }
    const admit = !this.#wantsQuiet(this.#queue[0])
    if (admit ? this.#sampler.hasWork : this.#sampler.isRunning) await this.#step(admit)
    this.#flush()
    this.#isScheduled = false
    const samples = admit ? this.#sampler.hasWork : this.#sampler.isRunning
    if (samples || this.#inbox.length > 0 || this.#isDue(this.#queue[0])) this.#schedule()
  }

  async #takeInbox(): Promise<void> {
    const messages = this.#inbox
    this.#inbox = []
    for (const message of messages) {
      if (message.kind === 'sample') this.#sampler.add(message.id, message.order)
      else if (message.kind === 'abort') this.#sampler.abort(message.id)
      else if (message.kind === 'backward') await this.#backward(message)
      else this.#queue.push(message)
    }
    this.#flush()
  }

  /** What sampling fails by, every request under way fails by. */
  async #step(admit: boolean): Promise<void> {
    try {
      await this.#sampler.step({ admit })
    } catch (cause) {
      for (const id of this.#sampler.dropAll()) this.#fail(id, cause)
    }
  }

  #isDue(message: Exclusive | undefined): message is Exclusive {
    if (!message || this.#awaited !== undefined) return false
    return !(this.#sampler.isRunning && changesWeights(message))
  }

  #wantsQuiet(message: Exclusive | undefined): boolean {
    return message !== undefined && changesWeights(message)
  }

  async #perform(message: Exclusive): Promise<void> {
    try {
      this.#news.push(...(await this.#answer(message)))
    } catch (cause) {
      this.#fail(message.id, cause)
    }
  }

  #fail(id: number, cause: unknown): void {
    const message = cause instanceof Error ? cause.message : String(cause)
    this.#news.push({ kind: 'failed', id, message })
  }

  async #answer(message: Exclusive): Promise<FromOwner[]> {
    const { id } = message
    const { learner } = this.#engine
    switch (message.kind) {
      case 'score':
        return await this.#score(message)
      case 'gradient':
        return [await this.#forward(message)]
      case 'update': {
        const gradientNorm = await learner.update(message.order)
        this.#moveTo(this.#version + 1)
        return [{ kind: 'updated', id, gradientNorm, version: this.#version }]
      }
      case 'export':
        return [{ kind: 'tensors', id, tensors: await learner.tensors(), version: this.#version }]
      case 'import':
        await learner.takeTensors(message.tensors)
        this.#moveTo(message.version ?? this.#version + 1)
        return [this.#done(id)]
      case 'adapt':
        await learner.adapt(message.adapter)
        if ('tensors' in message.adapter.factors) this.#moveTo(this.#version)
        return [this.#done(id)]
      case 'export-optimizer':
        return [{ kind: 'optimizer', id, state: await learner.state(this.#version) }]
      case 'import-optimizer':
        await learner.takeState(message.state)
        this.#version = message.state.version
        return [this.#done(id)]
      case 'use-threads':
        this.#engine.useThreads(message.count)
        return [this.#done(id)]
      case 'close':
        this.#engine.close()
        this.#news.push(this.#done(id))
        this.#flush()
        this.#port.close()
        return []
      default:
        return message satisfies never
    }
  }

  /** Scores asked for one after the other go through the model together. */
  async #score(first: Message<'score'>): Promise<FromOwner[]> {
    const messages = [first]
    while (this.#queue[0]?.kind === 'score') messages.push(this.#queue.shift() as typeof first)
    const rows = messages.flatMap(message => message.rows)
    const scored = await this.#engine.learner.forward(rows, { keep: false })
    const { logprobs, entropies, computed } = scored
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

  async #forward({ id, rows }: Message<'gradient'>): Promise<FromOwner> {
    const numbers = await this.#engine.learner.forward(rows, { keep: true })
    this.#awaited = id
    return { kind: 'numbers', id, numbers }
  }

  async #backward({ id, gradients }: { id: number; gradients: RowGradients | undefined }) {
    this.#awaited = undefined
    try {
      if (gradients) await this.#engine.learner.backward(gradients)
      this.#news.push(this.#done(id))
    } catch (cause) {
      this.#fail(id, cause)
    }
  }

  #moveTo(version: number): void {
    this.#version = version
    this.#sampler.forget()
  }

  #done(id: number): FromOwner {
    return { kind: 'done', id, version: this.#version }
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
