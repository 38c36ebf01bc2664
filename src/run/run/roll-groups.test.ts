import type { ToolDefinition } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { environment } from '../../engine/environments/environment.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import type { Instrument } from '../../engine/rollout/attempt.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { watchSamples } from '../watch/telemetry/watch-samples.ts'
import { rollGroups } from './roll-groups.ts'

const renderer = await openByteRenderer()

/** Worlds that make their tools anew, as most do. */
const shop = environment({
  name: 'shop',
  task: z.object({ prompt: z.string() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: data.prompt }],
    tools: { buy: tool({ inputSchema: z.object({ what: z.string() }), execute: () => 'bought' }) },
  }),
  reward: { done: () => 1 },
})

async function listsSeenBy(instruments: readonly Instrument[]): Promise<number> {
  const { policy } = openCountingPolicy({ length: () => 4, end: renderer.stopIds[0]! })
  const lists = new Set<readonly ToolDefinition[]>()
  const watching = {
    ...renderer,
    render(...given: Parameters<typeof renderer.render>) {
      lists.add(given[1])
      return renderer.render(...given)
    },
  }
  const tasks = Array.from({ length: 6 }, (_, id) => ({ id, prompt: `task ${id}` }))
  const parts = { environment: shop, policy, estimate: makeEstimate('grpo'), group: 2 }
  for await (const _ of rollGroups(tasks, { ...parts, renderer: watching, instruments }));
  return lists.size
}

describe('what the attempts of a run share', () => {
  it('is one list for tools that read the same, though every world brings its own', async () => {
    expect(await listsSeenBy([])).toBe(1)
  })

  it('stays shared where instruments make a context for every attempt', async () => {
    expect(await listsSeenBy([watchSamples(() => {}), context => ({ ...context })])).toBe(1)
  })
})
