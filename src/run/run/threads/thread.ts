import { Worker } from 'node:worker_threads'
import type { Answering } from '../../../base/core/call.ts'
import { builtFile, isSource } from '../../../base/core/process/package-folder.ts'
import { Line, type Waiting } from '../../../base/core/threads/line.ts'
import type { ServerBack, Warned } from '../../watch/events.ts'
import { RunStoppedError } from '../../watch/stopped.ts'
import type { GroupWork, Made, Piece, ReturnedGroup, Work } from '../elsewhere.ts'
import type { Served, TurnsKept } from '../served/served-run.ts'
import type { MadeBatch } from './made-batch.ts'
import type { NotMade } from './maker.ts'
import type { FromThread, SharedWork, ThreadStart, ToThread, WeightsOrder } from './messages.ts'
import { readMadeBatch } from './read-batch.ts'

/** The thread died, and with it the attempts it was making. */
class ThreadLostError extends Error {
  override name = 'ThreadLostError'
}

/** A thread that makes attempts, as it is seen from outside. */
export interface RollThread {
  /** Resolves when it has opened the run; rejects if it cannot. */
  readonly ready: Promise<void>
  /**
   * Makes one attempt and answers; with a `ThreadLostError` if the thread dies meanwhile. Gives what
   * takes it back, after which nothing is answered.
   */
  make(work: Work, making: string, answering: Answering<Served>): () => void
  /** Makes all attempts of a group and answers in pieces; gives what takes it back. */
  makeGroup(work: GroupWork, making: string, answering: AnsweringGroup): () => void
  /** Resolves when it samples nothing. */
  pause(): Promise<void>
  resume(weights: WeightsOrder): Promise<void>
  /** Ends it; code that ignores its signal is not waited for. */
  close(): Promise<void>
}

/** How a thread answers with a group. */
export interface AnsweringGroup extends Answering<ReturnedGroup> {
  /** Called with every piece but the last. */
  onPiece(piece: Piece): void
}

/** A question to a thread; one about a group is answered in pieces. */
export interface Asking extends Waiting, Partial<Pick<AnsweringGroup, 'onPiece'>> {}

/** Whether threads can be started directly; from source they need a loader for TypeScript. */
export function canStart(): boolean {
  return !isSource
}

/** Milliseconds that a thread gets to close what it has opened. */
const closingTime = 3000

/** The callbacks of a thread. */
export interface ThreadListener extends ThreadNews {
  readonly tell: (line: string) => void
  /** Hears where turns of unfinished attempts lie. */
  readonly onKept?: TurnsKept['onKept'] | undefined
}

/** What a thread tells besides its answers. */
export interface ThreadNews {
  /** Called when a server of it is away or back. */
  readonly onSignal: (event: Warned | ServerBack) => void
  /** Called when it cannot go on for want of a server. */
  readonly onHalted: (error: RunStoppedError) => void
  /** Called when it has died, before its attempts reject. */
  readonly onLost: () => void
}

/** Starts a thread. */
export function startThread(start: ThreadStart, listener: ThreadListener): RollThread {
  return new Thread(
    new Worker(builtFile('rolling-thread.js'), { workerData: start, name: 'rolling' }),
    listener,
  )
}

class Thread implements RollThread {
  readonly ready: Promise<void>
  readonly #line: Line<ToThread, FromThread, Asking>
  readonly #listener: ThreadListener
  /** What the last group that was ordered had in common with others. */
  #shared: SharedWork | undefined
  #isReady = false
  #open = (): void => {}
  #refuse: (error: Error) => void = () => {}

