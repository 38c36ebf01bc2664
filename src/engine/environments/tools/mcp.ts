import type { Call } from '../../../base/core/call.ts'
import { Failure } from '../../../base/core/failure.ts'
import { missingPackage } from '../../../base/core/names/missing-package.ts'
import { absences, untakenReason } from '../../../base/core/process/absences.ts'
import { DeadlineError, withDeadline } from '../../../base/core/process/deadline.ts'
import { keepSecretsIn, keepSecretVariables } from '../../../base/core/process/secrets.ts'
import { delayOf } from '../../../base/core/process/timer.ts'
import type { ToolExecution, ToolLimits } from '../../../base/core/tool.ts'
import type { WorldCall } from '../opened-world.ts'
import { type Bounds, boundedFetch } from './bounded-fetch.ts'
import { type JsonSchema, validatorOf } from './json-schema.ts'
import { defaultLimits } from './ready-tool.ts'
import { partsOf, textOfParts } from './shown-images.ts'
import type { OfferedTool } from './tool.ts'

/** Where an MCP server is: a program that speaks over its standard streams, or an address. */
export type McpServer =
  | {
      /** The program and its arguments. */
      readonly command: readonly [string, ...string[]]
      /** Variables it is given besides the few that are safe to inherit. */
      readonly variables?: Readonly<Record<string, string>>
      readonly folder?: string
    }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }

/** Which tools of a server are offered, and how they are bounded. */
export interface McpOptions {
  /** Only the tools of these names. @default all of them */
  readonly only?: readonly string[]
  /** Put before every name, so that two servers can be used together. @default '' */
  readonly prefix?: string
  /** Bounds of each tool. */
  readonly limits?: ToolLimits
  /** `none` for a server whose tools only touch what their world owns. @default 'outside' */
  readonly effects?: 'none' | 'outside'
  /** Bytes that one message of the server may have. @default 16 MiB */
  readonly bytes?: number
  /** Seconds in which a server must answer a ping after one of its tools timed out. @default 10 */
  readonly pingSeconds?: number
}

/** A connected server and its tools. */
export interface McpTools extends AsyncDisposable {
  readonly tools: Readonly<Record<string, OfferedTool>>
}

type Sdk = Awaited<ReturnType<typeof importSdk>>
type Client = InstanceType<Sdk['Client']>

/**
 * Connects to an MCP server and lists its tools. Inside `open`, pass its own call on: the connection
 * then closes with the world. Elsewhere, dispose of what it returns.
 */
export async function openMcpTools(
  server: McpServer,
  call: Call & Partial<Pick<WorldCall, 'defer'>>,
  options: McpOptions = {},
): Promise<McpTools> {
  const sdk = await importSdk()
  keepSecretsOf(server)
  const client = new sdk.Client({ name: 'espalier', version: '1' })
  const { bytes = usualBytes, pingSeconds = usualPing } = options
  const watch = watchClient(client)
  const transport = transportTo(server, sdk, { bytes, overrun: watch.break })
  const close = async (): Promise<void> => {
    // A server that is gone has no session left to end.
    if ('terminateSession' in transport) await transport.terminateSession().catch(() => {})
    await client.close()
  }
  try {
    // The client never takes its listeners off a signal, so it gets one of its own.
    const listed = await withDeadline(60, call, async stopping => {
      const signal = stopping()
      await client.connect(transport, { signal })
      return await listTools(client, { sdk, signal })
    })
    call.defer?.(close)
    const chosen = choose(listed, options, nameOf(server))
    const tools = chosen.map(item => [
      `${options.prefix ?? ''}${item.name}`,
      toTool(item, client, { ...options, sdk, server: nameOf(server), watch, pingSeconds }),
    ])
    return { tools: Object.fromEntries(tools), [Symbol.asyncDispose]: close }
  } catch (cause) {
    await close()
    call.signal.throwIfAborted()
    if (await isBack(server, cause, call)) return await openMcpTools(server, call, options)
    if (cause instanceof Failure) throw cause
    throw new Failure('tool', {
      cause: new Error(
        `No tools from MCP server ${nameOf(server)}: ${watch.broken ?? String(cause)}`,
        { cause },
      ),
    })
  }
}

