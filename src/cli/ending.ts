import { Failure } from '../base/core/failure.ts'

/** What an ending needs of the process. */
export type EndingProcess = Pick<NodeJS.Process, 'on' | 'exit'> & {
  exitCode?: number | string | null | undefined
  readonly stdout: Pick<NodeJS.WriteStream, 'writableLength'>
}

/** What tells people, and what stops the command in order. */
export interface EndingOptions {
  tell(line: string): void
  readonly stop: AbortController
}

/** Seconds that whatever still runs is given once the command is over, or should be. */
const lastSeconds = { over: 5, stopped: 60 }

/** How many different rejections are told. */
const mostTold = 10

/**
 * How the process of a command ends: never without a word before the command is over, whatever code of
 * an environment does. What cannot be attributed to an attempt arrives here: a rejected promise that
 * nobody handles is told and harms nothing; an exception leaves unknown state behind and stops the
 * command in order, so that what is finished is kept.
 */
export class Ending {
  readonly #process: EndingProcess
  readonly #options: EndingOptions
  readonly #told = new Set<string>()
  #isOver = false
  #hasBroken = false

  constructor(process: EndingProcess, options: EndingOptions) {
    this.#process = process
    this.#options = options
    process.on('beforeExit', () => this.#onNothingLeft())
    process.on('exit', code => this.#onExit(code))
    process.on('unhandledRejection', reason => this.#onRejection(reason))
    process.on('uncaughtException', error => this.#onException(error))
  }

  /** The command is over: the process ends with this code, soon also if something still runs. */
  over(code: number): void {
    this.#isOver = true
    this.#process.exitCode = this.#hasBroken ? 1 : code
    const timer = setInterval(() => {
      if (this.#process.stdout.writableLength > 0) return
      this.#options.tell('something still runs, such as a timer of the environment; it ends here')
      this.#process.exit()
    }, lastSeconds.over * 1000)
    timer.unref()
  }

  /** Ends the process at once. */
  leave(code: number): never {
    this.#isOver = true
    return this.#process.exit(code)
  }

  #onNothingLeft(): void {
    if (this.#isOver) return
    this.#options.tell(
      'espalier: the command waits for something that can no longer happen: a promise that is never ' +
        'settled, in the environment or another file of yours',
    )
    this.leave(1)
  }

  #onExit(code: number): void {
    if (this.#isOver || this.#options.stop.signal.aborted) return
    this.#options.tell(
      `espalier: code of the environment, or of another file of yours, ended the process (process.exit, ` +
        `code ${code}) before the command was over`,
    )
    this.#process.exitCode = 1
  }

  #onRejection(reason: unknown): void {
    const rejection = inWords(reason)
    if (this.#told.has(rejection) || this.#told.size > mostTold) return
    this.#told.add(rejection)
    if (this.#told.size > mostTold) {
      this.#options.tell('WARNING further rejected promises that nobody waits for are not told.')
      return
    }
    this.#options.tell(
      `WARNING a promise was rejected that nobody waits for: ${rejection}. It belongs to no attempt; the command goes on.`,
    )
  }

  #onException(error: unknown): void {
    const { stop, tell } = this.#options
    const exception = inWords(error)
    if (this.#hasBroken) return
    this.#hasBroken = true
    tell(
      `espalier: an exception that nobody catches: ${exception}; stopping, what is finished is kept`,
    )
    stop.abort(new Error(`stopped by ${exception}`))
    setTimeout(() => this.leave(1), lastSeconds.stopped * 1000).unref()
  }
}

/** What was thrown, and where in the user's own code. */
function inWords(thrown: unknown): string {
  return new Failure('environment', { cause: thrown }).message
}
