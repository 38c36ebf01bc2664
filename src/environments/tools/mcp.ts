import type { Call } from '../../core/call.ts'
import { Failure } from '../../core/failure.ts'
import type { ToolExecution, ToolLimits } from '../../core/tool.ts'
import { withDeadline } from '../deadline.ts'
import type { WorldCall } from '../opened-world.ts'
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
}

/** A connected server and its tools. */
export interface McpTools extends AsyncDisposable {
  readonly tools: Readonly<Record<string, OfferedTool>>
}

type Sdk = Awaited<ReturnType<typeof importSdk>>
type Client = InstanceType<Sdk['Client']>

/**
 * Connects to an MCP server and lists its tools. Inside `open`, give it the call it was given: the
 * connection then closes with the world. Elsewhere, dispose of what it returns.
 */
export async function openMcpTools(
  server: McpServer,
  call: Call & Partial<Pick<WorldCall, 'defer'>>,
  options: McpOptions = {},
): Promise<McpTools> {
  const sdk = await importSdk()
  const client = new sdk.Client({ name: 'espalier', version: '1' })
  const transport = transportTo(server, sdk)
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
      return await listTools(client, { signal })
    })
    call.defer?.(close)
    const chosen = choose(listed, options, nameOf(server))
    const tools = chosen.map(item => [
      `${options.prefix ?? ''}${item.name}`,
      toTool(item, client, { ...options, sdk, server: nameOf(server) }),
    ])
    return { tools: Object.fromEntries(tools), [Symbol.asyncDispose]: close }
  } catch (cause) {
    await close()
    call.signal.throwIfAborted()
    if (cause instanceof Failure) throw cause
    throw new Failure('tool', {
      cause: new Error(`No tools from MCP server ${nameOf(server)}: ${String(cause)}`, { cause }),
    })
  }
}

async function importSdk() {
  try {
    // Each awaited where it stands: bundlers then let a package be missing that was not installed.
    const client = await import('@modelcontextprotocol/sdk/client/index.js')
    const stdio = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const http = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const types = await import('@modelcontextprotocol/sdk/types.js')
    return { ...client, ...stdio, ...http, ...types }
  } catch (cause) {
    const message =
      'MCP servers need a package that is not installed: npm i @modelcontextprotocol/sdk'
    throw new Error(message, { cause })
  }
}

function nameOf(server: McpServer): string {
  return 'url' in server ? server.url : server.command.join(' ')
}

function transportTo(server: McpServer, sdk: Sdk) {
  if ('url' in server) {
    const requestInit = server.headers && { headers: { ...server.headers } }
    return new sdk.StreamableHTTPClientTransport(new URL(server.url), {
      ...(requestInit && { requestInit }),
    })
  }
  const [command, ...rest] = server.command
  return new sdk.StdioClientTransport({
    command,
    args: rest,
    stderr: 'ignore',
    env: { ...sdk.getDefaultEnvironment(), ...server.variables },
    ...(server.folder !== undefined && { cwd: server.folder }),
  })
}

interface ListedTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: object
}

const mostPages = 100

async function listTools(client: Client, { signal }: Call): Promise<ListedTool[]> {
  const listed: ListedTool[] = []
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const answer = await client.listTools(cursor === undefined ? {} : { cursor }, { signal })
    listed.push(...answer.tools)
    cursor = answer.nextCursor
    if (cursor === undefined) return listed
  }
  throw new Error(`the list of its tools has no end within ${mostPages} pages`)
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
}

function toTool(listed: ListedTool, client: Client, context: ToolContext): OfferedTool {
  const { name, description, inputSchema } = listed
  const { limits, effects = 'outside', sdk, server } = context
  return {
    inputSchema,
    effects,
    ...(description !== undefined && { description }),
    ...(limits && { limits }),
    async execute(input: Record<string, unknown>, { abortSignal }: ToolExecution) {
      const answer = await client
        // The tool's own limit ends it; the client's must not come first.
        .callTool({ name, arguments: input }, undefined, {
          signal: abortSignal,
          timeout: 2 ** 31 - 1,
        })
        .catch(cause => {
          throw attribute(cause, sdk, server)
        })
      const text = textOfAnswer(answer)
      if (answer.isError) throw new Error(text)
      return text
    },
  }
}

/** What the server says is wrong is the policy's to read; a server that is gone fails the attempt. */
function attribute(cause: unknown, sdk: Sdk, server: string): unknown {
  const isAnswer = cause instanceof sdk.McpError && cause.code !== sdk.ErrorCode.ConnectionClosed
  if (isAnswer) return cause
  return new Failure('tool', {
    cause: new Error(`MCP server ${server} does not answer: ${String(cause)}`, { cause }),
  })
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
