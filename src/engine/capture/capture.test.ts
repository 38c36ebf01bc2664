import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { expectCaptured, withOwnRecord } from '../../../test/captured.ts'
import { attemptAt, call, contextOf, openByteRenderer, script } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import {
  type Policy,
  PromptTooLong,
  plainCapabilities,
  type SampleRequest,
} from '../../base/core/policy.ts'
import { singleTurn } from '../environments/built-in/single-turn.ts'
import { defaultLimits, type RolloutContext } from '../rollout/attempt.ts'
import { openCapture } from './capture.ts'
import type { CaptureOptions, ChatDelta, ChatRequest } from './contract.ts'

const renderer = await openByteRenderer()
const world = singleTurn({ match: 'exact' })
const { signal } = new AbortController()

const look: ToolDefinition = {
  type: 'function',
  function: {
    name: 'look',
    parameters: { type: 'object', properties: { at: { type: 'string' } } },
  },
}
const system: Message = { role: 'system', content: 'You are terse.' }
const user = (content: string): Message => ({ role: 'user', content })
const result = (id: string, content: string): Message => ({
  role: 'tool',
  tool_call_id: id,
  content,
})

function open(
  answers: readonly string[],
  parts: Partial<RolloutContext> & Partial<CaptureOptions> = {},
) {
  const policy = withOwnRecord(script(renderer, answers))
  return { policy, ...openWith(policy, parts) }
}

function openWith(policy: Policy, parts: Partial<RolloutContext> & Partial<CaptureOptions> = {}) {
  const { attempt = attemptAt(world, { prompt: 'x', answer: 'x' }), ...more } = parts
  const context = contextOf({ environment: world, renderer, policy, ...more })
  return { capture: openCapture({ context, attempt, ...more }) }
}

const ask = (messages: readonly Message[], more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages,
  tools: [look],
  ...more,
})

const causes = (events: readonly { kind: string }[]): readonly string[] =>
  events.map(({ kind }) => kind).filter(kind => kind.startsWith('fork:'))

