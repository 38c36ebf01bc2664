// Support triage: a ticket comes in, its customer is looked up, and it goes to a queue with a
// priority, or is closed. docs/start/your-environment.md takes it from here to a trained model.
import { environment, tool } from 'espalier'
import { z } from 'zod'

const queue = z.enum(['billing', 'technical', 'shipping'])
const priority = z.enum(['high', 'normal'])

export const triage = environment({
  name: 'triage',
  task: z.object({
    customer: z.string(),
    plan: z.enum(['gold', 'free']),
    ticket: z.string(),
    /** Where it belongs; `spam` is closed. */
    right: z.enum([...queue.options, 'spam']),
  }),
  open({ data }) {
    let done: { queue: string; priority?: string } | undefined
    let hasLooked = false
    return {
      opening: [
        { role: 'system', content: 'Look the customer up, then route the ticket. Close spam.' },
        { role: 'user', content: `${data.customer} writes: ${data.ticket}` },
      ],
      tools: {
        customer: tool({
          description: 'What is known of a customer',
          inputSchema: z.object({ name: z.string() }),
          execute({ name }) {
            if (name !== data.customer) return 'no such customer'
            hasLooked = true
            return `plan ${data.plan}`
          },
        }),
        route: tool({
          description: 'Puts the ticket into a queue',
          inputSchema: z.object({ queue, priority }),
          execute(routed) {
            done ??= routed
            return 'routed'
          },
        }),
        close: tool({
          description: 'Closes the ticket as spam',
          inputSchema: z.object({}),
          execute() {
            done ??= { queue: 'spam' }
            return 'closed'
          },
        }),
      },
      report: () => ({ ...done, hasLooked }),
    }
  },
  reward: {
    queue: {
      weight: 0.5,
      score: ({ task: { data }, report }) => Number(report.queue === data.right),
    },
    priority: {
      weight: 0.5,
      score: ({ task: { data }, report }) =>
        Number(
          data.right === 'spam'
            ? report.queue === 'spam'
            : report.hasLooked && report.priority === (data.plan === 'gold' ? 'high' : 'normal'),
        ),
    },
  },
})
