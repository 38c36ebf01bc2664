import type { Message } from '@espalier/text'
import { z } from 'zod'
import { late, lateSchema } from '../late.ts'

/** The fields that say what a task asks: `prompt` for one user message, or all `messages`. */
export const promptFields = late(() => {
  const content = z.union([
    z.string(),
    z.array(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('text'), text: z.string() }),
        z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) }),
      ]),
    ),
  ])
  const oneAnswer = z.union([z.string(), z.number()])
  return {
    prompt: z.string().optional(),
    messages: z.array(messageWith(content)).min(1).optional(),
    answer: z.union([oneAnswer, z.array(oneAnswer).min(1)]).optional(),
  }
})

function messageWith<Content extends z.ZodType>(content: Content) {
  const toolCall = z.object({
    id: z.string(),
    type: z.literal('function'),
    function: z.object({ name: z.string(), arguments: z.string() }),
  })
  return z.discriminatedUnion('role', [
    z.object({ role: z.enum(['system', 'developer']), content }),
    z.object({ role: z.literal('user'), content }),
    z.object({
      role: z.literal('assistant'),
      content: content.nullable(),
      reasoning_content: z.string().exactOptional(),
      tool_calls: z.array(toolCall).exactOptional(),
    }),
    z.object({
      role: z.literal('tool'),
      content,
      tool_call_id: z.string(),
      name: z.string().exactOptional(),
    }),
  ])
}

/** Whether a task has exactly one of `prompt` and `messages`. */
export function asksOnce(task: { prompt?: unknown; messages?: unknown }): boolean {
  return (task.prompt === undefined) !== (task.messages === undefined)
}

/** The error for a task that has neither or both. */
export const asksOnceError = 'give either `prompt` (a text) or `messages`'

function makeSchema() {
  return z.object(promptFields()).refine(asksOnce, { error: asksOnceError })
}

/** Task data of the built-in environments: `prompt` or `messages`, and the right `answer`. */
export const promptTask = lateSchema(makeSchema)

/** Task data of the built-in environments. */
export type PromptTask = z.output<ReturnType<typeof makeSchema>>

/** The messages a task opens with. */
export function openingOf({ prompt, messages }: PromptTask): readonly Message[] {
  return messages ?? [{ role: 'user', content: prompt ?? '' }]
}