describe('a captured attempt', () => {
  it('[T2] goes on from exactly what was sampled, however a framework repeats it', async () => {
    const { capture, policy } = open([call('look', { at: 'door' }), 'It is open.', 'Bye.'])
    const opening = [system, user('Is the door open?')]
    const [first] = await capture.respond(ask(opening), { signal })
    expect(first!.finish).toBe('tool-calls')
    const [called] = first!.message.tool_calls!
    // Another layout of the arguments, another id, another way to say that there are no words.
    const again: AssistantMessage = {
      role: 'assistant',
      content: null,
      tool_calls: [
        { ...called!, id: 'mine', function: { name: 'look', arguments: '{ "at":"door"}' } },
      ],
    }
    const asked = [...opening, again, result('mine', 'open')]
    const [second] = await capture.respond(ask(asked), { signal })
    const thanks = [
      ...asked,
      { role: 'assistant' as const, content: ' It is open. ' },
      user('Thanks'),
    ]
    await capture.respond(ask(thanks), { signal })
    expect(second!.message.content).toBe('It is open.')
    const [tree] = await capture.end({ report: { done: true } })
    expectCaptured(tree, policy.record)
    const [trajectory] = tree.trajectories
    expect(trajectory).toMatchObject({
      outcome: { kind: 'completed' },
      report: { done: true },
      fidelity: { kind: 'exact', forks: [] },
      calls: [{ turn: 0, tool: 'look', input: { at: 'door' }, output: 'open' }],
    })
    expect(trajectory!.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
    ])
    expect(tree.nodes.slice(1).map(({ segment }) => segment.origin)).toEqual([
      'prompt',
      'sampled',
      'observed',
      'sampled',
      'observed',
      'sampled',
    ])
  })

  it('runs parallel calls through one turn', async () => {
    const two = `${call('look', { at: 'a' }).replace('<|im_end|>', '')}\n${call('look', { at: 'b' })}`
    const { capture, policy } = open([two, 'Both.'])
    const opening = [user('Look at a and b.')]
    const [first] = await capture.respond(ask(opening), { signal })
    const ids = first!.message.tool_calls!.map(({ id }) => id)
    expect(ids).toHaveLength(2)
    const results = [result(ids[0]!, 'A'), result(ids[1]!, 'B')]
    await capture.respond(ask([...opening, first!.message, ...results]), { signal })
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
    expect(tree.trajectories[0]!.calls.map(({ output }) => output)).toEqual(['A', 'B'])
  })

  it.each([
    ['reasoning', (said: AssistantMessage) => ({ ...said, reasoning_content: '' })],
    ['answer', (said: AssistantMessage) => ({ ...said, content: 'Something else.' })],
  ])('[T4] forks where the %s was changed, and says so', async (cause, change) => {
    const { capture, policy } = open(['<think>\nHm.\n</think>\n\nYes.', 'No.'])
    const opening = [user('Is it?')]
    const [first] = await capture.respond(ask(opening), { signal })
    expect(first!.message.reasoning_content).toBe('Hm.')
    await capture.respond(ask([...opening, change(first!.message), user('Sure?')]), { signal })
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
    const [{ events, fidelity, views, messages, turns }] = tree.trajectories as never as [never]
    expect(causes(events)).toEqual([`fork:${cause}`])
    expect(fidelity).toMatchObject({
      kind: 'forked',
      forks: [{ reason: expect.stringContaining(cause) }],
    })
    expect(views).toHaveLength(1)
    expect((messages as Message[])[(turns as { messages: number }[])[1]!.messages]!.content).toBe(
      'No.',
    )
  })

  it('[T4] goes on from a summary as a compaction, and calls that it kept lend their ids to no other', async () => {
    const summary = 'One pear was found.'
    const look = call('look', { at: 'x' })
    const { capture } = open(['Yes.', look, `<summary>${summary}</summary>`, look, 'Done.'])
    const say = (...messages: Message[]) => capture.respond(ask(messages), { signal })
    const [opening, more] = [user('How many pears?'), user('Go on.')]
    const [first] = await say(opening)
    const [asked] = await say(opening, first!.message, more)
    const kept = [asked!.message, result('c00001000', 'open')]
    await say(opening, first!.message, more, ...kept, user('Write a summary.'))
    const compacted = [user(`Earlier: ${summary} Now look.`), ...kept]
    const [again] = await say(...compacted)
    const id = again!.message.tool_calls![0]!.id!
    expect([asked!.message.tool_calls![0]!.id, id]).toEqual(['c00001000', 'c00002000'])
    await say(...compacted, again!.message, result(id, 'shut'))
    const [tree] = await capture.end()
    const { events } = tree.trajectories[0]!
    expect(events.map(({ kind, turn }) => [kind, turn])).toEqual([
      ['fork:compaction', 3],
      ['side:summary', 2],
    ])
  })

  it.each([
    ['calls', [user('Go.'), 'edited', result('c00000000', 'open'), user('And?')]],
    ['result', [user('Go.'), 'said', result('c00000000', 'shut'), user('And?')]],
    ['prompt', [user('Do go.'), 'said', result('c00000000', 'open'), user('And?')]],
    ['compaction', [user('Go.'), user('You looked: open. And?')]],
  ] as const)('[T4] names an edit of the %s', async (cause, shape) => {
    const { capture, policy } = open([call('look', { at: 'x' }), 'Open.', 'Later.'])
    const opening = [user('Go.')]
    const [first] = await capture.respond(ask(opening), { signal })
    const said = [...opening, first!.message, result('c00000000', 'open')]
    await capture.respond(ask(said), { signal })
    const edited: AssistantMessage = {
      ...first!.message,
      tool_calls: [
        { ...first!.message.tool_calls![0]!, function: { name: 'look', arguments: '{}' } },
      ],
    }
    const messages = shape.map(each =>
      each === 'edited' ? edited : each === 'said' ? first!.message : each,
    )
    // An edited prompt shares nothing: a conversation that begins otherwise is its own.
    const named = cause === 'prompt' ? 'conversation' : cause
    await capture.respond(ask(messages), { signal })
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
    const { events } = tree.trajectories[0]!
    expect(causes(events)).toEqual([`fork:${named}`])
    expect(events[0]!.figures!.read).toBeGreaterThan(0)
  })

  it('keeps sub-agents that run side by side as paths of one tree, in an order of their own', async () => {
    const trees = await Promise.all(
      [false, true].map(async isReversed => {
        const policy = withOwnRecord(echoPolicy(isReversed))
        const { capture } = openWith(policy)
        const main = [system, user('main')]
        const [first] = await capture.respond(ask(main), { signal })
        const parts = ['a', 'b', 'c'].map(name =>
          capture.respond(ask([{ role: 'system', content: `You are ${name}.` }, user(name)]), {
            signal,
          }),
        )
        await Promise.all(parts)
        await capture.respond(ask([...main, first!.message, user('done')]), { signal })
        const [tree] = await capture.end()
        expectCaptured(tree, policy.record)
        return tree
      }),
    )
    const [one, other] = trees
    expect(one!.trajectories[0]!.messages.at(-1)!.content).toContain('done')
    expect(causes(one!.trajectories[0]!.events)).toHaveLength(3)
    expect(plain(one!)).toEqual(plain(other!))
  })

  it('never commits a retried turn twice', async () => {
    const { capture, policy } = open(['One.', 'Two.'])
    const request = ask([user('Go.')], { requestId: 'r1' })
    const both = await Promise.all([
      capture.respond(request, { signal }),
      capture.respond(request, { signal }),
    ])
    const third = await capture.respond(request, { signal })
    expect(both[1]).toEqual(both[0])
    expect(third).toEqual(both[0])
    expect(policy.record).toHaveLength(1)
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
  })

  it('asks anew for retries of a request that failed, once for all of them', async () => {
    const policy = withOwnRecord(script(renderer, ['One.']))
    let asked = 0
    const { capture } = openWith({
      ...policy,
      async sample(sample, options) {
        if (asked++ === 0) throw new Error('the server is down')
        return await policy.sample(sample, options)
      },
    })
    const request = ask([user('Go.')], { requestId: 'r1' })
    const [first, ...retries] = await Promise.allSettled(
      [1, 2, 3].map(() => capture.respond(request, { signal })),
    )
    expect(first).toMatchObject({ reason: { message: 'the server is down' } })
    expect(retries).toMatchObject(Array(2).fill({ value: [{ message: { content: 'One.' } }] }))
    expect(asked).toBe(2)
    const [tree] = await capture.end()
    expect(tree.trajectories[0]!.outcome).toEqual({ kind: 'completed' })
    expectCaptured(tree, policy.record)
  })

  it('keeps what a request that died had, until it is asked for again', async () => {
    const request = ask([user('Go.')], { requestId: 'r1' })
    const cut = await dieOnce()
    const [tree] = await cut.capture.end()
    expectCaptured(tree, cut.policy.record)
    expect(tree.trajectories[0]!.turns[0]!.finish).toEqual({ kind: 'abort' })

    const retried = await dieOnce()
    const [answer] = await retried.capture.respond(request, { signal })
    expect(answer!.finish).toBe('stop')
    const [second] = await retried.capture.end()
    expectCaptured(second, retried.policy.record.slice(1))
    expect(second.trajectories[0]!.events).toMatchObject([
      { kind: 'request-died', figures: { tokens: 3 } },
    ])

    async function dieOnce() {
      const stop = new AbortController()
      const policy = withOwnRecord(dyingPolicy(stop))
      const { capture } = openWith(policy)
      await expect(capture.respond(request, { signal: stop.signal })).rejects.toThrow('gone')
      return { capture, policy }
    }
  })

  it('lets go of a request that died when the same is asked again before it is over', async () => {
    const stop = new AbortController()
    const whole = echoPolicy(false)
    const answered: Promise<unknown>[] = []
    const policy: Policy = {
      ...whole,
      capabilities: { ...plainCapabilities, abort: true },
      async sample(request, sampling) {
        if (stop.signal.aborted) return await whole.sample(request, sampling)
        stop.abort(new Error('gone'))
        answered.push(capture.respond(ask([user('Go.')]), { signal }))
        await answered[0]
        const ids = renderer.tokenizer.encode('The')
        return tokenSample(ids, { prompt: request.prompt.ids.length, finish: 'abort' })
      },
    }
    const { capture } = openWith(policy)
    const died = capture.respond(ask([user('Go.')]), { signal: stop.signal })
    await expect(died).rejects.toThrow('gone')
    const [tree] = await capture.end()
    expect(tree.trajectories[0]!.turns.map(({ finish }) => finish.kind)).toEqual(['stop'])
    expect(causes(tree.trajectories[0]!.events)).toEqual([])
  })

  it('draws several answers from one stored prompt', async () => {
    const policy = withOwnRecord(echoPolicy(false))
    const { capture } = openWith(policy)
    const answers = await capture.respond(ask([user('Go.')], { count: 3 }), { signal })
    expect(new Set(answers.map(({ message }) => message.content)).size).toBe(3)
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
    expect(tree.nodes.slice(1).filter(({ segment }) => segment.origin === 'prompt')).toHaveLength(1)
  })

  it('refuses what is over a limit, and says which', async () => {
    const limits = { ...defaultLimits, turns: 1 }
    const { capture } = open(['One.', 'Two.'], { limits })
    await capture.respond(ask([user('Go.')]), { signal })
    await expect(capture.respond(ask([user('On.')]), { signal })).rejects.toThrow(
      'the attempt is over: truncated by turns',
    )
    const [tree] = await capture.end()
    expect(tree.trajectories[0]!.outcome).toEqual({ kind: 'truncated', limit: 'turns' })
  })

  it('lets an agent shorten a prompt that is too long', async () => {
    const limits = { ...defaultLimits, context: 400 }
    const { capture } = open(['One.'], { limits })
    const long = capture.respond(ask([user('Go. '.repeat(200))]), { signal })
    await expect(long).rejects.toThrow(/the prompt has \d+ tokens; .* it may have 400/)
    await capture.respond(ask([user('Go.')], { tools: [] }), { signal })
    const [tree] = await capture.end()
    expect(tree.trajectories[0]!.outcome).toEqual({ kind: 'completed' })
  })

  it('lets an agent shorten a prompt that the policy itself refuses, or ends truncated with it', async () => {
    const policy = script(renderer, ['One.<|im_end|>'])
    const refusing: Policy = {
      ...policy,
      async sample(request, given) {
        if (request.prompt.ids.length > 400) throw new PromptTooLong('400 tokens at most')
        return await policy.sample(request, given)
      },
    }
    const { capture } = openWith(refusing)
    const long = () => capture.respond(ask([user('Go. '.repeat(200))]), { signal })
    await expect(long()).rejects.toThrow(/the prompt has \d+ tokens; .*400 tokens at most/)
    expect(capture.refusal).toEqual({ kind: 'truncated', limit: 'context' })
    await capture.respond(ask([user('Go.')], { tools: [] }), { signal })
    expect(capture.refusal).toBeUndefined()
    const [tree] = await capture.end()
    expect(tree.trajectories).toMatchObject([
      { outcome: { kind: 'completed' }, events: [{ kind: 'context-refused' }] },
    ])
  })

  it('leaves the words of a stop out of the answer, and its tokens in the tree', async () => {
    const { capture, policy } = open(['Yes. END and more'])
    const [answer] = await capture.respond(ask([user('Go.')], { stop: ['END'] }), { signal })
    expect(answer!.message.content).toBe('Yes. ')
    const [tree] = await capture.end()
    expectCaptured(tree, policy.record)
  })

  it('leaves out what a last token says behind a stop, whole and in pieces', async () => {
    const whole = script(renderer, ['Yes. END and more<|im_end|>'])
    const { capture } = openWith({
      ...whole,
      sample: (request, sampling) => whole.sample({ ...request, stopStrings: [] }, sampling),
    })
    let told = ''
    const onDelta = (delta: ChatDelta): void => {
      if (delta.kind === 'text') told += delta.text
    }
    const request = ask([user('Go.')], { stop: ['STOP', 'END'] })
    const [answer] = await capture.respond(request, { signal, onDelta })
    expect([answer!.message.content, told]).toEqual(['Yes. ', 'Yes. '])
  })

  it('tells the pieces of an answer, which together are its message', async () => {
    const { capture } = open([`<think>\nHm.\n</think>\n\nI look.\n${call('look', { at: 'x' })}`])
    const deltas: ChatDelta[] = []
    const onDelta = (delta: ChatDelta): void => void deltas.push(delta)
    const [answer] = await capture.respond(ask([user('Go.')]), { signal, onDelta })
    const told = (kind: string): string =>
      deltas.map(delta => (delta.kind === kind && 'text' in delta ? delta.text : '')).join('')
    expect(told('reasoning')).toBe(answer!.message.reasoning_content)
    expect(told('text')).toBe(answer!.message.content)
    expect(deltas.filter(({ kind }) => kind !== 'call').length).toBeGreaterThan(3)
    expect(deltas.filter(({ kind }) => kind === 'call')).toMatchObject([
      { name: 'look', id: answer!.message.tool_calls![0]!.id, arguments: '{"at": "x"}' },
    ])
  })
})