/** Whether a server that took no connection is back, which a run waits for. */
async function isBack(server: McpServer, cause: unknown, { signal }: Call): Promise<boolean> {
  if (!('url' in server) || untakenReason(cause) === undefined || !absences.isWatched) return false
  const ask = async (): Promise<void> => {
    const { body } = await fetch(server.url, { method: 'OPTIONS', signal })
    await body?.cancel()
  }
  await absences.ask({ server: nameOf(server), isAway: untakenReason, ask, signal })
  return true
}

const usualBytes = 2 ** 24
const usualPing = 10

/** Watches whether a connection still works. */
interface Watch {
  /** Why the connection cannot be used any more. */
  readonly broken: string | undefined
  /** Closes it, and rejects everything that waits for an answer. */
  break(why: string): void
  /** To be called when a request was given up: its answer may come late and is then no error. */
  givenUp(): void
}

/** Detects what the client ignores: an answer to no request. */
function watchClient(client: Client): Watch {
  let broken: string | undefined
  let late = 0
  const end = (why: string): void => {
    broken ??= why
    void client.close().catch(() => {})
  }
  client.onerror = ({ message }) => {
    if (message.includes('exceeded maximum size')) return end(`it sent too much: ${message}`)
    if (!message.includes('unknown message ID')) return
    if (late > 0) late--
    else end(`it answered out of turn: ${message.slice(0, 200)}`)
  }
  return {
    get broken() {
      return broken
    },
    break: end,
    givenUp: () => void late++,
  }
}

async function importSdk() {
  try {
    // Each import is awaited inside `try`: bundlers then accept that the optional package is missing.
    const client = await import('@modelcontextprotocol/sdk/client/index.js')
    const stdio = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const http = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const types = await import('@modelcontextprotocol/sdk/types.js')
    return { ...client, ...stdio, ...http, ...types }
  } catch (cause) {
    throw missingPackage('An MCP server', '@modelcontextprotocol/sdk', cause)
  }
}

/** What is given to reach a server is in nothing that is written. */
function keepSecretsOf(server: McpServer): void {
  if ('url' in server) keepSecretsIn(server.url)
  const given = Object.entries(('url' in server ? server.headers : server.variables) ?? {})
  const bare = given.map(([name, value]) => [name, value.replace(/^(?:bearer|basic) /i, '')])
  keepSecretVariables(Object.fromEntries(bare))
}

function nameOf(server: McpServer): string {
  return 'url' in server ? server.url : server.command.join(' ')
}

function transportTo(server: McpServer, sdk: Sdk, bounds: Bounds) {
  if ('url' in server) {
    const requestInit = server.headers && { headers: { ...server.headers } }
    return new sdk.StreamableHTTPClientTransport(new URL(server.url), {
      fetch: boundedFetch(bounds),
      ...(requestInit && { requestInit }),
    })
  }
  const [command, ...rest] = server.command
  return new sdk.StdioClientTransport({
    command,
    args: rest,
    stderr: 'ignore',
    maxBufferSize: bounds.bytes,
    env: { ...sdk.getDefaultEnvironment(), ...server.variables },
    ...(server.folder !== undefined && { cwd: server.folder }),
  })
}

interface ListedTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: object
  readonly outputSchema?: JsonSchema | undefined
}

const mostPages = 100

/** Asked plainly: the client's own `listTools` and `callTool` check answers by a validator without limits. */
async function listTools(
  client: Client,
  { sdk, signal }: Call & { readonly sdk: Sdk },
): Promise<ListedTool[]> {
  const listed: ListedTool[] = []
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const request = {
      method: 'tools/list' as const,
      params: cursor === undefined ? {} : { cursor },
    }
    const answer = await client.request(request, sdk.ListToolsResultSchema, { signal })
    listed.push(...answer.tools)
    cursor = answer.nextCursor
    if (cursor === undefined) return withNames(listed)
  }
  throw new Error(`the list of its tools has no end within ${mostPages} pages`)
}

/** A call says no more than a name, so each tool needs one of its own. */
function withNames(listed: ListedTool[]): ListedTool[] {
  const names = new Set<string>()
  for (const { name } of listed) {
    if (name.trim() === '') throw new Error('it lists a tool without a name')
    if (names.has(name)) throw new Error(`it lists two tools called ${name}`)
    names.add(name)
  }
  return listed
}

