// Tools with three kinds of schema, several calls in one turn, and what mistakes look like: each is
// an observation that the policy can learn from, and a problem that the run counts.
//   npx tsx examples/102-tools.ts
import { environment, roll, tool } from 'espalier'
import { scripted } from 'espalier/testing'
import { z } from 'zod'

const kitchen = environment({
  name: 'kitchen',
  task: z.object({ dish: z.string() }),
  open({ data }) {
    const shelf = new Map(Object.entries({ flour: 500, milk: 250 }))
    // zod: the input has the type of the schema.
    const take = tool({
      description: 'Takes grams of something off the shelf.',
      inputSchema: z.object({ what: z.string(), grams: z.int().positive() }),
      execute({ what, grams }) {
        const left = shelf.get(what)
        if (left === undefined) throw new Error(`there is no ${what}`)
        shelf.set(what, left - grams)
        return `${left - grams} g of ${what} left`
      },
    })
    // Plain JSON schema: the input is checked as well, and unknown to the compiler.
    const look = tool({
      inputSchema: { type: 'object', properties: {}, additionalProperties: false },
      execute: () => Object.fromEntries(shelf),
    })
    // The shape of the AI SDK's jsonSchema(), with a check of its own.
    const seconds = { type: 'object', properties: { seconds: { type: 'number' } } }
    const wait = tool({
      inputSchema: {
        jsonSchema: seconds,
        validate: (value: unknown) => ({ success: true, value }),
      },
      execute: input => `waited: ${JSON.stringify(input)}`,
    })
    const opening = [{ role: 'user', content: `Make ${data.dish}.` }] as const
    return { opening, tools: { take, look, wait }, report: () => Object.fromEntries(shelf) }
  },
  reward: { used: ({ report }) => Number(report.flour === 300) },
})

const call = (name: string, input: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`
const flour = call('take', { what: 'flour', grams: 200 })
const milk = call('take', { what: 'milk', grams: 'a cup' })
const eggs = call('take', { what: 'eggs', grams: 60 })
const broken = '<tool_call>\n{"name": "take", "arguments": {"what"\n</tool_call>'
const policy = await scripted([
  call('look', {}) + flour + call('wait', { seconds: 1 }),
  milk + eggs,
  call('fry', {}) + broken,
  'Pancakes, without eggs.',
])

for await (const { members } of roll(kitchen, [{ dish: 'pancakes' }], { policy, group: 1 })) {
  for (const { trajectory, reward } of members) {
    for (const { turn, tool, problem = 'fine', output } of trajectory.calls) {
      console.log(`turn ${turn}  ${tool.padEnd(5)} ${problem.padEnd(18)} ${output}`)
    }
    console.log(`reward ${reward.total}, and the world says ${JSON.stringify(trajectory.report)}`)
  }
}
