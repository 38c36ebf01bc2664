import type { AssistantMessage, Renderer, ToolDefinition } from '@espalier/text'
import type { Environment, Task } from '../src/base/core/environment.ts'
import type { Group } from '../src/base/core/group.ts'
import { makeLanes } from '../src/base/core/lane.ts'
import type { Policy } from '../src/base/core/policy.ts'
import type { Tree } from '../src/base/core/tree.ts'
import { type OpenGatewayOptions, openGateway } from '../src/doors/gateway/open-gateway.ts'
import { type GatewayServerOptions, serveGateway } from '../src/doors/gateway/server.ts'
import { elsewhere } from '../src/engine/environments/elsewhere.ts'
import { openEnvironment } from '../src/engine/environments/registry.ts'
import { makeEstimate } from '../src/engine/weigh/estimate.ts'
import type { RollParts } from '../src/run/run/roll-groups.ts'

/** What a gateway of a test is made of. */
export interface TestGatewayOptions
  extends Omit<OpenGatewayOptions, 'parts'>,
    Pick<GatewayServerOptions, 'host' | 'bodyBytes'> {
  readonly policy: Policy
  readonly renderer: Renderer
  readonly parts?: Partial<RollParts>
}

/** A gateway on a free port that keeps in memory what it would write. */
export async function openTestGateway(options: TestGatewayOptions) {
  const { policy, renderer, parts = {}, host, bodyBytes, ...more } = options
  const trees: Tree[] = []
  const groups: Group[] = []
  const gateway = openGateway({
    ...more,
    parts: {
      environment: elsewhere as Environment,
      policy,
      renderer,
      estimate: makeEstimate('grpo'),
      group: 1,
      writer: {
        writeTree: async tree => void trees.push(tree),
        writeGroup: async group => void groups.push(group),
        writeSent: async () => undefined,
        complete: async () => undefined,
        [Symbol.asyncDispose]: async () => undefined,
      },
      ...parts,
    },
  })
  const server = await serveGateway(gateway, {
    port: 0,
    ...(host !== undefined && { host }),
    ...(bodyBytes !== undefined && { bodyBytes }),
  })
  const send = async (path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return {
    url: server.url,
    gateway,
    trees,
    groups,
    send,
    /** Opens an attempt; gives its name and its token. */
    async open(task: string) {
      const { body } = await send('/attempts', { task })
      return body as { id: string; token: string; urls: Record<string, string> }
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await gateway[Symbol.asyncDispose]()
    },
  }
}

/** The world that agents of tests work in: a desk's, whose tools the embedded model knows. */
export async function openDesk(index: number) {
  const environment = await openEnvironment('desk', {})
  const task = environment.makeTasks!({ count: index + 1, seed: 1 })[index] as Task
  const { signal } = new AbortController()
  const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
  const world = await environment.open(task, { signal, seed: 1, lanes })
  const ask = String(world.opening[0].content)
  const tools: readonly ToolDefinition[] = world.tools
  const [{ order }] = (task.data as { requests: [{ order: number }] }).requests
  let turn = 0
  let hasReplied = false
  return {
    ask,
    /** What the customer says to words of the agent: the order's number, once. */
    reply(): string | undefined {
      if (hasReplied) return undefined
      hasReplied = true
      return String(order)
    },
    tools,
    /** What a tool answers. */
    async call(name: string, input: unknown): Promise<string> {
      const given = JSON.stringify(input)
      const call = { id: 'call', type: 'function', function: { name, arguments: given } } as const
      const message: AssistantMessage = { role: 'assistant', content: null, tool_calls: [call] }
      const action = {
        message,
        calls: [{ kind: 'parsed', id: 'call', name, arguments: given }] as const,
      }
      const step = await world.step(action, { signal, messages: [message], turn: turn++ })
      return String(step.observed?.[0]?.content ?? 'done')
    },
  }
}
