import type { Worker } from 'node:worker_threads'
import { type OutboxOptions, openOutbox } from './outbox.ts'

/** One who waits for an answer. */
export interface Waiting {
  readonly resolve: (answer: never) => void
  readonly reject: (reason: unknown) => void
}

/** What the end of a line does with what it hears. */
export interface LineEnd<News> {
  take(news: News): void
  /** The error of all who wait when the thread is gone; without a cause it was closed. */
  failure(cause?: Error): Error
}

/**
 * The line to a thread: questions by number, sent together, each answered or failed once. The
 * program stays alive while a question is open, and not for the thread's sake.
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
    this.send = openOutbox(orders => worker.postMessage(orders), outbox)
    worker.on('message', (news: readonly News[]) => {
      for (const item of news) end.take(item)
    })
    worker.on('error', cause => this.#fail(end.failure(cause)))
    worker.on('exit', () => this.#fail(end.failure()))
  }

  /** Numbers a question; one that goes on keeps its number. */
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
    return this.#open.keys()
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
    const questions = [...this.#open.values()]
    this.#open.clear()
    for (const { reject } of questions) reject(this.failure)
  }
}
