import { Agent, handoff, Runner, setTracingDisabled, tool } from '@openai/agents'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { rollScript } from '../../../../test/roll-script.ts'
import { call } from '../../../../test/rolling.ts'

setTracingDisabled(true)

const look = tool({
  name: 'look',
  description: 'Looks.',
  parameters: z.object({ at: z.string() }),
  execute: async ({ at }) => `${at} is open`,
})

describe('the model provider for the OpenAI Agents SDK', () => {
  it('runs an agent with tools and thoughts, exact to the token', async () => {
    const answers = [`<think>\nI look.\n</think>\n\n${call('look', { at: 'door' })}`, 'It is open.']
    const { report, fidelity, calls } = await rollScript(async ({ task, modelProvider }) => {
      const agent = new Agent({ name: 'looker', instructions: 'Look first.', tools: [look] })
      const { finalOutput } = await new Runner({ modelProvider }).run(agent, task.question)
      return finalOutput
    }, answers)
    expect(report).toBe('It is open.')
    expect(calls).toMatchObject([{ tool: 'look', output: 'door is open' }])
    expect(fidelity).toEqual({ kind: 'exact', forks: [] })
  })

  it('keeps a handoff to another agent as a fork with its cause, streamed too', async () => {
    const answers = [call('transfer_to_closer', {}), 'Closed.']
    const { report, events, turns } = await rollScript(async ({ task, modelProvider }) => {
      const closer = new Agent({ name: 'closer', instructions: 'Close it.' })
      const first = new Agent({
        name: 'first',
        instructions: 'Hand over.',
        handoffs: [handoff(closer)],
      })
      const runner = new Runner({ modelProvider })
      const result = await runner.run(first, task.question, { stream: true })
      await result.completed
      return result.finalOutput
    }, answers)
    expect(report).toBe('Closed.')
    expect(turns).toHaveLength(2)
    expect(events.map(({ kind }) => kind)).toContain('fork:conversation')
  })

  it('reads images as images, which a policy that is sent tokens is never shown as text', async () => {
    const png = 'data:image/png;base64,AAAA'
    const shoot = tool({
      name: 'shoot',
      description: 'Takes a picture.',
      parameters: z.object({}),
      execute: async () => ({
        type: 'image' as const,
        image: { data: 'AAAA', mediaType: 'image/png' },
      }),
    })
    const picture = { type: 'input_image' as const, image: png }
    const inputs = ['Shoot.', [{ role: 'user' as const, content: [picture] }]]
    for (const input of inputs) {
      const rolled = rollScript(
        async ({ modelProvider }) => {
          const agent = new Agent({ name: 'looker', instructions: 'Look.', tools: [shoot] })
          return (await new Runner({ modelProvider }).run(agent, input)).finalOutput
        },
        [call('shoot', {}), 'A door.'],
      )
      await expect(rolled).rejects.toThrow(/messages\[\d\] has an image: .*reads text only/)
    }
  })
})