function choose(
  listed: readonly ListedTool[],
  { only }: McpOptions,
  server: string,
): readonly ListedTool[] {
  if (!only) return listed
  const missing = only.filter(name => !listed.some(item => item.name === name))
  if (missing.length === 0) return listed.filter(item => only.includes(item.name))
  const names = listed.map(item => item.name).join(', ')
  throw new Failure('tool', {
    cause: new Error(`MCP server ${server} has no tool ${missing.join(', ')}. It has: ${names}.`),
  })
}

interface ToolContext extends McpOptions {
  readonly sdk: Sdk
  readonly server: string
  readonly watch: Watch
  readonly pingSeconds: number
}

function toTool(listed: ListedTool, client: Client, context: ToolContext): OfferedTool {
  const { name, description, inputSchema, outputSchema } = listed
  const { sdk, limits, effects = 'outside', pingSeconds } = context
  const { seconds = defaultLimits.seconds } = limits ?? {}
  const problemsOf = outputSchema && validatorOf(outputSchema)
  return {
    inputSchema,
    effects,
    ...(description !== undefined && { description }),
    // The call's own limit ends first; the rest is time for two pings.
    limits: { ...limits, seconds: seconds + 2 * pingSeconds },
    async execute(input: Record<string, unknown>, { abortSignal }: ToolExecution) {
      const timeout = delayOf(seconds)
      const request = { method: 'tools/call' as const, params: { name, arguments: input } }
      const answer = await client
        .request(request, sdk.CallToolResultSchema, { signal: abortSignal, timeout })
        .catch(async cause => {
          throw await attribute(cause, client, { ...context, seconds })
        })
      const parts = partsOf(answer.content)
      const text = parts ? textOfParts(parts) : textOfAnswer(answer)
      if (answer.isError) throw new Error(text)
      const problems = problemsOf?.(answer.structuredContent) ?? []
      if (problems.length === 0) return parts ?? text
      const why = `answers ${name} against its own schema: ${problems.slice(0, 5).join('; ')}`
      throw new Failure('tool', { cause: new Error(`MCP server ${context.server} ${why}`) })
    },
  }
}

/**
 * Decides who is to blame. Errors that the server reports, and tools that time out while the server
 * still answers, are shown to the policy; a server that is gone, hangs or answers wrongly fails the
 * attempt.
 */
async function attribute(
  cause: unknown,
  client: Client,
  { sdk, server, watch, seconds, pingSeconds }: ToolContext & { readonly seconds: number },
): Promise<unknown> {
  const broken = (why: string): Failure =>
    new Failure('tool', { cause: new Error(`MCP server ${server} ${why}`, { cause }) })
  if (watch.broken !== undefined) return broken(`fails: ${watch.broken}`)
  if (!(cause instanceof sdk.McpError)) return broken(`does not answer: ${String(cause)}`)
  if (cause.code === sdk.ErrorCode.ConnectionClosed) {
    return broken(`does not answer: ${String(cause)}`)
  }
  if (cause.code !== sdk.ErrorCode.RequestTimeout) return cause
  watch.givenUp()
  const lives = await client.ping({ timeout: delayOf(pingSeconds) }).catch(() => undefined)
  if (lives) return new DeadlineError(seconds)
  return broken(`hangs: no answer within ${seconds} seconds, nor to a ping in ${pingSeconds} more`)
}

function textOfAnswer(answer: Readonly<Record<string, unknown>>): string {
  const parts: readonly unknown[] = Array.isArray(answer.content) ? answer.content : []
  if (parts.length > 0) return parts.map(textOfPart).join('\n')
  return JSON.stringify(answer.structuredContent ?? answer.toolResult ?? null)
}

function textOfPart(part: unknown): string {
  const { type, text, mimeType, uri, resource } = part as Readonly<Record<string, unknown>>
  if (type === 'text') return String(text)
  if (type === 'resource') return JSON.stringify(resource)
  return `[${String(type)} ${String(mimeType ?? uri ?? '')}]`
}
