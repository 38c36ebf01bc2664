import { type Message, textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import {
  book,
  expectExact,
  kindsOf,
  page,
  renderer,
  rollOne,
  settingsOf,
  setUp,
} from '../../../../test/long-book.ts'
import { attemptAt } from '../../../../test/rolling.ts'
import type { Condenser } from '../../../base/core/condenser.ts'
import { keepLastTurns } from '../../condensers/keep-last-turns.ts'
import { keywordCondenser } from '../../condensers/keyword.ts'
import { modelCondenser } from '../../condensers/model.ts'
import { selfCondenser } from '../../condensers/self.ts'
import { trimToolOutput } from '../../condensers/trim-tool-output.ts'
import { withFork } from '../../environments/fork.ts'
import { openBranchPolicy } from '../branches/registry.ts'
import { rollChain } from '../chain.ts'
import { rollSteps } from '../step.ts'
import { rollTree } from '../tree.ts'

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
