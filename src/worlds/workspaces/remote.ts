import { PassThrough } from 'node:stream'
import { z } from 'zod'
import type { Call } from '../../base/core/call.ts'
import { describeCause } from '../../base/core/failure.ts'
import { absences, untakenReason } from '../../base/core/process/absences.ts'
import { parseBounded, readBounded } from '../../base/core/process/bounded.ts'
import { keepSecret, keepSecretsIn } from '../../base/core/process/secrets.ts'
import { delayOf, pause } from '../../base/core/process/timer.ts'
import type { Finished, StartedCommand } from '../sandboxes/run.ts'
import { packFolder } from './archive.ts'
import {
  type CommandCall,
  type Put,
  type Workspace,
  WorkspaceError,
  type WorkspaceSource,
  type Workspaces,
} from './contract.ts'
import { makeShared, neverStopped } from './shared.ts'

/** Where workspaces are kept on another machine. */
export interface RemoteOptions {
  /** The address of the server: `http://machine:8100`. */
  readonly url: string
  /** What is sent as bearer. */
  readonly key?: string | undefined
  /** Seconds to wait for a full server. @default 300 */
  readonly patience?: number
}

/** The protocol of this client; a server that speaks another is refused. */
export const sandboxProtocol = 1

/** Most bytes of a sent folder, and of an answer. */
export const mostArchive = 512 * 2 ** 20
const mostAnswer = 64 * 2 ** 20

/** Seconds that an answer may take beyond the command's own limit, and that other requests may take. */
const graceSeconds = 60

const about = z.object({
  protocol: z.literal(sandboxProtocol),
  name: z.string().max(200),
  isolation: z.object({ standing: z.array(z.string()), missing: z.array(z.string()) }),
  buildsImages: z.boolean().optional(),
  talks: z.boolean().optional(),
})
const opened = z.object({ id: z.string().regex(/^[\w-]{1,64}$/) })
const finished: z.ZodType<Finished> = z.object({
  end: z.enum(['exited', 'out-of-time', 'stopped']),
  code: z.int().min(0),
  output: z.string(),
  complaints: z.string(),
  cut: z.int().min(0),
})

/** What is told of a command that is talked to. */
const told = z.union([
  z.object({ id: z.string().regex(/^[\w-]{1,64}$/) }),
  z.object({ printed: z.base64() }),
  z.object({ finished }),
  z.object({ error: z.string() }),
])

/**
 * Workspaces on another machine, kept by a server of `espalier sandbox serve` or one that speaks the
 * same few requests. Failures of that machine or of the connection are `WorkspaceError`s.
 */