  constructor(worker: Worker, listener: ThreadListener) {
    this.#listener = listener
    this.ready = new Promise((resolve, reject) => {
      this.#open = resolve
      this.#refuse = reject
    })
    this.ready.catch(() => undefined)
    this.#line = new Line(worker, {
      take: news => this.#take(news),
      failure: cause => this.#lose(cause),
    })
  }

  make(work: Work, making: string, answering: Answering<Served>): () => void {
    return this.#withdrawable(answering, id => ({ kind: 'make', id, making, work }))
  }

  makeGroup(work: GroupWork, making: string, answering: AnsweringGroup): () => void {
    const { seed, sampling, limits, endpoint, examples, ...own } = work
    const last = this.#shared
    const isSame =
      last?.seed === seed &&
      last.sampling === sampling &&
      last.limits === limits &&
      last.endpoint === endpoint &&
      last.examples === examples
    const shared = {
      ...{ seed, sampling, limits },
      ...(endpoint !== undefined && { endpoint }),
      ...(examples && { examples }),
    }
    this.#shared = shared
    return this.#withdrawable(answering, id => ({
      ...{ kind: 'make-group', id, making, work: own },
      ...(!isSame && { shared }),
    }))
  }

  pause(): Promise<void> {
    return this.#ask(id => ({ kind: 'pause', id }))
  }

  resume(weights: WeightsOrder): Promise<void> {
    return this.#ask(id => ({ kind: 'resume', id, ...weights }))
  }

  async close(): Promise<void> {
    const { worker, failure } = this.#line
    if (failure) return
    // One that still opens the run would hear of it only then.
    if (this.#isReady) await this.#closeInOrder()
    await worker.terminate()
  }

  async #closeInOrder(): Promise<void> {
    const closed = this.#ask(id => ({ kind: 'close', id })).catch(() => undefined)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, closingTime)
    })
    await Promise.race([closed, late])
    clearTimeout(timer)
  }

  #ask(toOrder: (id: number) => ToThread): Promise<void> {
    return new Promise((resolve, reject) => this.#order({ resolve, reject }, toOrder))
  }

  #withdrawable<Answer>(
    answering: Answering<Answer>,
    toOrder: (id: number) => ToThread,
  ): () => void {
    const id = this.#order(answering, toOrder)
    return () => {
      if (this.#line.settle(id)) this.#line.send({ kind: 'withdraw', id })
    }
  }

  /** Orders something under a number; one that is gone refuses at once. */
  #order<Answer>(answering: Answering<Answer>, toOrder: (id: number) => ToThread): number {
    const { failure } = this.#line
    if (failure) {
      answering.reject(failure)
      return Number.NaN
    }
    const id = this.#line.open(answering as Asking)
    this.#line.send(toOrder(id))
    return id
  }

  #lose(cause: Error | undefined): Error {
    const why = cause ? cause.message : 'it ended by itself'
    const lost = new ThreadLostError(`the thread that made it is gone: ${why}`)
    this.#refuse(lost)
    // Call `onLost` once: a failed thread emits an exit too.
    if (!this.#line.failure) this.#listener.onLost()
    return lost
  }

  /** From now on only open requests keep the program alive, not the thread itself. */
  #enter(): void {
    const { done } = this.#line.numbers()[Symbol.iterator]().next()
    if (done) this.#line.worker.unref()
    this.#isReady = true
    this.#open()
  }

  #take(news: FromThread): void {
    if (news.kind === 'ready') this.#enter()
    else if (news.kind === 'refused') this.#refuse(new Error(news.reason))
    else if (news.kind === 'line') this.#listener.tell(news.line)
    else if (news.kind === 'turns') this.#listener.onKept?.(news.places)
    else if (news.kind === 'signal') this.#listener.onSignal(news.event)
    else if (news.kind === 'halted')
      this.#listener.onHalted(new RunStoppedError(news.of, news.message))
    else if (news.kind === 'made') answerMade(this.#line, news)
    else if (news.kind === 'done') this.#line.settle(news.id)?.resolve(undefined as never)
    else answerNotMade(this.#line, news)
  }
}

/** Questions by number. */
export interface Questions {
  question(id: number): Asking | undefined
  settle(id: number): Asking | undefined
}

/** Answers with what was made. */
export function answerMade(questions: Questions, batch: MadeBatch): void {
  for (const { id, piece } of readMadeBatch(batch)) {
    const { onPiece } = questions.question(id) ?? {}
    if (!onPiece) questions.settle(id)?.resolve(toMade(piece) as never)
    else if (piece.group) questions.settle(id)?.resolve({ kind: 'made', piece } as never)
    else onPiece(piece)
  }
}

/** Answers with why something was not made. */
export function answerNotMade(questions: Questions, news: NotMade): void {
  const asked = questions.settle(news.id)
  if (news.kind === 'failed') asked?.reject(new Error(news.reason))
  else asked?.resolve(news as never)
}

/** The attempt that was ordered alone. */
export function toMade(sent: Piece): Made {
  const { trees, scores, events } = sent
  return {
    kind: 'made',
    trees: trees.map(({ tree }) => tree),
    sent,
    members: trees.flatMap(({ members }) => members),
    events: [...scores, ...events],
  }
}
