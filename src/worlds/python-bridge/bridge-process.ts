import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describeCause, Failure } from '../../base/core/failure.ts'
import { DeadlineError, withDeadline } from '../../base/core/process/deadline.ts'
import { packageFolder } from '../../base/core/process/package-folder.ts'

/** How a process that hosts worlds is started. */
export interface BridgeOptions {
  /** The program that runs Python. */
  readonly python: string
  /** What is hosted, as the bridge's `hello` takes it. */
  readonly hello: object
  /** Seconds until a request has to be answered. */
  readonly seconds: number
  /** Seconds until the package has to be loaded. */
  readonly startSeconds: number
  /** Bytes that an answer may have. */
  readonly bytes: number
}

const program = fileURLToPath(new URL('integrations/python/espalier_bridge.py', packageFolder))
const neverStops = new AbortController().signal

/** A failure of the hosted package, not of the policy. */
export function brokenPackage(text: string, cause?: unknown): Failure {
  return new Failure('environment', { cause: new Error(text, { cause }) })
}

/** A process ended before this request was sent, so the request did not cause it. */
export class NotAskedError extends Failure {
  override name = 'NotAskedError'

  constructor(cause: Failure) {
    super('environment', { cause: cause.cause })
  }
}

interface Waiting {
  readonly id: number
  settle(answer: { readonly ok: unknown } | { readonly error: string }): void
  fail(cause: Failure): void
}

/**
 * One Python process that hosts worlds, one request at a time. The request during which it hangs, dies
 * or answers nonsense is blamed for it, and the process is ended.
 */
export class BridgeProcess {
  readonly #child: ChildProcess
  readonly #options: BridgeOptions
  #waiting: Waiting | undefined
  #ended: Failure | undefined
  #buffer: string[] = []
  #size = 0
  #lastWords = ''
  #next = 0
  #queue: Promise<unknown> = Promise.resolve()
  readonly #atExit = (): void => void this.#child.kill('SIGKILL')

  private constructor(options: BridgeOptions) {
    this.#options = options
    const child = spawn(options.python, ['-u', '-B', program], { stdio: 'pipe' })
    this.#child = child
    // The child must not keep this program alive.
    child.unref()
    process.once('exit', this.#atExit)
    child.stdin.on('error', () => {})
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#lastWords = `${this.#lastWords}${text}`.slice(-2000)
    })
    child.on('error', cause => this.#end(`${options.python} cannot be run: ${cause.message}`))
    child.on('close', code => this.#end(`its process ended (${code ?? 'killed'})`))
  }

  /** Starts a process and loads the package; gives what it says of itself. */
  static async start(options: BridgeOptions): Promise<{ process: BridgeProcess; about: unknown }> {
    const bridge = new BridgeProcess(options)
    try {
      const about = await bridge.ask('hello', options.hello, options.startSeconds)
      return { process: bridge, about }
    } catch (cause) {
      bridge.stop()
      throw cause
    }
  }

  get isAlive(): boolean {
    return this.#ended === undefined
  }

  /** Sends a request when those before are answered; what the package throws is thrown here. */
  ask(operation: string, values: object, seconds = this.#options.seconds): Promise<unknown> {
    const mine = this.#queue.then(() => this.#exchange(operation, values, seconds))
    this.#queue = mine.catch(() => undefined)
    return mine
  }

  stop(): void {
    this.#end('it was stopped')
  }

  async #exchange(operation: string, values: object, seconds: number): Promise<unknown> {
    if (this.#ended) throw new NotAskedError(this.#ended)
    const id = this.#next++
    try {
      const work = () => this.#send(id, { op: operation, ...values })
      const answer = await withDeadline(seconds, { signal: neverStops }, work)
      if ('ok' in answer) return answer.ok
      throw brokenPackage(`the Python world failed at ${operation}: ${answer.error}`)
    } catch (cause) {
      if (!(cause instanceof DeadlineError)) throw cause
      const failure = brokenPackage(
        `the Python world gave no answer to ${operation} within ${seconds} seconds`,
        cause,
      )
      this.#end('it hung', failure)
      throw failure
    }
  }

  #send(id: number, request: object): Promise<{ ok: unknown } | { error: string }> {
    return new Promise((resolve, reject) => {
      this.#waiting = { id, settle: resolve, fail: reject }
      this.#child.stdin?.write(`${JSON.stringify({ id, ...request })}\n`)
    })
  }

  #read(text: string): void {
    this.#size += text.length
    this.#buffer.push(text)
    if (this.#size > this.#options.bytes) {
      this.#end(`it answered more than ${this.#options.bytes} characters`)
    } else if (text.includes('\n')) this.#readLines()
  }

  #readLines(): void {
    const lines = this.#buffer.join('').split('\n')
    const rest = lines.pop() ?? ''
    this.#buffer = rest === '' ? [] : [rest]
    this.#size = rest.length
    for (const line of lines) this.#take(line)
  }

  #take(line: string): void {
    const waiting = this.#waiting
    const answer = parse(line)
    if (!answer) this.#end(`it answered what is not JSON: ${line.slice(0, 200)}`)
    else if (waiting && answer.id === waiting.id) {
      this.#waiting = undefined
      const { error, ok } = answer
      waiting.settle(typeof error === 'string' ? { error } : { ok })
    } else this.#end(`it answered out of turn: ${line.slice(0, 200)}`)
  }

  #end(why: string, cause?: Failure): void {
    if (this.#ended) return
    const said = this.#lastWords.trim().split('\n').at(-1) ?? ''
    const last = said === '' ? '' : `; it last said: ${said.slice(0, 300)}`
    this.#ended = cause ?? brokenPackage(`the Python world broke: ${why}${last}`)
    process.off('exit', this.#atExit)
    this.#child.kill('SIGKILL')
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.fail(this.#ended)
  }
}

function parse(line: string): { id?: unknown; ok?: unknown; error?: unknown } | undefined {
  try {
    return (JSON.parse(line) ?? undefined) as ReturnType<typeof parse>
  } catch {
    return undefined
  }
}

/** One sentence about why a process could not be started. */
export function startProblem(cause: unknown): string {
  return describeCause(cause instanceof Failure ? cause.cause : cause)
}