export async function remoteWorkspaces(options: RemoteOptions): Promise<Workspaces> {
  keepSecret(options.key)
  keepSecretsIn(options.url)
  const server = new Server(options)
  const { name, isolation, buildsImages, talks } = await server.ask(about, 'GET', '/', {
    signal: AbortSignal.timeout(graceSeconds * 1000),
  })
  const send = makeShared(folder => server.send('POST', '/images', folder, neverStopped))
  const imageOf = async ({ image }: WorkspaceSource, call: Call): Promise<object | undefined> => {
    if (!image || 'name' in image) return image
    return { uploaded: await send(image.build, call) }
  }
  return {
    name: `${name} at ${server.url}`,
    isolation,
    ...(buildsImages && { buildsImages }),
    ...(talks && { talks }),
    async open(source, call) {
      const { workingFolder, variables, network } = source
      const image = await imageOf(source, call)
      const body = { workingFolder, variables, network, image }
      const { id } = await server.ask(opened, 'POST', '/workspaces', { ...call, body })
      const workspace = new RemoteWorkspace(server, id)
      try {
        for (const put of source.puts) await workspace.put(put, call)
        return workspace
      } catch (cause) {
        await workspace[Symbol.asyncDispose]()
        throw cause
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

class RemoteWorkspace implements Workspace {
  readonly #server: Server
  readonly #path: string

  constructor(server: Server, id: string) {
    this.#server = server
    this.#path = `/workspaces/${id}`
  }

  async run(command: readonly string[], call: CommandCall): Promise<Finished> {
    const { signal, input, seconds, variables } = call
    const given = input === undefined ? undefined : Buffer.from(input).toString('base64')
    const body = { command, input: given, seconds, variables }
    const within = (seconds ?? 86_400) + graceSeconds
    return await this.#server.ask(finished, 'POST', `${this.#path}/run`, { signal, body, within })
  }

  start(command: readonly string[], call: Omit<CommandCall, 'input'>): StartedCommand {
    const [input, output] = [new PassThrough(), new PassThrough()]
    const finished = this.#talk(command, call, { input, output }).finally(() => output.end())
    finished.catch(() => undefined)
    return { input, output, finished }
  }

  async #talk(
    command: readonly string[],
    { signal, seconds, variables }: Omit<CommandCall, 'input'>,
    { input, output }: Talking,
  ): Promise<Finished> {
    const within = (seconds ?? 86_400) + graceSeconds
    const asking = { signal, within, body: { command, seconds, variables } }
    try {
      for await (const line of this.#server.lines(`${this.#path}/start`, asking)) {
        if ('finished' in line) return line.finished
        if ('error' in line) throw new WorkspaceError(line.error)
        if ('printed' in line) output.write(Buffer.from(line.printed, 'base64'))
        // What cannot be told any more is dropped: the command says how it ended.
        else void this.#tell(line.id, input, signal).catch(() => undefined)
      }
    } catch (cause) {
      if (!signal.aborted && cause instanceof WorkspaceError) throw cause
    }
    if (signal.aborted) return { end: 'stopped', code: 137, output: '', complaints: '', cut: 0 }
    throw new WorkspaceError(`the sandbox at ${this.#server.url} went away from a command`)
  }

  async #tell(talk: string, input: PassThrough, signal: AbortSignal): Promise<void> {
    const path = `${this.#path}/talks/${talk}`
    const say = (body: object) => this.#server.ask(opened, 'POST', path, { signal, body })
    for await (const part of input) await say({ input: (part as Buffer).toString('base64') })
    await say({ ends: true })
  }

  async put({ from, to }: Put, call: Call): Promise<void> {
    await this.#server.send('PUT', `${this.#path}/files?to=${encodeURIComponent(to)}`, from, call)
  }

  async fork(call: Call): Promise<Workspace> {
    const { id } = await this.#server.ask(opened, 'POST', `${this.#path}/fork`, {
      ...call,
      body: {},
    })
    return new RemoteWorkspace(this.#server, id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const signal = AbortSignal.timeout(graceSeconds * 1000)
    // If the server is gone, so are its workspaces; a living one ends idle ones itself.
    await this.#server.ask(z.unknown(), 'DELETE', this.#path, { signal }).catch(() => undefined)
  }
}

/** What a command is talked to over. */
interface Talking {
  readonly input: PassThrough
  readonly output: PassThrough
}

interface Asking extends Call {
  readonly body?: object
  readonly archive?: Buffer
  /** Seconds until the answer has to be here. */
  readonly within?: number
}

/** The requests of the protocol, and what can go wrong with each. */
class Server {
  readonly url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #patience: number

  constructor({ url, key, patience = 300 }: RemoteOptions) {
    this.url = url.replace(/\/+$/, '')
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    this.#patience = patience
  }

  /** Sends a folder of this machine; returns the id that the server gave it. */
  async send(method: string, path: string, folder: string, call: Call): Promise<string> {
    const archive = await packFolder(folder, { most: mostArchive, signal: call.signal })
    return (await this.ask(opened, method, path, { ...call, archive, within: 1800 })).id
  }

  /** Asks, waits if the server is full, and reads the answer by its schema. */
  async ask<T>(schema: z.ZodType<T>, method: string, path: string, asking: Asking): Promise<T> {
    const giveUp = performance.now() + this.#patience * 1000
    for (let wait = 100; ; wait = Math.min(2 * wait, 5000)) {
      const { status, text } = await this.#exchange(method, path, asking)
      if (status === 503 && performance.now() + wait < giveUp) {
        await pause(wait, asking.signal)
        continue
      }
      if (status < 200 || status > 299)
        throw this.#broken(method, path, `${status} ${errorMessage(text)}`)
      const read = schema.safeParse(tryJson(text))
      if (read.success) return read.data
      const problem = z.prettifyError(read.error).replaceAll('\n', ' ').slice(0, 300)
      throw this.#broken(method, path, `not what the protocol has: ${problem}`)
    }
  }

  /** Asks, and reads the answer line by line as it comes. */
  async *lines(path: string, asking: Asking): AsyncGenerator<z.output<typeof told>> {
    const response = await this.#ask('POST', path, asking)
    if (!response.ok) {
      const why = errorMessage((await readBounded(response.body, mostAnswer)).toString('utf8'))
      throw this.#broken('POST', path, `${response.status} ${why}`)
    }
    const decoder = new TextDecoder()
    let rest: string[] = []
    let length = 0
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      const [first = '', ...others] = decoder.decode(part, { stream: true }).split('\n')
      rest.push(first)
      length += first.length
      if (length > mostAnswer) throw this.#broken('POST', path, 'a line has no end')
      const last = others.pop()
      if (last === undefined) continue
      const texts = [rest.join(''), ...others]
      rest = [last]
      length = last.length
      // An empty line only says that the command still runs.
      for (const text of texts.filter(Boolean)) {
        const line = told.safeParse(tryJson(text))
        if (!line.success) throw this.#broken('POST', path, 'not what the protocol has')
        yield line.data
      }
    }
  }

  async #ask(method: string, path: string, asking: Asking): Promise<Response> {
    const { signal, body, archive, within = graceSeconds } = asking
    const type = archive ? 'application/x-tar' : 'application/json'
    const content = archive ?? (body && JSON.stringify(body))
    try {
      const ask = () =>
        fetch(`${this.url}${path}`, {
          method,
          signal: AbortSignal.any([signal, AbortSignal.timeout(delayOf(within))]),
          headers: { ...this.#headers, ...(content !== undefined && { 'content-type': type }) },
          ...(content !== undefined && { body: content }),
        })
      const awaited = { server: `the sandbox at ${this.url}`, isAway: untakenReason, ask, signal }
      return await absences.ask(awaited)
    } catch (cause) {
      throw this.#failed(method, path, signal, cause)
    }
  }

  async #exchange(method: string, path: string, asking: Asking) {
    const response = await this.#ask(method, path, asking)
    try {
      const bytes = await readBounded(response.body, mostAnswer)
      return { status: response.status, text: bytes.toString('utf8') }
    } catch (cause) {
      throw this.#failed(method, path, asking.signal, cause)
    }
  }

  #failed(method: string, path: string, signal: AbortSignal, cause: unknown): WorkspaceError {
    signal.throwIfAborted()
    const why = cause instanceof Error ? (cause.cause ?? cause) : cause
    return this.#broken(method, path, describeCause(why))
  }

  #broken(method: string, path: string, why: string): WorkspaceError {
    return new WorkspaceError(`the sandbox at ${this.url} (${method} ${path}): ${why}`)
  }
}

/** The message of an error answer. */
function errorMessage(text: string): string {
  const read = z.object({ error: z.string() }).safeParse(tryJson(text))
  return (read.success ? read.data.error : text).slice(0, 500)
}

function tryJson(text: string): unknown {
  try {
    return text === '' ? {} : parseBounded(text)
  } catch {
    return undefined
  }
}
