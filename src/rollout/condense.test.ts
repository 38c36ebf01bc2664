import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { attemptAt, call, contextOf, openByteRenderer } from '../../test/rolling.ts'
import { keepLastTurns } from '../condensers/keep-last-turns.ts'
import { keywordCondenser } from '../condensers/keyword.ts'
import { modelCondenser } from '../condensers/model.ts'
import { selfCondenser } from '../condensers/self.ts'
import { trimToolOutput } from '../condensers/trim-tool-output.ts'
import type { Condenser, Condensing } from '../core/condenser.ts'
import { type Message, textOf } from '../core/message.ts'
import type { Policy, SampleRequest, TokenSample } from '../core/policy.ts'
import { rowsOf } from '../core/row.ts'
import { sampled } from '../core/segment.ts'
import { idsTo, pathEnds, type Tree } from '../core/tree.ts'
import { environment } from '../environments/environment.ts'
import { withFork } from '../environments/fork.ts'
import { tool } from '../environments/tool.ts'
import { random, seedOf } from '../math/random.ts'
import type { ModelRenderer } from '../text/renderer.ts'
import { type CondenseSettings, defaultLimits, type Limits } from './attempt.ts'
import { openBranchPolicy } from './branches/registry.ts'
import { rollChain } from './chain.ts'
import { rollSteps } from './step.ts'
import { rollTree } from './tree.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })

/** What a reader finds on a page: about 160 tokens of the byte model. */
const page = (number: number): string =>
  `Page ${number}. The town of Ardle${number} lies on the river Senn. Its mayor is Ida Moor${number}, ` +
  `who was elected in ${1900 + number}. The town is known for its ${number} bridges.`

const book = environment({
  name: 'book',
  task: z.object({ pages: z.int(), opening: z.string().optional() }),
  open: ({ data }) => {
    let read = 0
    return {
      opening: [{ role: 'user', content: data.opening ?? 'Read the book.' }],
      tools: {
        turn_page: tool({
          inputSchema: z.object({ note: z.string().optional() }),
          execute: () => page(read++),
        }),
      },
      report: () => ({ read }),
    }
  },
  reward: { read: ({ report }) => Number((report as { read: number }).read > 0) },
})

interface Said extends SampleRequest {
  readonly isSummary: boolean
  /** A number from 0 to 1 that belongs to this sample alone. */
  readonly chance: number
}

