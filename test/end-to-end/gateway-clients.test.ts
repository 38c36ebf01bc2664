import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema'
import { type Content, GoogleGenAI } from '@google/genai'
import {
  generateObject,
  generateText,
  jsonSchema,
  type ModelMessage,
  stepCountIs,
  streamText,
  tool,
} from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findModelOf, openRenderer } from '../../src/run/settings/model-source.ts'
import { openPolicy } from '../../src/run/settings/open-policy.ts'
import { expectCaptured, withOwnRecord } from '../captured.ts'
import { openDesk, openTestGateway } from '../gateway.ts'
import { openByteRenderer, script } from '../rolling.ts'

type Desk = Awaited<ReturnType<typeof openDesk>>
type Gateway = Awaited<ReturnType<typeof openTestGateway>>
type Policy = ReturnType<typeof withOwnRecord>

/** An agent: works at the desk until nobody has more to say, at most six times. */
type Agent = (desk: Desk, given: { url: string; token: string; stream: boolean }) => Promise<void>

const steps = 6

const chat: Agent = async (desk, { url, token, stream }) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: desk.ask }]
  for (let step = 0; step < steps; step++) {
    const request = { model: 'm', messages, tools: desk.tools as OpenAI.ChatCompletionTool[] }
    const answer = stream
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request)
    const { message } = answer.choices[0]!
    messages.push(message)
    if (!message.tool_calls) {
      const content = desk.reply()
      if (content === undefined) return
      messages.push({ role: 'user', content })
    }
    for (const call of message.tool_calls ?? []) {
      if (call.type !== 'function') throw new Error('no function')
      const content = await desk.call(call.function.name, JSON.parse(call.function.arguments))
      messages.push({ role: 'tool', tool_call_id: call.id, content })
    }
  }
}

const responses: Agent = async (desk, { url, token, stream }) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token })
  const tools = desk.tools.map(({ function: { name, description, parameters } }) => ({
    type: 'function' as const,
    name,
    description: description ?? null,
    parameters: parameters as Record<string, unknown>,
    strict: false,
  }))
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: desk.ask }]
  for (let step = 0; step < steps; step++) {
    const request = { model: 'm', input, tools, instructions: 'Be kind.' }
    const answer = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request)
    input.push(...(answer.output as OpenAI.Responses.ResponseInput))
    const calls = answer.output.flatMap(item => (item.type === 'function_call' ? item : []))
    if (calls.length === 0) {
      const content = desk.reply()
      if (content === undefined) return
      input.push({ role: 'user', content })
    }
    for (const call of calls) {
      const output = await desk.call(call.name, JSON.parse(call.arguments))
      input.push({ type: 'function_call_output', call_id: call.call_id, output })
    }
  }
}

/** The same, with each request naming the response before it. */
const chained: Agent = async (desk, { url, token }) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token })
  const tools = desk.tools.map(({ function: { name, parameters } }) => ({
    type: 'function' as const,
    name,
    parameters: parameters as Record<string, unknown>,
    strict: false,
  }))
  let input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: desk.ask }]
  let previous: string | null = null
  for (let step = 0; step < steps; step++) {
    const answer: OpenAI.Responses.Response = await client.responses.create({
      model: 'm',
      input,
      tools,
      previous_response_id: previous,
    })
    previous = answer.id
    const calls = answer.output.flatMap(item => (item.type === 'function_call' ? item : []))
    input = []
    if (calls.length === 0) {
      const content = desk.reply()
      if (content === undefined) return
      input.push({ role: 'user', content })
    }
    for (const call of calls) {
      const output = await desk.call(call.name, JSON.parse(call.arguments))
      input.push({ type: 'function_call_output', call_id: call.call_id, output })
    }
  }
}

const anthropic: Agent = async (desk, { url, token, stream }) => {
  const client = new Anthropic({ baseURL: url, apiKey: token })
  const tools = desk.tools.map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? '',
    input_schema: parameters as Anthropic.Tool.InputSchema,
  }))
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: desk.ask }]
  for (let step = 0; step < steps; step++) {
    const request = { model: 'm', max_tokens: 60, system: 'Be kind.', messages, tools }
    const counted = await client.messages.countTokens(request)
    const answer = stream
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request)
    expect(answer.usage.input_tokens + (answer.usage.cache_read_input_tokens ?? 0)).toBe(
      counted.input_tokens,
    )
    messages.push({ role: 'assistant', content: answer.content })
    const calls = answer.content.filter(block => block.type === 'tool_use')
    if (calls.length === 0) {
      const content = desk.reply()
      if (content === undefined) return
      messages.push({ role: 'user', content })
      continue
    }
    const content: Anthropic.ToolResultBlockParam[] = []
    for (const call of calls) {
      const said = await desk.call(call.name, call.input)
      content.push({ type: 'tool_result', tool_use_id: call.id, content: said })
    }
    messages.push({ role: 'user', content })
  }
}

