import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeLanes } from '../../base/core/lane.ts'
import { environment } from './environment.ts'
import { withPrompt } from './prompted.ts'
import { tool } from './tools/tool.ts'

const shop = environment({
  name: 'shop',
  task: z.object({ wanted: z.int() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: `Sell ${data.wanted}.` }],
    tools: { sell: tool({ description: 'Sells.', inputSchema: z.object({}), execute: () => 1 }) },
  }),
  reward: { right: () => 1 },
})
const call = {
  signal: new AbortController().signal,
  seed: 1,
  lanes: makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 }),
}
const task = { id: '1' as never, data: { wanted: 3 } }

describe('an environment with another prompt', () => {
  it('says the system message before the opening, or in place of the one there was', async () => {
    const once = withPrompt(shop, { system: 'Be brief.' })
    const twice = withPrompt(once, { system: 'Be kind.' })
    const openings = [once, twice].map(async each => (await each.open(task, call)).opening)
    expect(await Promise.all(openings)).toEqual([
      [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Sell 3.' },
      ],
      [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Sell 3.' },
      ],
    ])
  })

  it('changes the descriptions of tools that it names, and no others', async () => {
    const { tools } = await withPrompt(shop, { tools: { sell: 'Sells one.', buy: 'Buys.' } }).open(
      task,
      call,
    )
    expect(tools.map(each => each.function.description)).toEqual(['Sells one.'])
    const same = await withPrompt(shop, {}).open(task, call)
    expect(same.tools[0]!.function.description).toBe('Sells.')
  })
})