/** A policy that says what a function makes of each request, with invented log-probabilities. */
function acting(
  speak: (request: Said) => string,
  own: ModelRenderer = renderer,
): Policy & { readonly requests: SampleRequest[] } {
  const requests: SampleRequest[] = []
  const draw = (request: SampleRequest, seed = request.seed): TokenSample => {
    const next = random(seedOf('acting', seed))
    const isSummary = request.key.branch.includes('summary')
    const ids = own.tokenizer.encode(speak({ ...request, isSummary, chance: next() }))
    const kept = ids.slice(0, request.maxTokens)
    return {
      kind: 'tokens',
      segment: sampled({
        ids: kept,
        logprobs: Float32Array.from(kept, () => -3 * next()),
        entropies: Float32Array.from(kept, next),
        version: { from: 0, to: 0 },
      }),
      finish: { kind: kept.length < ids.length ? 'length' : 'stop' },
      usage: { prompt: request.prompt.ids.length, sampled: kept.length, seconds: 0 },
    }
  }
  const keep = (request: SampleRequest): void => {
    requests.push({ ...request, prompt: { ...request.prompt, ids: request.prompt.ids.slice() } })
  }
  return {
    name: 'acting',
    requests,
    capabilities: {
      ids: true,
      logprobs: true,
      basis: 'tempered',
      topLogprobs: 0,
      entropies: true,
      score: false,
      several: true,
      abort: false,
      seed: true,
      version: false,
      stream: false,
    },
    async sample(request) {
      keep(request)
      return draw(request)
    },
    async sampleSeveral(request, seeds) {
      keep(request)
      return seeds.map(seed => draw(request, seed))
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** Turns pages, now and then with a note, and ends when it feels like it. */
const reads = ({ isSummary, chance, key }: Said): string => {
  if (isSummary)
    return `So far ${key.turn} pages. ${'word '.repeat(Math.floor(chance * 20))}<|im_end|>`
  if (key.turn > 12 || chance < 0.05) return 'The end.<|im_end|>'
  return call('turn_page', chance < 0.3 ? { note: 'x'.repeat(Math.floor(chance * 300)) } : {})
}

function settingsOf(condenser: Condenser, parts: Partial<CondenseSettings> = {}): CondenseSettings {
  return { condenser, above: 0.75, to: 0.5, trainSummaries: true, ...parts }
}

function setUp(
  condense: CondenseSettings,
  parts: { limits?: Partial<Limits>; speak?: (request: Said) => string; world?: typeof book } = {},
) {
  const policy = acting(parts.speak ?? reads)
  const world = parts.world ?? book
  const context = contextOf({
    environment: world,
    renderer,
    policy,
    condense,
    limits: { ...defaultLimits, context: 1200, newTokens: 400, turns: 20, ...parts.limits },
  })
  return { policy, context, world }
}

async function rollOne(...parts: Parameters<typeof setUp>) {
  const { policy, context, world } = setUp(...parts)
  const tree = await rollChain(context, attemptAt(world, { pages: 9 }))
  return { tree, policy, trajectory: tree.trajectories[0]! }
}

const kindsOf = ({ events }: Tree['trajectories'][number]): readonly string[] =>
  events.map(({ kind }) => kind)

/** What every tree owes, however it was condensed. */
function expectExact(tree: Tree, requests: readonly SampleRequest[], context: number): void {
  const ends = tree.trajectories.flatMap(({ end }) => pathEnds(tree, end))
  const paths = ends.map(end => [...idsTo(tree, end)].join())
  for (const { prompt, maxTokens } of requests) {
    expect(prompt.ids.length + maxTokens).toBeLessThanOrEqual(context)
    const text = [...prompt.ids].join()
    expect(paths.some(path => path === text || path.startsWith(`${text},`))).toBe(true)
  }
  const credits = tree.trajectories.map(({ id }) => ({ trajectory: id, advantage: 1, weight: 1 }))
  const rows = rowsOf(tree, { credits })
  const trained = rows.reduce((sum, row) => sum + row.mask.filter(Boolean).length, 0)
  const sampledTokens = tree.nodes.reduce(
    (sum, { segment }) => sum + (segment.origin === 'sampled' ? segment.ids.length : 0),
    0,
  )
  expect(trained).toBe(sampledTokens)
  for (const row of rows) expect(row.ids.length).toBeLessThanOrEqual(context)
  for (const trajectory of tree.trajectories) expectForksTold(tree, trajectory)
  for (const { segment } of tree.nodes) expectRepeats(tree, segment)
}

/** Every rewrite on the way to a trajectory's end is in its certificate, with the reason. */
function expectForksTold(tree: Tree, { end, fidelity }: Tree['trajectories'][number]): void {
  const count = pathEnds(tree, end).length - 1
  expect(fidelity.forks).toHaveLength(count)
  expect(fidelity.kind).toBe(count > 0 ? 'forked' : 'exact')
  expect(fidelity.forks.every(({ reason }) => reason.length > 0)).toBe(true)
}

function expectRepeats(tree: Tree, segment: Tree['nodes'][number]['segment']): void {
  for (const { start, end, node, offset } of segment.repeats ?? []) {
    const there = tree.nodes[node]!.segment.ids.subarray(offset, offset + end - start)
    expect(segment.ids.subarray(start, end)).toEqual(there)
  }
}

const speaker = {
  name: 'brief',
  say: async (messages: readonly Message[]) => ({
    message: {
      role: 'assistant' as const,
      content: `Town ${/Ardle(\d+)/.exec(textOf(messages.at(-1)!.content))?.[1]}.`,
    },
    finish: 'stop' as const,
    usage: { prompt: 5, sampled: 3 },
  }),
}
const makers: Readonly<Record<string, () => Condenser>> = {
  'keep-last-turns': () => keepLastTurns(),
  'keep-last-turns:turns=1': () => keepLastTurns({ turns: 1 }),
  'trim-tool-output': () => trimToolOutput({ characters: 60 }),
  keyword: () => keywordCondenser({ minimum: 100 }),
  model: () => modelCondenser({ speaker, minimum: 100, least: 20 }),
  'model:policy=self': () => modelCondenser({ speaker: 'self', minimum: 100, least: 80, tries: 1 }),
  self: () => selfCondenser({ tokens: 120 }),
}

describe.each(Object.keys(makers))('a chain with %s', name => {
  it('[T2] [T4] [T5] keeps its prompts and rows in the context and trains each token once', async () => {
    const { tree, policy, trajectory } = await rollOne(settingsOf(makers[name]!()))
    expectExact(tree, policy.requests, 1200)
    expect(kindsOf(trajectory)).toContain('condensed')
    expect(trajectory.outcome.kind).toMatch(/completed|truncated/)
    const rewrites = tree.nodes.filter(({ lineage }) => lineage.kind === 'rewrites')
    expect(rewrites.length).toBeGreaterThan(0)
    for (const { lineage } of rewrites) expect(lineage).toMatchObject({ by: 'condenser' })
    expect(trajectory.views!.length).toBeGreaterThan(0)
  })

  it('[S1] gives the same tree for the same seed', async () => {
    const [one, two] = await Promise.all([1, 2].map(() => rollOne(settingsOf(makers[name]!()))))
    expect(two!.tree.nodes).toEqual(one!.tree.nodes)
    expect(two!.trajectory).toEqual(one!.trajectory)
  })

  it('condenses at most once before each turn, whatever the budget', async () => {
    for (const context of [500, 700, 900]) {
      const { tree, policy, trajectory } = await rollOne(settingsOf(makers[name]!()), {
        limits: { context },
      })
      expectExact(tree, policy.requests, context)
      const tries = trajectory.events.filter(({ kind }) => /^condense(d|-failed)$/.test(kind))
      const perTurn = new Map<number, number>()
      for (const { turn } of tries) perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
      // What happens before the first turn is told with it.
      for (const [turn, count] of perTurn) expect(count).toBeLessThanOrEqual(turn === 0 ? 2 : 1)
      expect(trajectory.outcome.kind).toMatch(/completed|truncated/)
    }
  })
})

describe.each([
  'fixed:width=2,depth=3',
  'tree-grpo:expansions=3,rounds=2',
  'tree-rl',
  'arpo:initial=2,chance=0.8',
  'best-first',
])('a tree with %s', branch => {
  it.each(Object.keys(makers))('[T2] [T5] is exact with %s', async name => {
    const seeds = process.env.ESPALIER_SOAK ? 10 : 1
    for (let seed = 1; seed <= seeds; seed++) {
      const world = withFork(book) as typeof book
      const { policy, context } = setUp(settingsOf(makers[name]!()), { world })
      const roll = rollTree({ branch: openBranchPolicy(branch, renderer.vocabulary), leaves: 5 })
      const tree = await roll(context, attemptAt(world, { pages: 9 }, { seed }))
      expectExact(tree, policy.requests, 1200)
      for (const { outcome } of tree.trajectories)
        expect(outcome.kind).toMatch(/completed|truncated/)
    }
  })
})

describe('steps', () => {
  it.each(Object.keys(makers))('[T2] [T5] are exact with %s', async name => {
    const { policy, context } = setUp(settingsOf(makers[name]!()), { limits: { context: 900 } })
    const tree = await rollSteps({ history: 6 })(context, attemptAt(book, { pages: 9 }))
    expectExact(tree, policy.requests, 900)
    expect(kindsOf(tree.trajectories[0]!)).toContain('condensed')
  })

  it('go on showing the condensed opening', async () => {
    const opening = `Question: Who is the mayor?\n\n${page(3)} ${page(4)}`
    const { policy, context } = setUp(settingsOf(keywordCondenser()), {
      limits: { context: 4000, turns: 4 },
    })
    await rollSteps()(context, attemptAt(book, { pages: 9, opening }))
    const shown = policy.requests.map(({ prompt }) => renderer.decode(prompt.ids))
    expect(shown).toHaveLength(4)
    for (const text of shown) {
      expect(text).toContain('<block_1>Open: Page 3.')
      expect(text).not.toContain('who was elected in 1904')
    }
  })
})

describe('condensing', () => {
  const sized = (resize: (messages: readonly Message[]) => readonly Message[]): Condenser => {
    const condensing = {
      condense: async (messages: readonly Message[]) => ({
        kind: 'rewritten' as const,
        messages: resize(messages),
        reason: 'resized',
      }),
      fork: () => condensing,
    }
    return { name: 'sized', condensesOpenings: false, open: () => condensing }
  }

  it('[O2] ends truncated by context where what comes back is no shorter, without trying for ever', async () => {
    const { trajectory, policy } = await rollOne(settingsOf(sized(messages => messages)))
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'context' })
    expect(kindsOf(trajectory)).not.toContain('condensed')
    const failed = trajectory.events.filter(({ kind }) => kind === 'condense-failed')
    expect(failed.length).toBeGreaterThan(0)
    expect(failed.length).toBeLessThan(4)
    expect(policy.requests.every(({ prompt }) => prompt.ids.length < 1200)).toBe(true)
  })

  it('tries again when the context is full, and as usual once it has helped', async () => {
    let tries = 0
    const late = sized(messages => (++tries === 1 ? messages : messages.slice(0, 1)))
    const { trajectory } = await rollOne(settingsOf(late))
    const kinds = kindsOf(trajectory).filter(kind => kind.startsWith('condense'))
    expect(kinds[0]).toBe('condense-failed')
    expect(kinds.filter(kind => kind === 'condensed').length).toBeGreaterThan(1)
    expect(trajectory.outcome).toEqual({ kind: 'completed' })
  })

  it('[O1] a condenser that throws, or changes who said what, is its own failure', async () => {
    const throwing = sized(() => {
      throw new Error('out of ideas')
    })
    const { trajectory } = await rollOne(settingsOf(throwing))
    expect(trajectory.outcome).toEqual({
      kind: 'failed',
      boundary: 'condenser',
      message: 'out of ideas',
    })
    const renaming = sized(() => [{ role: 'system', content: 'x' }])
    expect((await rollOne(settingsOf(renaming))).trajectory.outcome).toMatchObject({
      kind: 'failed',
      boundary: 'condenser',
      message: 'condenser "sized" changed the roles of the opening: user became system',
    })
  })

  it.each([2, 3, 4, 5, 6])(
    'no row is longer than the context, also where the last of %i turns was answered at length',
    async turns => {
      const limits = { turns, context: 700 }
      const { tree, policy } = await rollOne(settingsOf(keepLastTurns()), { limits })
      expectExact(tree, policy.requests, 700)
    },
  )

  it('tells what was condensed, from and to which length', async () => {
    const { trajectory } = await rollOne(settingsOf(keepLastTurns()))
    const event = trajectory.events.find(({ kind }) => kind === 'condensed')!
    const { before, after, leftOut } = event.figures!
    expect(event.detail).toBe(
      `${before} tokens to ${after}: ${leftOut === 1 ? 'turn 1' : `turns 1 to ${leftOut}`} left out`,
    )
    expect(before).toBeGreaterThan(900)
    expect(after).toBeLessThanOrEqual(600)
  })

  it('says in the conversation what was said, and in the views what was shown', async () => {
    const opening = `${page(1)} ${page(2)}`
    const { context } = setUp(settingsOf(keywordCondenser()))
    const tree = await rollChain(context, attemptAt(book, { pages: 9, opening }))
    const { messages, views } = tree.trajectories[0]!
    expect(messages[0]!.content).toBe(opening)
    expect(views![0]).toMatchObject({ turn: 0, by: 'condenser', from: 1 })
    expect(textOf(views![0]!.shown[0]!.content)).toMatch(/^<block_1>/)
  })
})

describe('summaries that the policy writes itself', () => {
  const summaryNodes = (tree: Tree) =>
    tree.nodes.filter(
      ({ lineage }) => lineage.kind === 'rewrites' && lineage.reason === 'the policy summarises',
    )

  it('[T5] are sampled on paths of their own, trained once, and observed where they are pasted', async () => {
    const { tree, policy, trajectory } = await rollOne(settingsOf(selfCondenser({ tokens: 120 })))
    const asked = policy.requests.filter(({ key }) => key.branch.includes('summary'))
    expect(asked.length).toBeGreaterThan(0)
    expect(summaryNodes(tree)).toHaveLength(asked.length)
    const credits = [{ trajectory: trajectory.id, advantage: 0.5, weight: 1 }]
    const rows = rowsOf(tree, { credits })
    const notes = `So far ${asked[0]!.key.turn} pages`
    const trainedIn = rows.filter(row => textWhere(row, 1).includes(notes))
    const shownIn = rows.filter(row => textWhere(row, 0).includes(notes))
    expect(trainedIn).toHaveLength(1)
    expect(shownIn.length).toBeGreaterThan(0)
    expect(
      [...trainedIn[0]!.advantages].filter(value => value !== 0).every(value => value === 0.5),
    ).toBe(true)
    expect(trajectory.usage.sampled).toBe(
      rows.reduce((sum, row) => sum + row.mask.filter(Boolean).length, 0),
    )
  })

  const textWhere = (row: ReturnType<typeof rowsOf>[number], mask: number): string =>
    renderer.decode(row.ids.filter((_, index) => row.mask[index] === mask))

  it('share the tokens of the conversation they summarise', async () => {
    const { tree } = await rollOne(settingsOf(selfCondenser({ tokens: 120 })), {
      limits: { context: 2400 },
    })
    expect(summaryNodes(tree).length).toBeGreaterThan(0)
    for (const { segment, start } of summaryNodes(tree))
      expect(start).toBeGreaterThan(segment.ids.length)
  })

  it('are not trained, nor kept in the tree, where that is not wanted', async () => {
    const settings = settingsOf(selfCondenser({ tokens: 120 }), { trainSummaries: false })
    const { tree, policy, trajectory } = await rollOne(settings)
    const summaries = trajectory.events.filter(({ kind }) => kind === 'summary')
    expect(summaries.length).toBeGreaterThan(0)
    expect(summaryNodes(tree)).toHaveLength(0)
    const turns = policy.requests.filter(({ key }) => !key.branch.includes('summary'))
    expectExact(tree, turns, 1200)
    expect(trajectory.usage.sampled).toBeGreaterThan(trainedTokens(tree))
  })

  const trainedTokens = (tree: Tree): number =>
    rowsOf(tree, {
      credits: [{ trajectory: tree.trajectories[0]!.id, advantage: 1, weight: 1 }],
    }).reduce((sum, row) => sum + row.mask.filter(Boolean).length, 0)

  it('[T5] written in vain are trained all the same', async () => {
    const wordy = (request: Said): string =>
      request.isSummary ? `${'blah '.repeat(300)}<|im_end|>` : call('turn_page', {})
    const condensing: Condensing = {
      async condense(messages, { self, signal }) {
        const question: Message = { role: 'user', content: 'Notes!' }
        try {
          const asked = [...messages, question]
          const { message } = await self.say(asked, { signal, maxTokens: 60 })
          return { kind: 'rewritten', messages: [...asked, message, question], reason: 'longer' }
        } catch {
          return { kind: 'unchanged' }
        }
      },
      fork: () => condensing,
    }
    const longNotes = { name: 'vain', condensesOpenings: false, open: () => condensing }
    const { tree, policy, trajectory } = await rollOne(settingsOf(longNotes), { speak: wordy })
    expect(kindsOf(trajectory)).toContain('summary')
    expect(kindsOf(trajectory)).toContain('condense-failed')
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'context' })
    expectExact(tree, policy.requests, 1200)
  })

  it('count against the tokens of the trajectory', async () => {
    const { trajectory } = await rollOne(settingsOf(selfCondenser({ tokens: 120 })), {
      limits: { tokens: 300 },
    })
    expect(trajectory.usage.sampled).toBeLessThanOrEqual(300)
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'tokens' })
  })
})