/** Anthropic's own loop, which asks the server to hold the conversation and sends only what is new of it. */
const toolRunner: Agent = async (desk, { url, token, stream }) => {
  const client = new Anthropic({ baseURL: url, apiKey: token })
  const tools = desk.tools.map(({ function: { name, description, parameters } }) => ({
    type: 'custom' as const,
    name,
    description: description ?? '',
    input_schema: parameters as Anthropic.Tool.InputSchema,
    parse: (input: unknown) => input,
    run: (input: unknown) => desk.call(name, input),
  }))
  let messages: Anthropic.Beta.BetaMessageParam[] = [{ role: 'user', content: desk.ask }]
  for (;;) {
    const runner = client.beta.messages.toolRunner({
      model: 'm',
      max_tokens: 60,
      messages,
      tools,
      max_iterations: steps,
      stream,
    })
    await runner.runUntilDone()
    const content = desk.reply()
    if (content === undefined) return
    messages = [...runner.params.messages, { role: 'user', content }]
  }
}

const google: Agent = async (desk, { url, token, stream }) => {
  const client = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: url } })
  const functionDeclarations = desk.tools.map(
    ({ function: { name, description, parameters } }) => ({
      name,
      ...(description !== undefined && { description }),
      parametersJsonSchema: parameters,
    }),
  )
  const contents: Content[] = [{ role: 'user', parts: [{ text: desk.ask }] }]
  for (let step = 0; step < steps; step++) {
    const request = { model: 'm', contents, config: { tools: [{ functionDeclarations }] } }
    const parts: NonNullable<Content['parts']> = []
    if (stream) {
      for await (const piece of await client.models.generateContentStream(request)) {
        parts.push(...(piece.candidates?.[0]?.content?.parts ?? []))
      }
    } else {
      const answer = await client.models.generateContent(request)
      parts.push(...(answer.candidates?.[0]?.content?.parts ?? []))
    }
    contents.push({ role: 'model', parts })
    const calls = parts.flatMap(part => part.functionCall ?? [])
    if (calls.length === 0) {
      const text = desk.reply()
      if (text === undefined) return
      contents.push({ role: 'user', parts: [{ text }] })
      continue
    }
    const answers: Content['parts'] = []
    for (const { id, name, args } of calls) {
      const output = await desk.call(name!, args)
      answers.push({ functionResponse: { id: id!, name: name!, response: { output } } })
    }
    contents.push({ role: 'user', parts: answers })
  }
}

/** An agent of the AI SDK, which runs the loop by itself; over either of OpenAI's dialects. */
const aiSdk =
  (dialect: 'chat' | 'responses'): Agent =>
  async (desk, { url, token, stream }) => {
    const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: token })
    const tools = Object.fromEntries(
      desk.tools.map(({ function: { name, description, parameters } }) => [
        name,
        tool({
          ...(description !== undefined && { description }),
          inputSchema: jsonSchema(parameters),
          execute: (input: unknown) => desk.call(name, input),
        }),
      ]),
    )
    const messages: ModelMessage[] = [{ role: 'user', content: desk.ask }]
    const model = provider[dialect]('m')
    for (;;) {
      const stopWhen = stepCountIs(steps)
      const settings = { model, tools, messages, stopWhen, maxRetries: 0 }
      const { response } = stream ? streamText(settings) : await generateText(settings)
      messages.push(...(await response).messages)
      const content = desk.reply()
      if (content === undefined) return
      messages.push({ role: 'user', content })
    }
  }

const agents: Readonly<Record<string, Agent>> = {
  'openai, chat': chat,
  'openai, responses': responses,
  'openai, responses by reference': chained,
  anthropic,
  'anthropic, tool runner': toolRunner,
  google,
  'AI SDK, chat': aiSdk('chat'),
  'AI SDK, responses': aiSdk('responses'),
}

