import { Duplex, PassThrough, type Readable } from 'node:stream'
import { z } from 'zod'
import type { Call } from '../../../base/core/call.ts'
import { parseBounded } from '../../../base/core/process/bounded.ts'
import { late } from '../../../engine/environments/late.ts'
import type { Finished } from '../../sandboxes/run.ts'
import { type Workspace, WorkspaceError } from '../../workspaces/contract.ts'
import { onLines } from './lines.ts'
import { relayProgram } from './relay.ts'

/** What a process inside is started with. */
export interface Starting {
  readonly words: readonly string[]
  readonly folder: string
  readonly variables?: Readonly<Record<string, string>>
}

/** A process inside that is talked to. */
export interface InsideProcess {
  write(text: string): void
  /** Ends its input. */
  finish(): void
  readonly output: Readable
  readonly complaints: Readable
  /** Its exit code, and why it could not be started if it could not. */
  readonly exited: Promise<Exited>
  /** Ends it, with all of its group. */
  kill(): void
}

/** How a process inside ended. */
export interface Exited {
  readonly code: number
  readonly problem?: string | undefined
}

/** A sandbox in which processes run side by side, and from which connections come. */
export interface Inside extends AsyncDisposable {
  /** The port of its loopback that leads out to `onConnection`, and nowhere else. */
  readonly port: number
  start(starting: Starting): InsideProcess
  /** Resolves when everything in it has ended, whoever ended it. */
  readonly over: Promise<Finished>
}

/** What a sandbox is entered with. */
export interface EnterOptions extends Call {
  /** The program of Node inside. */
  readonly node: string
  /** Seconds until all of it is ended. */
  readonly seconds: number
  onConnection(connection: Duplex): void
}

const message = late(() =>
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('listening'), port: z.int().min(1).max(65_535) }),
    z.object({
      kind: z.enum(['printed', 'complained', 'data']),
      id: z.int(),
      bytes: z.base64(),
    }),
    z.object({
      kind: z.literal('exited'),
      id: z.int(),
      code: z.int(),
      problem: z.string().optional(),
    }),
    z.object({ kind: z.enum(['connected', 'ended', 'closed']), id: z.int() }),
  ]),
)
type Message = z.output<ReturnType<typeof message>>

/** Starts the relay in a workspace; throws with its words if it cannot run there. */
export async function enter(workspace: Workspace, options: EnterOptions): Promise<Inside> {
  if (!workspace.start) {
    throw new WorkspaceError(
      'no harness runs in this sandbox: its commands cannot be talked to while they run',
    )
  }
  const { seconds, signal, node } = options
  const stop = new AbortController()
  const started = workspace.start([node, '--eval', relayProgram], {
    seconds,
    signal: AbortSignal.any([signal, stop.signal]),
  })
  const relay = new Relay(line => void started.input.write(line), options.onConnection)
  const broken = new Promise<never>((_, reject) => {
    onLines(started.output, {
      line: text => relay.read(text),
      broken: ({ message: why }) => stop.abort(new WorkspaceError(`the relay is not ours: ${why}`)),
    })
    started.finished.then(finished => {
      relay.end()
      reject(
        new WorkspaceError(
          `${node} does not run in the sandbox: ${finished.complaints.trim().slice(-500) || `it ended with ${finished.code}`}`,
        ),
      )
    }, reject)
  })
  const port = await Promise.race([relay.listening, broken])
  broken.catch(() => undefined)
  return {
    port,
    over: started.finished,
    start: starting => relay.start(starting),
    async [Symbol.asyncDispose]() {
      started.input.end()
      // A relay that does not end by itself is ended with everything in the sandbox.
      const timer = setTimeout(() => stop.abort(), 5000)
      await started.finished.catch(() => undefined)
      clearTimeout(timer)
    },
  }
}

interface Child {
  readonly output: PassThrough
  readonly complaints: PassThrough
  readonly end: (exited: Exited) => void
}

/** The near end of the relay: what is told to it, and what it tells. */
class Relay {
  readonly listening: Promise<number>
  readonly #tell: (line: string) => void
  readonly #onConnection: (connection: Duplex) => void
  readonly #children = new Map<number, Child>()
  readonly #connections = new Map<number, Duplex>()
  #listen: (port: number) => void = () => {}
  #made = 0

  constructor(tell: (line: string) => void, onConnection: (connection: Duplex) => void) {
    this.#tell = tell
    this.#onConnection = onConnection
    this.listening = new Promise(resolve => {
      this.#listen = resolve
    })
  }

  /** What is no message of the relay was printed by something that took its place, and is left out. */
  read(line: string): void {
    const read = message().safeParse(tryJson(line))
    if (read.success) this.#take(read.data)
  }

  #take(told: Message): void {
    if (told.kind === 'listening') {
      this.#listen(told.port)
      return
    }
    const child = this.#children.get(told.id)
    const connection = this.#connections.get(told.id)
    if (told.kind === 'printed') child?.output.write(bytesOf(told))
    if (told.kind === 'complained') child?.complaints.write(bytesOf(told))
    if (told.kind === 'exited') this.#end(told.id, told)
    if (told.kind === 'connected') this.#connect(told.id)
    if (told.kind === 'data') connection?.push(bytesOf(told))
    if (told.kind === 'ended') connection?.push(null)
    if (told.kind === 'closed' && this.#connections.delete(told.id)) connection?.destroy()
  }

  #end(id: number, { code, problem }: Exited): void {
    const child = this.#children.get(id)
    this.#children.delete(id)
    child?.output.end()
    child?.complaints.end()
    child?.end({ code, problem })
  }

  #connect(id: number): void {
    const connection = new Duplex({
      read() {},
      write: (chunk: Buffer, _, done) => {
        this.#say({ kind: 'send', id, bytes: chunk.toString('base64') })
        done()
      },
      final: done => {
        this.#say({ kind: 'close', id })
        done()
      },
      destroy: (error, done) => {
        this.#say({ kind: 'close', id })
        done(error)
      },
    })
    connection.on('error', () => undefined)
    this.#connections.set(id, connection)
    this.#onConnection(connection)
  }

  start({ words, folder, variables = {} }: Starting): InsideProcess {
    const id = this.#made++
    const [output, complaints] = [new PassThrough(), new PassThrough()]
    const exited = new Promise<Exited>(end => this.#children.set(id, { output, complaints, end }))
    this.#say({ kind: 'start', id, words, folder, variables })
    return {
      output,
      complaints,
      exited,
      write: text => this.#say({ kind: 'write', id, bytes: Buffer.from(text).toString('base64') }),
      finish: () => this.#say({ kind: 'finish', id }),
      kill: () => this.#say({ kind: 'kill', id }),
    }
  }

  #say(told: object): void {
    this.#tell(`${JSON.stringify(told)}\n`)
  }

  /** The sandbox has ended, and everything with it. */
  end(): void {
    for (const id of this.#children.keys()) this.#end(id, { code: 137 })
    for (const connection of this.#connections.values()) connection.destroy()
    this.#connections.clear()
  }
}

const bytesOf = ({ bytes }: { readonly bytes: string }): Buffer => Buffer.from(bytes, 'base64')

function tryJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}
