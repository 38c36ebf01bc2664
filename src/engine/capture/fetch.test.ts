import Anthropic from '@anthropic-ai/sdk'
import { type FunctionCall, GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { rollScript } from '../../../test/roll-script.ts'
import { call } from '../../../test/rolling.ts'

const thought = `<think>\nI look.\n</think>\n\n${call('look', { at: 'door' })}`

describe("an agent's fetch", () => {
  it('serves an agent loop of the OpenAI client, streamed and not', async () => {
    const { report, fidelity, asked } = await rollScript(
      async ({ task, fetch }) => {
        const client = new OpenAI({ apiKey: 'none', fetch, maxRetries: 0 })
        const tools = [
          { type: 'function' as const, function: { name: 'look', parameters: { type: 'object' } } },
        ]
        const messages: OpenAI.ChatCompletionMessageParam[] = [
          { role: 'user', content: task.question },
        ]
        const first = await client.chat.completions.create({ model: 'any', messages, tools })
        const { message } = first.choices[0]!
        messages.push(message)
        for (const { id } of message.tool_calls ?? []) {
          messages.push({ role: 'tool', tool_call_id: id, content: 'open' })
        }
        const stream = await client.chat.completions.create({
          model: 'any',
          messages,
          tools,
          stream: true,
        })
        let text = ''
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
        return { finish: first.choices[0]!.finish_reason, text }
      },
      [thought, 'Yes, it is open.'],
    )
    expect(report).toEqual({ finish: 'tool_calls', text: 'Yes, it is open.' })
    expect({ fidelity, asked }).toEqual({ fidelity: { kind: 'exact', forks: [] }, asked: 2 })
  })

  it("[T2] goes on from reasoning that the OpenAI client's own stream put together", async () => {
    const { report, fidelity } = await rollScript(
      async ({ task, fetch }) => {
        const client = new OpenAI({ apiKey: 'none', fetch, maxRetries: 0 })
        const messages: OpenAI.ChatCompletionMessageParam[] = [
          { role: 'user', content: task.question },
        ]
        const ask = async () => {
          const stream = client.chat.completions.stream({ model: 'any', messages })
          return (await stream.finalChatCompletion()).choices[0]!.message
        }
        const first = await ask()
        messages.push(first, { role: 'user', content: 'Sure?' })
        await ask()
        return first as unknown as Record<string, string>
      },
      ['<think>\nIs it open?\nI look.\n</think>\nIt is.', 'Yes.'],
    )
    expect(report).toMatchObject({
      content: 'It is.',
      reasoning_content: 'Is it open?\nI look.',
    })
    expect(fidelity).toEqual({ kind: 'exact', forks: [] })
  })

  it('serves an agent loop of the Anthropic client, thinking and counting included', async () => {
    const { report, fidelity } = await rollScript(
      async ({ task, fetch }) => {
        const client = new Anthropic({ apiKey: 'none', fetch, maxRetries: 0 })
        const asked = {
          model: 'any',
          max_tokens: 500,
          tools: [{ name: 'look', input_schema: { type: 'object' as const } }],
        }
        const messages: Anthropic.MessageParam[] = [{ role: 'user', content: task.question }]
        const { input_tokens } = await client.messages.countTokens({
          model: 'any',
          messages,
          tools: asked.tools,
        })
        const first = await client.messages.create({ ...asked, messages })
        const use = first.content.find(block => block.type === 'tool_use')!
        messages.push(
          { role: 'assistant', content: first.content },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: use.id, content: 'open' }],
          },
        )
        const last = await client.messages.stream({ ...asked, messages }).finalMessage()
        return {
          isCounted: input_tokens === first.usage.input_tokens,
          kinds: first.content.map(({ type }) => type),
          text: last.content.map(block => (block.type === 'text' ? block.text : '')).join(''),
        }
      },
      [thought, 'Yes, it is open.'],
    )
    expect(report).toEqual({
      isCounted: true,
      kinds: ['thinking', 'tool_use'],
      text: 'Yes, it is open.',
    })
    expect(fidelity).toEqual({ kind: 'exact', forks: [] })
  })

  it('serves a chat of the Google client, streamed and not', async () => {
    const answers = [
      `<think>\nI look.\n</think>\n\n${call('look', { at: 'door' })}`,
      'Open.',
      'Yes.',
    ]
    const { report, fidelity } = await rollScript(async ({ task, fetch }) => {
      const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { fetch } })
      const functionDeclarations = [{ name: 'look' }]
      const chat = client.chats.create({
        model: 'any',
        config: { tools: [{ functionDeclarations }] },
      })
      const { functionCalls = [] } = await chat.sendMessage({ message: task.question })
      const [{ id, name }] = functionCalls as [FunctionCall]
      const functionResponse = { id: id!, name: name!, response: { output: 'It is.' } }
      const { text } = await chat.sendMessage({ message: [{ functionResponse }] })
      const said: (string | undefined)[] = [text]
      for await (const piece of await chat.sendMessageStream({ message: 'Sure?' })) {
        said.push(piece.text)
      }
      return said.join('')
    }, answers)
    expect(report).toBe('Open.Yes.')
    expect(fidelity).toEqual({ kind: 'exact', forks: [] })
  })

  it('refuses images where the policy only reads', async () => {
    const { report } = await rollScript(
      async ({ fetch, speaker, signal }) => {
        const client = new OpenAI({ apiKey: 'none', fetch, maxRetries: 0 })
        await speaker.say([{ role: 'user', content: 'Look.' }], { signal })
        const url = 'data:image/png;base64,AAAA'
        const content = [{ type: 'image_url' as const, image_url: { url } }]
        const asked = { model: 'any', messages: [{ role: 'user' as const, content }] }
        return await client.chat.completions.create(asked).then(
          () => 'answered',
          (refused: Error) => refused.message,
        )
      },
      ['Where?'],
    )
    expect(report).toMatch(/^400 messages\[0\] has an image: .*reads text only/)
  })

  it('tells what it does not answer', async () => {
    const { report } = await rollScript(
      async ({ fetch, speaker, signal }) => {
        const response = await fetch('https://example.org/weather')
        await speaker.say([{ role: 'user', content: 'Then tell me.' }], { signal })
        return response.status
      },
      ['It rains.'],
    )
    expect(report).toBe(404)
  })
})
