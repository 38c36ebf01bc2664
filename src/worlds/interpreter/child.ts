import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Call } from '../../base/core/call.ts'
import { DeadlineError, withDeadline } from '../../base/core/process/deadline.ts'
import { builtFile } from '../../base/core/process/package-folder.ts'
import { late } from '../../engine/environments/late.ts'
import { openSandbox } from '../sandboxes/sandbox.ts'
import type { Builder } from '../sandboxes/walls.ts'
import { findInstalled, type Language } from './language.ts'

/** What the processes that run code may use. */
export interface InterpreterLimits {
  /** Seconds that a piece of code may run. */
  readonly seconds: number
  /** Mebibytes that it may fill. */
  readonly memory: number
  /** Characters that may be shown of what it prints and of its value, each. */
  readonly characters: number
  /** CPU seconds of one process over all its life. */
  readonly cpu: number
  /** Who builds the walls around it. @default the first that works on this machine */
  readonly builder?: Builder
}

/** What became of a piece of code. */
export type Ran =
  | {
      readonly kind: 'ok' | 'error'
      readonly printed: string
      /** Its value, or what went wrong. */
      readonly text: string
      /** Characters that are not shown. */
      readonly cut: number
    }
  /** It ran too long or crashed its process: everything it defined is lost. */
  | { readonly kind: 'gone'; readonly why: 'time' | 'crash' }

/** A process that runs code and keeps what it defines. */
export interface Interpreter {
  run(code: string, call: Call & { readonly seconds: number }): Promise<Ran>
  /** Seeds the random numbers. */
  seed(seed: number, call: Call): Promise<void>
  readonly isAlive: boolean
  close(): void
}

/** Seconds until a process that starts must be ready; compiling takes a few on an idle machine. */
const startSeconds = 120

/** Starts a process without files, network, environment variables or access to other processes, and waits until it is ready. */
export async function openInterpreter(
  language: Language,
  { signal, ...limits }: InterpreterLimits & Call,
): Promise<Interpreter> {
  const snapshot = language === 'python' ? await snapshotOf(limits) : undefined
  const child = start(language, limits, snapshot && { snapshot: snapshot.length })
  const line = new Line(child, 12 * limits.characters + 10_000)
  if (snapshot) child.stdin!.write(snapshot)
  try {
    await withDeadline(startSeconds, { signal }, () => line.next())
  } catch (cause) {
    line.close()
    signal.throwIfAborted()
    throw new Error(`The ${language} interpreter did not start: ${line.lastWords}`, { cause })
  }
  const ask = (order: object, seconds: number, call: Call): Promise<unknown> =>
    withDeadline(seconds, call, () => line.ask(order))
  return {
    get isAlive() {
      return line.isOpen
    },
    async run(code, { seconds, ...call }) {
      try {
        return readRan(await ask({ code, seed: -1 }, seconds, call))
      } catch (cause) {
        line.close()
        call.signal.throwIfAborted()
        return { kind: 'gone', why: cause instanceof DeadlineError ? 'time' : 'crash' }
      }
    },
    async seed(seed, call) {
      await ask({ code: '', seed }, startSeconds, call)
    },
    close: () => line.close(),
  }
}

/** The program is passed as text, so that it inherits nothing of this one. */
const program = late(() => readFileSync(builtFile('worlds/interpreter/program.js'), 'utf8'))

function start(language: Language, limits: InterpreterLimits, more: object = {}): ChildProcess {
  const { readable, ...rest } = findInstalled(language)
  const bytes = limits.memory * 2 ** 20
  const given = { language, bytes, characters: limits.characters, ...rest, ...more }
  const sandbox = openSandbox({
    ...(limits.builder && { builder: limits.builder }),
    readable: [process.execPath, readable],
    // Nothing is inherited; fewer threads and arenas keep the address space small.
    variables: { MALLOC_ARENA_MAX: '1', UV_THREADPOOL_SIZE: '1', TZ: 'UTC' },
    limits: {
      memory: 1024 * (1.5 + 2 ** Math.max(0, Math.ceil(Math.log2(limits.memory / 1024)))),
      cpu: limits.cpu,
      processes: 64,
      fileSize: 0,
    },
  })
  const words = [...flags(readable), '--eval', program(), JSON.stringify(given)]
  return sandbox.spawn([process.execPath, ...words])
}

