import type { Worker } from 'node:worker_threads'
import { makeOutbox, type OutboxOptions } from './outbox.ts'

/** A question that waits for its answer. */
export interface Waiting {
  readonly resolve: (answer: never) => void
  readonly reject: (reason: unknown) => void
}

/** How this end of a line handles messages. */
export interface LineEnd<News> {
  take(news: News): void
  /** The error for open questions when the thread is gone; without a cause it was closed. */
  failure(cause?: Error): Error
}

/**
 * The line to a thread: questions by number, sent together, each answered or failed once. The
 * program stays alive while a question is open; the thread itself does not keep it alive.
 */
export class Line<Order, News, Question extends Waiting> {
  readonly send: (order: Order) => void
  readonly worker: Worker
  readonly #open = new Map<number, Question>()
  #next = 0
  /** Why the thread is gone. */
  failure: Error | undefined

  constructor(worker: Worker, end: LineEnd<News>, outbox?: OutboxOptions) {
    this.worker = worker
    this.send = makeOutbox(orders => worker.postMessage(orders), outbox)
    worker.on('message', (news: readonly News[]) => {
      for (const item of news) end.take(item)
    })
    worker.on('error', cause => this.#fail(end.failure(cause)))
    worker.on('exit', () => this.#fail(end.failure()))
  }

  /** Gives a question its number; a continued one keeps its own. */
  open(question: Question, id: number = this.#next++): number {
    if (this.#open.size === 0) this.worker.ref()
    this.#open.set(id, question)
    return id
  }

  /** The question of this number, while it is open. */
  question(id: number): Question | undefined {
    return this.#open.get(id)
  }

  /** The numbers of all open questions. */
  numbers(): Iterable<number> {
    return [...this.#open.keys()]
  }

  /** Closes a question: nobody waits for it any more. */
  settle(id: number): Question | undefined {
    const question = this.#open.get(id)
    this.#open.delete(id)
    if (this.#open.size === 0) this.worker.unref()
    return question
  }

  #fail(failure: Error): void {
    this.failure ??= failure
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { reject } of open) reject(this.failure)
  }
}
