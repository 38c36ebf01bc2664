import { BLOCK } from '../kernels/layout.ts'
import type { FromOwner, SampleNews, SampleOrder } from '../protocol.ts'
import { type CacheNode, type Match, PrefixCache } from './prefix-cache.ts'
import { blocksToHold, blocksWanted, extendPath, noteComputed, type Sequence } from './sequence.ts'
import { type Part, planParts, type Stepper } from './stepper.ts'

/** What a sampler needs. */
export interface SamplerParts {
  readonly stepper: Stepper
  /** Takes news for the main thread. */
  readonly tell: (news: FromOwner) => void
  /** The version of the weights. */
  readonly version: () => number
}

/**
 * Samples for many requests at once, one token per step of each whose turn it is. A request that arrives while
 * others run joins at the next step.
 */
export class Sampler {
  readonly #parts: SamplerParts
  readonly #cache: PrefixCache
  readonly #waiting = new Map<number, Waiting>()
  readonly #running = new Map<number, Sequence>()
  /** The blocks each session used last, the longest unused session first. */
  readonly #sessions = new Map<string, readonly CacheNode[]>()
  readonly #freeSlots: number[]

  constructor(parts: SamplerParts) {
    this.#parts = parts
    const { slots, blocks } = parts.stepper
    this.#cache = new PrefixCache(blocks)
    this.#freeSlots = Array.from({ length: slots }, (_, slot) => slots - 1 - slot)
  }

  /** Queues a request. */
  add(id: number, order: SampleOrder): void {
    this.#waiting.set(id, { order, so: undefined })
  }

  /** Ends a request with what it has so far. */
  abort(id: number): void {
    const waiting = this.#waiting.get(id)
    const sequence = this.#running.get(id)
    this.#waiting.delete(id)
    if (waiting?.so) this.#tell(id, this.#newsOf(waiting.so, 'abort'))
    else if (waiting) {
      this.#tell(id, { ...nothingSampled, finish: 'abort', version: this.#parts.version() })
    } else if (sequence) this.#finish(sequence, 'abort')
  }

  /** Forgets every request and gives their numbers: nothing can be computed for them. */
  dropAll(): readonly number[] {
    for (const sequence of this.#running.values()) this.#setAside(sequence)
    const ids = [...this.#waiting.keys()]
    this.#waiting.clear()
    return ids
  }

  /** Whether requests are under way. */
  get isRunning(): boolean {
    return this.#running.size > 0 || this.#begun().length > 0
  }

  /** Whether there is anything to do. */
  get hasWork(): boolean {
    return this.#running.size > 0 || this.#waiting.size > 0
  }

  /** Forgets all keys and values: the weights have changed. Nothing may be running. */
  forget(): void {
    for (const path of this.#sessions.values()) this.#cache.release(path)
    this.#sessions.clear()
    this.#cache.clear()
  }

  /** One step of everything that runs; new requests join first unless `admit` is false. */
  async step({ admit }: { admit: boolean }): Promise<void> {
    const { stepper } = this.#parts
    this.#admitWaiting(admit)
    this.#makeWay()
    const parts = planParts(stepper.next(this.#running))
    for (const { sequence } of parts) {
      const before = sequence.path.length
      extendPath(sequence, this.#cache)
      if (sequence.path.length > before) stepper.place(sequence)
    }
    const pending = stepper.step(parts)
    if (pending && (await pending) === 'lost') this.#beginAgain()
    else for (const part of parts) this.#collect(part)
  }

  /** Keys and values are gone: whatever runs computes its own again, and goes on with the same tokens. */
  #beginAgain(): void {
    for (const sequence of this.#running.values()) this.#setAside(sequence)
    this.forget()
  }

  /** Requests that had to make way. */
  #begun(): (readonly [number, Waiting])[] {
    return [...this.#waiting].filter(([, { so }]) => so !== undefined)
  }

  /** Lets requests run, those first that had to make way; new ones only if `admit`. */
  #admitWaiting(admit: boolean): void {
    const begun = this.#begun()
    const fresh = admit ? [...this.#waiting].filter(([, { so }]) => so === undefined) : []
    for (const [id, waiting] of [...begun, ...fresh]) {
      if (this.#freeSlots.length === 0) return
      const outcome = this.#admit(id, waiting)
      if (outcome === 'full') return
      if (outcome === 'admitted') this.#waiting.delete(id)
    }
  }

  #admit(id: number, { order, so }: Waiting): 'admitted' | 'pending' | 'full' {
    const { prompt, maxTokens, session } = order
    const { context } = this.#parts.stepper
    const known = so ? so.tokens.subarray(0, so.length) : prompt
    const match = this.#cache.match(known, known.length - 1)
    if (match.pending) return 'pending'
    const capacity = Math.min(prompt.length + maxTokens, context)
    // Hold the match, so that making room cannot free it.
    const held = match.partial ? [...match.path, match.partial.node] : match.path
    this.#cache.acquire(held)
    const now = Math.ceil(known.length / BLOCK)
    if (!this.#makeRoom(now - match.path.length + blocksToHold(capacity, now))) {
      this.#cache.release(held)
      return 'full'
    }
    const sequence = this.#start(id, so ?? this.#open(id, order, { match, capacity }), match)
    this.#running.set(id, sequence)
    if (match.partial) this.#cache.release([match.partial.node])
    if (session !== undefined) this.#leaveSession(session)
    return 'admitted'
  }

  /** Whether `blocks` more can be held beside those that are held for running sequences. */
  #makeRoom(blocks: number): boolean {
    let promised = blocks
    for (const { tokens, path } of this.#running.values()) {
      promised += blocksToHold(tokens.length, path.length)
    }
    return this.#leaveSessions(promised)
  }

  /** Lets go what sessions keep, until so many blocks are free; whether they are. */
  #leaveSessions(blocks: number): boolean {
    while (this.#cache.available < blocks) {
      const [oldest] = this.#sessions.keys()
      if (oldest === undefined) return false
      this.#leaveSession(oldest)
    }
    return true
  }

  /** If memory is too short for the next step, lets the latest sequences wait: they go on later, with the same tokens. */
  #makeWay(): void {
    const wanted = () =>
      [...this.#running.values()].reduce((sum, sequence) => sum + blocksWanted(sequence), 0)
    while (this.#running.size > 1 && !this.#leaveSessions(wanted())) {
      this.#setAside([...this.#running.values()].at(-1)!)
    }
  }

  #setAside(sequence: Sequence): void {
    const { id, slot, path, order } = sequence
    this.#running.delete(id)
    this.#freeSlots.push(slot)
    for (const node of path) node.known = node.filled
    this.#cache.release(path)
    this.#waiting.set(id, { order, so: sequence })
  }

  #leaveSession(name: string): void {
    const path = this.#sessions.get(name)
    if (!path) return
    this.#sessions.delete(name)
    this.#cache.release(path)
  }

  #open(
    id: number,
    order: SampleOrder,
    { match, capacity }: { readonly match: Match; readonly capacity: number },
  ): Omit<Sequence, 'path' | 'slot' | 'computed'> {
    const { prompt, seed } = order
    const tokens = new Int32Array(capacity)
    tokens.set(prompt)
    return {
      id,
      order,
      seed,
      tokens,
      length: prompt.length,
      cachedTokens: match.tokens,
      logprobs: [],
      entropies: [],
      topLogprobs: [],
    }
  }

  /** Gives a sequence a place and its blocks, as far as they are known. */
  #start(id: number, begun: Omit<Sequence, 'path' | 'slot' | 'computed'>, match: Match): Sequence {
    const sequence: Sequence = {
      ...begun,
      id,
      path: [...match.path],
      slot: this.#freeSlots.pop()!,
      computed: match.tokens,
    }
    if (match.partial) this.#copyPartial(sequence, match.partial)
    extendPath(sequence, this.#cache)
    this.#parts.stepper.place(sequence)
    return sequence
  }

  /** Copies a block that agrees at its beginning; the rest is overwritten later. */
  #copyPartial(sequence: Sequence, { node, tokens }: NonNullable<Match['partial']>): void {
    const start = sequence.path.length * BLOCK
    const own = this.#cache.add(sequence.path.at(-1), sequence.tokens[start]!)
    own.filled = tokens
    sequence.path.push(own)
    this.#parts.stepper.copyBlock(node.block, own.block)
  }