function flags(readable: string): readonly string[] {
  const isSettled = process.allowedNodeEnvironmentFlags.has('--permission')
  return [
    '--no-warnings',
    isSettled ? '--permission' : '--experimental-permission',
    `--allow-fs-read=${readable}*`,
    '--disallow-code-generation-from-strings',
    // Without guard regions, address space is only what memory fills, so that the system's limit holds.
    '--disable-wasm-trap-handler',
    '--max-old-space-size=256',
    '--stack-size=3900',
    '--v8-pool-size=1',
    '--input-type=module',
  ]
}

let snapshot: Promise<Buffer | undefined> | undefined

/** A memory snapshot of a loaded Python, made by the first process and shared by all others. */
function snapshotOf(limits: InterpreterLimits): Promise<Buffer | undefined> {
  snapshot ??= makeSnapshot(limits)
  return snapshot
}

/** Without a snapshot, every process loads Python itself. */
async function makeSnapshot(limits: InterpreterLimits): Promise<Buffer | undefined> {
  const child = start('python', limits, { makesSnapshot: true })
  const chunks: Buffer[] = []
  child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stdin!.on('error', () => {})
  const code = await new Promise(resolve => {
    child.on('error', () => resolve(undefined))
    child.on('close', resolve)
  })
  return code === 0 && chunks.length > 0 ? Buffer.concat(chunks) : undefined
}

function readRan(answer: unknown): Ran {
  const { kind, printed, text, cut } = answer as Readonly<Record<string, unknown>>
  const isKnown = kind === 'ok' || kind === 'error'
  if (!isKnown || typeof printed !== 'string' || typeof text !== 'string') {
    throw new TypeError('the interpreter answered with something else than a result')
  }
  return { kind, printed, text, cut: Number(cut) || 0 }
}

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (cause: unknown) => void
}

/** The lines to and from a child; it keeps this process alive only while an answer is waited for. */
class Line {
  readonly #child: ChildProcess
  readonly #mostBytes: number
  #buffer = ''
  #waiting: Waiting | undefined
  #isOpen = true
  #lastWords = ''

  constructor(child: ChildProcess, mostBytes: number) {
    this.#child = child
    this.#mostBytes = mostBytes
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk))
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#lastWords = `${this.#lastWords}${chunk}`.slice(-2000)
    })
    child.stdin!.on('error', () => {})
    child.on('error', cause => this.#lose(cause))
    child.on('exit', (code, signal) => this.#lose(new Error(`it ended with ${signal ?? code}`)))
    this.#hold('unref')
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get lastWords(): string {
    return this.#lastWords.trim() || 'it said nothing'
  }

  ask(order: object): Promise<unknown> {
    const answer = this.next()
    this.#child.stdin!.write(`${JSON.stringify(order)}\n`)
    return answer
  }

  next(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(new Error('the interpreter is closed'))
      this.#waiting = { resolve, reject }
      this.#hold('ref')
    })
  }

  close(): void {
    this.#lose(new Error('the interpreter was closed'))
  }

  #take(chunk: string): void {
    this.#buffer += chunk
    const end = this.#buffer.indexOf('\n')
    if (end < 0 && this.#buffer.length <= this.#mostBytes) return
    const line = this.#buffer.slice(0, end)
    this.#buffer = this.#buffer.slice(end + 1)
    const waiting = this.#settle()
    try {
      waiting?.resolve(JSON.parse(end < 0 ? '' : line))
    } catch (cause) {
      this.#lose(cause)
      waiting?.reject(cause)
    }
  }

  #lose(cause: unknown): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#child.kill('SIGKILL')
    this.#settle()?.reject(cause)
  }

  #settle(): Waiting | undefined {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#hold('unref')
    return waiting
  }

  #hold(how: 'ref' | 'unref'): void {
    this.#child[how]()
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      // A pipe to a child is a socket, which its type does not say.
      const socket: unknown = stream
      ;(socket as { ref(): void; unref(): void })[how]()
    }
  }
}