describe('recall', () => {
  const opening = `Question: Who is the mayor of Ardle2?\n\n${page(1)}\n\n${page(2)}`
  const condense = settingsOf(keywordCondenser({ minimum: 100, chunk: { boundary: /(?<=\n\n)/ } }))
  const recall = (block: unknown): string => call('recall', { block: block })

  async function play(turns: readonly string[], limits: Partial<Limits> = {}) {
    const speak = ({ key }: Said): string => turns[key.turn] ?? 'Ida Moor2<|im_end|>'
    const { policy, context } = setUp(condense, { speak, limits: { context: 4000, ...limits } })
    const tree = await rollChain(context, attemptAt(book, { pages: 9, opening }))
    return { tree, policy, trajectory: tree.trajectories[0]! }
  }

  it('gives the original back; the world never sees the call', async () => {
    const { tree, policy, trajectory } = await play([recall(2)])
    expect(trajectory.outcome).toEqual({ kind: 'completed' })
    expect(tree.tools.map(each => each.function.name)).toEqual(['turn_page', 'recall'])
    const answer = trajectory.messages.find(({ role }) => role === 'tool')!
    expect(answer.content).toBe(page(2))
    expect(trajectory.report).toEqual({ read: 0 })
    expect(trajectory.calls).toMatchObject([{ tool: 'recall', turn: 0, input: { block: 2 } }])
    const recalled = trajectory.events.find(({ kind }) => kind === 'recalled')!
    expect(recalled).toMatchObject({
      turn: 0,
      figures: { block: 2, characters: page(2).length, cut: 0 },
    })
    expectExact(tree, policy.requests, 4000)
    expect(policy.requests[0]!.prompt.tools).toHaveLength(2)
  })

  it('answers calls in their order, whoever answers them, and repeats within one turn', async () => {
    const both = ['turn_page', 'recall', 'recall']
      .map((name, index) => call(name, index === 0 ? {} : { block: 1 }).replace('<|im_end|>', ''))
      .join('\n')
    const { trajectory } = await play([`${both}<|im_end|>`])
    const answers = trajectory.messages.filter(({ role }) => role === 'tool')
    expect(answers.map(({ content }) => content)).toEqual([
      page(0),
      page(1),
      'Block 1 is already expanded above; re-read it there.',
    ])
    expect(trajectory.report).toEqual({ read: 1 })
  })

  it('[O1] what is wrong with a call is an observation', async () => {
    const { trajectory } = await play([recall(9), recall([1, 2])])
    expect(trajectory.outcome).toEqual({ kind: 'completed' })
    expect(kindsOf(trajectory)).toEqual(
      expect.arrayContaining(['tool:invalid-arguments', 'tool:invalid-arguments']),
    )
    expect(trajectory.calls.map(({ problem }) => problem)).toEqual([
      'invalid-arguments',
      'invalid-arguments',
    ])
  })

  it('gives a block again once it was condensed away', async () => {
    const turns = [recall(1), ...Array(8).fill(call('turn_page', {})), recall(1)]
    const { trajectory } = await play(turns, { context: 1800 })
    expect(kindsOf(trajectory).filter(kind => kind === 'recalled')).toHaveLength(2)
    expect(kindsOf(trajectory)).toContain('condensed')
  })

  it('is refused where the world has a tool of that name', async () => {
    const world = environment({
      name: 'clash',
      task: z.object({}),
      open: () => ({
        opening: [{ role: 'user', content: 'go' }],
        tools: { recall: tool({ inputSchema: z.object({}), execute: () => 1 }) },
      }),
    })
    const policy = acting(reads)
    const tree = await rollChain(
      contextOf({ environment: world, renderer, policy, condense }),
      attemptAt(world, {}),
    )
    expect(tree.trajectories[0]!.outcome).toMatchObject({
      kind: 'failed',
      boundary: 'condenser',
      message: expect.stringContaining('a tool "recall" already'),
    })
  })

  it('branches remember what they recalled themselves, and worlds fork at their own steps', async () => {
    const speak = ({ key, chance }: Said): string => {
      if (key.turn >= 5) return 'Ida Moor2<|im_end|>'
      return chance < 0.5 ? recall(1 + (key.turn % 2)) : call('turn_page', {})
    }
    const world = withFork(book) as typeof book
    for (const branch of ['fixed:width=2,depth=4', 'tree-grpo:expansions=4,rounds=3']) {
      const { policy, context } = setUp(condense, { speak, world, limits: { context: 6000 } })
      const roll = rollTree({ branch: openBranchPolicy(branch, renderer.vocabulary), leaves: 12 })
      const tree = await roll(context, attemptAt(world, { pages: 9, opening }))
      expectExact(tree, policy.requests, 6000)
      for (const { outcome, calls, messages, report, events } of tree.trajectories) {
        expect(outcome).toEqual({ kind: 'completed' })
        const pages = calls.filter(each => each.tool === 'turn_page')
        expect(report).toEqual({ read: pages.length })
        const given = messages.filter(
          each =>
            each.role === 'tool' && each.name === 'recall' && !/^Block/.test(textOf(each.content)),
        )
        expect(new Set(given.map(({ content }) => content)).size).toBe(given.length)
        expect(events[0]!.kind).toBe('condensed')
        expect(events.filter(({ kind }) => kind === 'recalled')).toHaveLength(given.length)
      }
    }
  })
})
