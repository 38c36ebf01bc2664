import { z } from 'zod'
import { Rollouts } from '../src/doors/service/rollouts.ts'
import { serveRollouts } from '../src/doors/service/rollouts-server.ts'
import { Worlds, type WorldsOptions } from '../src/doors/service/rollouts-worlds.ts'
import { environment } from '../src/engine/environments/environment.ts'
import { tool } from '../src/engine/environments/tools/tool.ts'
import { makeEstimate } from '../src/engine/weigh/estimate.ts'
import { dicePolicy, openByteRenderer } from './rolling.ts'

/** What happens besides counting. */
export interface CountingOptions extends Partial<WorldsOptions> {
  /** Called with every world that opens. */
  readonly onOpen?: () => void
  /** Waited for by every call before it counts. */
  readonly onCall?: () => Promise<void> | undefined
}

/** Worlds whose reward is the number of calls of `add` that were run in them. */
export function countingEnvironment({ onOpen, onCall }: CountingOptions) {
  return environment({
    name: 'counting',
    task: z.object({ ends: z.number().default(1000) }),
    open({ data }) {
      onOpen?.()
      let count = 0
      const add = tool({
        description: 'Adds one.',
        inputSchema: z.object({}),
        async execute() {
          await onCall?.()
          return String(++count)
        },
      })
      return {
        opening: [{ role: 'user', content: 'Count.' }],
        tools: { add },
        isOver: () => count >= data.ends,
        report: () => ({ count }),
      }
    },
    reward: { count: ({ report }) => report.count },
  })
}

/** Serves such worlds as `espalier rollouts` does. */
export async function openCountingService(
  options: CountingOptions = {},
): Promise<AsyncDisposable & { readonly url: string }> {
  const { onOpen: _open, onCall: _call, ...limits } = options
  const renderer = await openByteRenderer()
  const world = countingEnvironment(options)
  const policy = dicePolicy(renderer)
  const rollouts = new Rollouts({
    parts: { environment: world, policy, renderer, estimate: makeEstimate('grpo') },
    openPolicy: async () => policy,
    findTask: async () => undefined,
  })
  const worlds = new Worlds({ environment: world, reward: world.reward, ...limits })
  const server = await serveRollouts({ rollouts, worlds }, { port: 0 })
  return {
    url: server.url,
    async [Symbol.asyncDispose]() {
      for (const each of [server, worlds, rollouts]) await each[Symbol.asyncDispose]()
    },
  }
}