  /** Takes over what a step computed for one sequence. */
  #collect({ sequence, count, row }: Part): void {
    const { stepper } = this.#parts
    noteComputed(sequence, sequence.computed + count)
    if (row === undefined) return
    const { id, order, tokens, logprobs, entropies } = sequence
    const token = stepper.token(row)
    if (order.topLogprobs > 0) {
      sequence.topLogprobs.push(stepper.likeliest(row, order.topLogprobs))
    }
    tokens[sequence.length++] = token.id
    logprobs.push(token.logprob)
    entropies.push(token.entropy)
    if (order.stream) this.#parts.tell({ kind: 'token', id, token })
    if (order.stop.includes(token.id)) this.#finish(sequence, 'stop')
    else if (sequence.length === tokens.length) this.#finish(sequence, 'length')
  }

  #finish(sequence: Sequence, finish: SampleNews['finish']): void {
    const { id, slot } = sequence
    this.#running.delete(id)
    this.#freeSlots.push(slot)
    this.#leavePath(sequence)
    this.#tell(id, this.#newsOf(sequence, finish))
  }

  #newsOf(sequence: Sequence, finish: SampleNews['finish']): SampleNews {
    const { order, tokens, length, logprobs, entropies, topLogprobs, cachedTokens } = sequence
    return {
      ids: tokens.slice(order.prompt.length, length),
      logprobs: Float32Array.from(logprobs),
      entropies: Float32Array.from(entropies),
      ...(order.topLogprobs > 0 ? { topLogprobs } : {}),
      finish,
      version: this.#parts.version(),
      cachedTokens,
    }
  }

  /** Releases a sequence's blocks, except those that its session keeps. */
  #leavePath({ order: { session }, path }: Sequence): void {
    // Tokens that were chosen but not computed never will be: take them back, or others would wait for them forever.
    for (const node of path) node.known = node.filled
    if (session !== undefined) {
      const kept = path.filter(node => node.filled > 0)
      this.#leaveSession(session)
      this.#cache.acquire(kept)
      this.#sessions.set(session, kept)
    }
    this.#cache.release(path)
  }

  #tell(id: number, sample: SampleNews): void {
    this.#parts.tell({ kind: 'sampled', id, sample })
  }
}

/** A request that does not run: a new one, or one that had to make way. */
interface Waiting {
  readonly order: SampleOrder
  readonly so: Sequence | undefined
}

const nothingSampled = {
  ids: new Int32Array(0),
  logprobs: new Float32Array(0),
  entropies: new Float32Array(0),
  cachedTokens: 0,
}
