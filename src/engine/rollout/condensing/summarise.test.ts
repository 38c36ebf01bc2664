import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import {
  expectExact,
  kindsOf,
  renderer,
  rollOne,
  type Said,
  settingsOf,
} from '../../../../test/long-book.ts'
import { call } from '../../../../test/rolling.ts'
import type { Condensing } from '../../../base/core/condenser.ts'
import { PromptTooLong } from '../../../base/core/policy.ts'
import { rowsOf } from '../../../base/core/row.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { selfCondenser } from '../../condensers/self.ts'

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

  it('that the policy has no room for are a problem of the condenser, not a failure of the policy', async () => {
    const refusing = (request: Said): string => {
      if (request.isSummary) throw new PromptTooLong('I take no more')
      return call('turn_page', {})
    }
    const told: unknown[] = []
    const condensing: Condensing = {
      async condense(messages, { self, signal }) {
        await self.say(messages, { signal }).catch((error: unknown) => told.push(error))
        return { kind: 'unchanged' }
      },
      fork: () => condensing,
    }
    const asking = { name: 'asking', condensesOpenings: false, open: () => condensing }
    const { trajectory } = await rollOne(settingsOf(asking), { speak: refusing })
    expect(String(told[0])).toContain('no room to summarise: PromptTooLong: I take no more')
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'context' })
  })

  it('count against the tokens of the trajectory', async () => {
    const { trajectory } = await rollOne(settingsOf(selfCondenser({ tokens: 120 })), {
      limits: { tokens: 300 },
    })
    expect(trajectory.usage.sampled).toBeLessThanOrEqual(300)
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'tokens' })
  })
})
