import { textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  acting,
  book,
  expectExact,
  kindsOf,
  page,
  reads,
  renderer,
  type Said,
  settingsOf,
  setUp,
} from '../../../../test/long-book.ts'
import { attemptAt, call, contextOf } from '../../../../test/rolling.ts'
import { keywordCondenser } from '../../condensers/keyword.ts'
import { environment } from '../../environments/environment.ts'
import { withFork } from '../../environments/fork.ts'
import { tool } from '../../environments/tools/tool.ts'
import type { Limits } from '../attempt.ts'
import { openBranchPolicy } from '../branches/registry.ts'
import { rollChain } from '../chain.ts'
import { rollTree } from '../tree.ts'

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
