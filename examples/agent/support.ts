// An ordinary AI SDK agent: it helps a customer of a shop with three tools. Nothing in here knows
// that it may be trained; the caller passes the model.
import { generateText, type LanguageModel, stepCountIs, tool } from 'ai'
import { z } from 'zod'

/** An order as the shop's database has it. */
export interface Order {
  readonly item: string
  readonly status: 'lost' | 'late' | 'damaged' | 'delivered'
  readonly customer: 'gold' | 'basic'
}

/** What was done for the customer. */
export interface Help {
  readonly done: 'nothing' | 'replaced' | 'refunded half' | 'refunded full'
  /** Whether the agent looked at the order. */
  readonly looked: boolean
  readonly text: string
}

export async function support(model: LanguageModel, order: Order, question: string): Promise<Help> {
  let done: Help['done'] = 'nothing'
  let looked = false
  const { text } = await generateText({
    model,
    system: 'You help customers of a shop.',
    prompt: question,
    stopWhen: stepCountIs(4),
    tools: {
      order: tool({
        description: 'The order of this customer.',
        inputSchema: z.object({}),
        execute: () => {
          looked = true
          return `${order.item} ${order.status}, ${order.customer} customer`
        },
      }),
      refund: tool({
        description: 'Gives money back.',
        inputSchema: z.object({ share: z.enum(['half', 'full']) }),
        execute: ({ share }) => {
          done = `refunded ${share}`
          return 'refunded'
        },
      }),
      replace: tool({
        description: 'Sends the item again.',
        inputSchema: z.object({}),
        execute: () => {
          done = 'replaced'
          return 'sent again'
        },
      }),
    },
  })
  return { done, looked, text }
}
