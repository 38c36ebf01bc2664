import { type Message, textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { condenseCall, speaking } from '../../../test/condensing.ts'
import { makeLane } from '../../base/core/lane.ts'
import type { CondensedChunk } from './condense-chunks.ts'
import { cleanAnswer, modelChunks, modelCondenser } from './model.ts'
import { makeOnce } from './once.ts'
import { fillPrompt } from './prompts.ts'
import { selfCondenser } from './self.ts'

const passage = 'A fact about trees. '.repeat(30).trim()
const short = '## Summary\nTrees.\n## More\nleaves'

function condense(
  answers: Parameters<typeof speaking>[0],
  options: Partial<Parameters<typeof modelChunks>[0]> = {},
  text = passage,
): Promise<{ result: CondensedChunk; speaker: ReturnType<typeof speaking> }> {
  const speaker = speaking(answers)
  return modelChunks({ speaker, ...options })
    .condense({ text, query: 'Why trees?' }, condenseCall())
    .then(result => ({ result, speaker }))
}

describe('modelChunks', () => {
  it('gives what the model says, with what it cost', async () => {
    const { result, speaker } = await condense([short])
    expect(result).toEqual({ kind: 'condensed', text: short, usage: { prompt: 10, sampled: 2 } })
    const [system, user] = speaker.asked[0]!.messages
    expect(system!.role).toBe('system')
    expect(textOf(user!.content)).toContain(passage)
    expect(textOf(user!.content)).toContain('Question: Why trees?')
    expect(textOf(user!.content)).toContain('at most 300 characters')
    expect(speaker.asked[0]!.call).toMatchObject({ temperature: 0, maxTokens: 300 * 1.5 + 256 })
  })

  it.each([
    [200, 'kept'],
    [250, 'kept'],
    [251, 'condensed'],
  ])('a text of %d characters is %s, as the budget of at least 250 says', async (length, kind) => {
    const { result } = await condense([short], {}, 'x'.repeat(length))
    expect(result.kind).toBe(kind)
  })

  it.each([
    [501, 251],
    [1024, 512],
  ])(
    'the budget of %d characters is %d, and the answer’s allowance is a setting',
    async (length, budget) => {
      const { speaker } = await condense([short], { allowance: 3, extra: 128 }, 'x'.repeat(length))
      expect(textOf(speaker.asked[0]!.messages[1]!.content)).toContain(
        `at most ${budget} characters`,
      )
      expect(speaker.asked[0]!.call.maxTokens).toBe(budget * 3 + 128)
    },
  )

  it('asks again, telling why, where the answer is cut, empty, too long or longer than the passage', async () => {
    const { result, speaker } = await condense(
      [
        { finish: 'length', message: { role: 'assistant', content: 'cut o' } },
        '***',
        passage,
        short,
      ],
      { tries: 4 },
    )
    expect(result).toMatchObject({
      kind: 'condensed',
      text: short,
      usage: { prompt: 40, sampled: 8 },
    })
    const told = speaker.asked.map(({ messages }) => textOf(messages.at(-1)!.content))
    expect(told[1]).toContain('the answer was cut at its end')
    expect(told[2]).toContain('the answer says nothing')
    expect(told[3]).toContain('the answer has 599 characters, the passage 599')
    expect(speaker.asked[1]!.call.temperature).toBe(0.7)
  })

  it('takes the shortest answer above the budget rather than none, but never a cut one', async () => {
    const above = ['y'.repeat(500), 'y'.repeat(400), 'y'.repeat(450)]
    expect((await condense(above)).result).toMatchObject({ text: 'y'.repeat(400) })
    const cut = { finish: 'length', message: { role: 'assistant', content: 'half a' } } as const
    expect((await condense([cut])).result).toEqual({
      kind: 'failed',
      problem: 'after 3 tries the answer was cut at its end',
    })
  })

  it('fills prompts in one pass: a passage with places in it stays as it is', async () => {
    const tricky = `{query} {budget} ${passage}`
    const { speaker } = await condense([short], {}, tricky)
    expect(textOf(speaker.asked[0]!.messages[1]!.content)).toContain(tricky)
    expect(fillPrompt('{a} {b} {toString}', { a: '{b}', b: '$&' })).toBe('{b} $& {toString}')
  })

  it('takes prompts as data, and refuses those that cannot be filled', async () => {
    const prompts = { system: 'Be brief.', user: '{text} in {budget}' }
    const { speaker } = await condense([short], { prompts })
    expect(speaker.asked[0]!.messages.map(({ content }) => content)).toEqual([
      'Be brief.',
      `${passage} in 300`,
    ])
    expect(() => modelChunks({ speaker, prompts: { user: '{text}' } })).toThrow('has no {budget}')
    expect(() => modelChunks({ speaker, ratio: 1 })).toThrow('model: ratio is 1')
    expect(() => modelChunks({ speaker, tries: 0 })).toThrow('model: tries is 0')
  })

  it('cleans answers of fences and thinking', () => {
    expect(cleanAnswer('<think>hm\n</think>\n\n```md\n## Summary\n```')).toBe('## Summary')
    expect(cleanAnswer('a ```b``` c')).toBe('a ```b``` c')
  })
})

const openingOf = (...passages: readonly string[]): readonly Message[] => [
  { role: 'user', content: `Question: Why?\n\n${passages.join('\n\n')}` },
]
const boundary = /(?<=\n\n)/

describe('modelCondenser', () => {
  it('condenses identical chunks once a run, for whatever attempt, side by side', async () => {
    const speaker = speaking([short])
    const condenser = modelCondenser({ speaker, chunk: { boundary } })
    const opening = openingOf(passage, `${passage} Another.`, passage)
    const results = await Promise.all(
      Array.from({ length: 8 }, () => condenser.open().condense(opening, condenseCall())),
    )
    expect(speaker.asked).toHaveLength(2)
    for (const result of results) expect(result).toEqual(results[0])
    expect(results[0]).toMatchObject({ figures: { blocks: 3, prompt: 30, sampled: 6 } })
  })

  it('goes through the policy’s lane', async () => {
    const lane = makeLane('policy', 1)
    let most = 0
    const speaker = speaking(() => {
      most = Math.max(most, lane.running)
      return short
    })
    const passages = Array.from({ length: 5 }, (_, index) => `${passage} Number ${index}.`)
    await modelCondenser({ speaker, chunk: { boundary } })
      .open()
      .condense(openingOf(...passages), condenseCall({ lane }))
    expect(speaker.asked).toHaveLength(5)
    expect(most).toBe(1)
  })

  it('[D1] falls back to the original where the model fails, and counts it', async () => {
    const speaker = speaking([new Error('no route to the model'), short])
    const condensed = await modelCondenser({ speaker, chunk: { boundary } })
      .open()
      .condense(openingOf(passage, `${passage} Another.`), condenseCall())
    expect(condensed).toMatchObject({ kind: 'rewritten', figures: { blocks: 1, failures: 1 } })
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    expect(textOf(condensed.messages[0]!.content)).toContain(passage)
    const dead = modelCondenser({ speaker: speaking([new Error('no route to the model')]) })
    expect(await dead.open().condense(openingOf(passage), condenseCall())).toMatchObject({
      kind: 'unchanged',
      problem: '1 chunks could not be condensed: no route to the model',
      figures: { failures: 1 },
    })
  })

  it('lets the policy itself condense, attempt by attempt', async () => {
    const self = speaking([short])
    const condenser = modelCondenser({ speaker: 'self' })
    for (let attempt = 0; attempt < 3; attempt++) {
      await condenser.open().condense(openingOf(passage), condenseCall({ self }))
    }
    expect(self.asked).toHaveLength(3)
  })
})

describe('openOnce', () => {
  it('does not make one attempt’s end the failure of another', async () => {
    const once = makeOnce<number>()
    const [first, second] = [new AbortController(), new AbortController()]
    const slow = once.do(
      ['x'],
      { signal: first.signal },
      () =>
        new Promise((_, reject) => {
          first.signal.addEventListener('abort', () => reject(first.signal.reason))
        }),
    )
    const waiting = once.do(['x'], { signal: second.signal }, async () => 7)
    first.abort(new Error('went home'))
    await expect(slow).rejects.toThrow('went home')
    expect(await waiting).toBe(7)
    expect(once.done).toBe(2)
  })

  it('forgets failures and, past its size, what was asked for longest ago', async () => {
    const once = makeOnce<number>(2)
    const call = { signal: new AbortController().signal }
    await expect(once.do(['f'], call, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) await once.do([key], call, async () => 1)
    expect(once.done).toBe(1 + 4)
  })
})

describe('selfCondenser', () => {
  const turn = (index: number): readonly Message[] => [
    { role: 'assistant', content: `did ${index} ${'x'.repeat(100)}` },
    { role: 'user', content: `go on ${index}` },
  ]
  const conversation = [
    { role: 'user', content: 'Begin.' } as const,
    ...Array.from({ length: 6 }, (_, index) => turn(index)).flat(),
  ]
  const call = (self: ReturnType<typeof speaking>) =>
    condenseCall({ turn: 6, tokens: 600, context: 2000, self })

  it('puts the policy’s notes in the place of the older turns', async () => {
    const self = speaking(['I did 0 to 4.'])
    const condensed = await selfCondenser().open().condense(conversation, call(self))
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    expect(condensed.reason).toBe('the policy summarised turns 1 to 5')
    expect(condensed.messages[0]!.content).toBe(
      'Begin.\n\n<earlier>\nYour own notes on turns 1 to 5:\nI did 0 to 4.\n</earlier>',
    )
    expect(condensed.messages.slice(1)).toEqual(turn(5))
    const { messages } = self.asked[0]!
    expect(messages.slice(0, -1)).toEqual(conversation.slice(0, -3))
    expect(textOf(messages.at(-1)!.content)).toMatch(/^go on 4\n\n[\s\S]*at most 4\d\d tokens/)
  })

  it('asks again for a summary that is cut or empty, and then takes what there is', async () => {
    const cut = { finish: 'length', message: { role: 'assistant', content: 'I did' } } as const
    const self = speaking([cut, ''])
    const condensed = await selfCondenser().open().condense(conversation, call(self))
    expect(self.asked).toHaveLength(2)
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    expect(textOf(condensed.messages[0]!.content)).toContain('I did…')
  })

  it('[D1] changes nothing where the policy writes nothing or fails, and says why', async () => {
    expect(
      await selfCondenser()
        .open()
        .condense(conversation, call(speaking(['']))),
    ).toEqual({
      kind: 'unchanged',
      problem: 'the policy wrote no summary',
    })
    const broken = call(speaking([new Error('server gone')]))
    expect(await selfCondenser().open().condense(conversation, broken)).toEqual({
      kind: 'unchanged',
      problem: 'server gone',
    })
  })

  it('shows its earlier notes when it writes new ones, however little room there is', async () => {
    const self = speaking(['first notes', 'second notes'])
    const condensing = selfCondenser().open()
    const first = await condensing.condense(conversation, call(self))
    if (first.kind === 'unchanged') throw new Error('nothing was condensed')
    const longer = [...first.messages, ...turn(6), ...turn(7), ...turn(8)]
    const tight = { ...call(self), turn: 9, context: 1000 }
    const second = await condensing.condense(longer, tight)
    expect(textOf(self.asked[1]!.messages[0]!.content)).toContain('first notes')
    if (second.kind === 'unchanged') throw new Error('nothing was condensed')
    expect(second.messages[0]!.content).toBe(
      'Begin.\n\n<earlier>\nYour own notes on turns 1 to 8:\nsecond notes\n</earlier>',
    )
  })

  it('shortens what it asks about where there is no room to answer', async () => {
    const self = speaking(['notes'])
    const tight = { ...call(self), context: 1100, tokens: 500 }
    await selfCondenser().open().condense(conversation, tight)
    const { messages, call: asked } = self.asked[0]!
    expect(tight.count(messages) + asked.maxTokens!).toBeLessThanOrEqual(1100)
  })

  it('asks with a transcript where the template refuses the question', async () => {
    const self = speaking(['notes'])
    const { count, ...rest } = call(self)
    const strict = (messages: readonly Message[]): number => {
      if (textOf(messages.at(-1)!.content).startsWith('go on 4\n\n'))
        throw new Error('no user here')
      return count(messages)
    }
    const condensed = await selfCondenser()
      .open()
      .condense(conversation, { ...rest, count: strict })
    expect(condensed.kind).toBe('rewritten')
    expect(self.asked[0]!.messages).toHaveLength(1)
    expect(textOf(self.asked[0]!.messages[0]!.content)).toContain('{"role":"user","said":"Begin."}')
  })
})