describe('agents of the official clients', () => {
  let policy: Policy
  let gateway: Gateway

  beforeAll(async () => {
    policy = withOwnRecord(await openPolicy('embedded'))
    const renderer = await openRenderer(await findModelOf(policy))
    gateway = await openTestGateway({ policy, renderer, parts: { seed: 3 } })
  })

  afterAll(async () => {
    await gateway[Symbol.asyncDispose]()
    await policy[Symbol.asyncDispose]()
  })

  describe.each([false, true])('streaming: %s', stream => {
    it.each(Object.entries(agents))(
      '%s: what was captured is what the policy saw',
      async (name, agent) => {
        let calls = 0
        for (const index of [0, 1, 2]) {
          const from = policy.record.length
          const desk = await openDesk(index)
          const counting: Desk = {
            ...desk,
            call: (tool, input) => {
              calls++
              return desk.call(tool, input)
            },
          }
          const { id, token } = await gateway.open(`${name} ${stream} ${index}`.replaceAll(',', ''))
          await agent(counting, { url: gateway.url, token, stream })
          const { body } = await gateway.send(`/attempts/${id}/close`, { reward: 1 })
          expect(body).toMatchObject({ state: 'closed', reward: 1, outcome: { kind: 'completed' } })
          const tree = gateway.trees.at(-1)!
          expectCaptured(tree, policy.record.slice(from))
          const { fidelity, turns } = tree.trajectories[0]!
          expect(turns).toHaveLength(policy.record.length - from)
          expect(fidelity).toEqual({ kind: 'exact', forks: [] })
        }
        expect(calls).toBeGreaterThan(2)
      },
    )
  })
})

/** What answers have to fit. */
const form = {
  type: 'object',
  properties: { pears: { type: 'integer' } },
  required: ['pears'],
  additionalProperties: false,
} as const
const question = 'How many pears?'

interface Place {
  readonly url: string
  readonly token: string
}

/** Asks for an answer that fits the schema, as the client's own pages say; gives what the client read. */
type Asking = (place: Place) => Promise<unknown>

const openAi = ({ url, token }: Place) => new OpenAI({ baseURL: `${url}/v1`, apiKey: token })

const formClients: Readonly<Record<string, Asking>> = {
  async 'OpenAI, chat completions'(place) {
    const answer = await openAi(place).chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: question }],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'count', schema: form, strict: true },
      },
    })
    return JSON.parse(answer.choices[0]!.message.content!)
  },
  async 'OpenAI, responses'(place) {
    const answer = await openAi(place).responses.parse({
      model: 'm',
      input: question,
      text: { format: { type: 'json_schema', name: 'count', schema: form, strict: true } },
    })
    return JSON.parse(answer.output_text)
  },
  async Anthropic({ url, token }) {
    const client = new Anthropic({ baseURL: url, apiKey: token })
    const answer = await client.messages.parse({
      model: 'm',
      max_tokens: 64,
      messages: [{ role: 'user', content: question }],
      output_config: { format: jsonSchemaOutputFormat(form) },
    })
    return answer.parsed_output
  },
  async Google({ url, token }) {
    const client = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: url } })
    const config = { responseMimeType: 'application/json', responseJsonSchema: form }
    const answer = await client.models.generateContent({ model: 'm', contents: question, config })
    return JSON.parse(answer.text!)
  },
  async 'the AI SDK'({ url, token }) {
    const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: token })
    const { object } = await generateObject({
      model: provider.chat('m'),
      schema: jsonSchema<{ pears: number }>(form),
      prompt: question,
    })
    return object
  },
}

describe('answers of a form, asked for by the official clients', () => {
  it.each(Object.entries(formClients))('%s', async (_name, ask) => {
    const renderer = await openByteRenderer()
    const policy = script(renderer, [{ text: '{"pears": 3}<|im_end|>' }])
    await using gateway = await openTestGateway({ policy, renderer })
    const { id, token } = await gateway.open('pears')
    expect(await ask({ url: gateway.url, token })).toEqual({ pears: 3 })
    await gateway.gateway.attempts.close(gateway.gateway.attempts.get(id)!, { reward: 1 })
    const [tree] = gateway.trees
    const shown = renderer.decode(tree!.nodes[1]!.segment.ids)
    expect(shown).toContain('"pears":{"type":"integer"}')
    expect(tree!.trajectories[0]!.events ?? []).toEqual([])
  })
})
