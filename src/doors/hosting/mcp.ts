import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import type { HostSession } from './host.ts'
import { textOfMessages } from './hosted-world.ts'

/** The codes of JSON-RPC. */
export const rpcCodes = {
  notJson: -32700,
  notRequest: -32600,
  noMethod: -32601,
  badParams: -32602,
  internal: -32603,
  server: -32000,
} as const

const request = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(200), z.number()]).nullish(),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
})

const callParams = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).nullish(),
})

/** A request of JSON-RPC, or what is wrong with it. */
export type RpcRequest = z.output<typeof request>

/** Reads a request; undefined if it is not one. */
export function readRpc(body: unknown): RpcRequest | undefined {
  return request.safeParse(body).data
}

/** An error as JSON-RPC has it. */
export function rpcError(id: unknown, code: number, message: string, data: unknown = null): object {
  return { jsonrpc: '2.0', id: id ?? null, error: { code, message, data } }
}

/** A result as JSON-RPC has it. */
export function rpcResult(id: unknown, result: unknown): object {
  return { jsonrpc: '2.0', id: id ?? null, result }
}

const protocols = ['2025-06-18', '2025-03-26', '2024-11-05']

/**
 * The kind of client: MCP clients read a wrong call's problem in its result, OpenEnv's clients expect
 * a JSON-RPC error.
 */
export type RpcClient = 'mcp' | 'openenv'

/** Answers a request of MCP in a session; a notification has no answer. */
export async function answerRpc(
  body: unknown,
  session: HostSession,
  client: RpcClient,
): Promise<object | undefined> {
  const asked = readRpc(body)
  if (!asked) return rpcError(undefined, rpcCodes.notRequest, 'Invalid request: not JSON-RPC 2.0')
  const { id, method } = asked
  if (method.startsWith('notifications/')) return undefined
  try {
    return await answerMethod(asked, session, client)
  } catch (cause) {
    return rpcError(id, rpcCodes.internal, describeCause(cause))
  }
}

async function answerMethod(
  asked: RpcRequest,
  session: HostSession,
  client: RpcClient,
): Promise<object> {
  const { id, method, params = {} } = asked
  if (method === 'ping') return rpcResult(id, {})
  if (method === 'initialize') return rpcResult(id, await greeting(params, session))
  if (method === 'tools/list') {
    const { tools } = await session.world()
    const listed = tools.map(({ schema, ...tool }) => ({ ...tool, inputSchema: schema }))
    return rpcResult(id, { tools: listed })
  }
  if (method !== 'tools/call') {
    return rpcError(id, rpcCodes.noMethod, `Method not found: ${method.slice(0, 100)}`)
  }
  const call = callParams.safeParse(params)
  if (!call.success) return rpcError(id, rpcCodes.badParams, "Missing 'name' in params")
  const { text, problem, ...result } = await callTool(call.data, session)
  if (problem && client === 'openenv') return rpcError(id, rpcCodes.internal, text)
  return rpcResult(id, { ...result, isError: problem !== undefined })
}

/** The answer to `initialize`; the world's opening is sent as the instructions. */
async function greeting(params: Readonly<Record<string, unknown>>, session: HostSession) {
  const asked = String(params.protocolVersion)
  const { opening } = await session.world()
  return {
    protocolVersion: protocols.includes(asked) ? asked : protocols[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'espalier', version: packageVersion() },
    instructions: textOfMessages(opening),
  }
}

/** The result of a call; its reward and whether the task is over stand beside the content. */
async function callTool(call: z.output<typeof callParams>, session: HostSession) {
  const world = await session.world()
  const { text, problem, reward, isDone } = await world.call(call.name, call.arguments ?? {})
  return {
    text,
    problem,
    content: [{ type: 'text', text }],
    ...(problem === undefined && { data: text }),
    _meta: { done: isDone, ...(reward !== undefined && { reward }) },
  }
}