/** Says the prompt's last message and a number from the seed; in the second way, last come first. */
function echoPolicy(isReversed: boolean): Policy {
  let order = 0
  return {
    name: 'echo',
    capabilities: plainCapabilities,
    async sample({ prompt, seed }: SampleRequest) {
      const turns = isReversed ? 10 - (order++ % 10) : 0
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const last = prompt.messages.at(-1)!
      const ids = renderer.tokenizer.encode(`${last.content} ${seed}<|im_end|>`)
      return tokenSample(ids, { prompt: prompt.ids.length })
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** Loses its first request after three tokens. */
function dyingPolicy(stop: AbortController): Policy {
  const whole = echoPolicy(false)
  return {
    ...whole,
    capabilities: { ...plainCapabilities, abort: true },
    async sample(request, sampling) {
      if (stop.signal.aborted) return await whole.sample(request, sampling)
      stop.abort(new Error('gone'))
      const ids = renderer.tokenizer.encode('The')
      return tokenSample(ids, { prompt: request.prompt.ids.length, finish: 'abort' })
    },
  }
}

/** What of a tree must not depend on who came first. */
function plain(tree: Awaited<ReturnType<ReturnType<typeof openCapture>['end']>>[0]) {
  const { volatile: _, ...trajectory } = tree.trajectories[0]!
  return {
    nodes: tree.nodes.map(({ segment, lineage }) => [segment.origin, [...segment.ids], lineage]),
    trajectory,
  }
}
