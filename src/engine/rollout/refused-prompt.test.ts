import { describe, expect, it } from 'vitest'
import { attemptAt, call, contextOf, openByteRenderer, script } from '../../../test/rolling.ts'
import { type Policy, PromptTooLong, type SampleRequest } from '../../base/core/policy.ts'
import { calculator } from '../environments/built-in/calculator.ts'
import { withFork } from '../environments/fork.ts'
import type { ScriptedAnswer } from '../policies/scripted.ts'
import { fixedBranches } from './branches/fixed.ts'
import { rollChain } from './chain.ts'
import { rollTree } from './tree.ts'

const renderer = await openByteRenderer()
const world = withFork(calculator())
const task = { prompt: 'What is 2 + 3?', answer: '5' }
const begun = renderer.tokenizer.encode('It is')
const sum = call('calculate', { expression: '2+3' })

/** A policy that refuses what it is asked where `isRefused` says so, as a server with a smaller context does. */
function refusing(
  answers: readonly ScriptedAnswer[],
  isRefused: (request: SampleRequest, nth: number) => boolean,
): Policy {
  const policy = script(renderer, answers)
  let count = 0
  return {
    ...policy,
    async sample(request, given) {
      if (isRefused(request, count++)) throw new PromptTooLong('6000 tokens, and I take 4096')
      return await policy.sample(request, given)
    },
  }
}

const roll = (policy: Policy) =>
  rollChain(contextOf({ environment: world, renderer, policy }), attemptAt(world, task))

describe('a prompt that the policy refuses as too long', () => {
  it('[O2] truncates the attempt by context with the reason, and keeps what was sampled', async () => {
    const tree = await roll(refusing([sum], (_, nth) => nth === 1))
    const [trajectory] = tree.trajectories
    expect(trajectory).toMatchObject({
      outcome: { kind: 'truncated', limit: 'context' },
      turns: [{ finish: { kind: 'stop' } }],
      events: [{ kind: 'context-refused', detail: 'PromptTooLong: 6000 tokens, and I take 4096' }],
    })
    // The observation that it refused to see is not part of the path.
    expect(tree.nodes[trajectory!.end.node]!.segment.origin).toBe('sampled')
  })

  it('[O2] truncates an attempt before its first turn too', async () => {
    const { trajectories } = await roll(refusing([], () => true))
    expect(trajectories).toMatchObject([
      { outcome: { kind: 'truncated', limit: 'context' }, turns: [] },
    ])
  })

  it('[O2] cuts a turn that was stopped for new weights where it was, and keeps its first part', async () => {
    const policy = refusing([{ ids: [...begun] }], (_, nth) => nth === 1)
    const stopped: Policy = {
      ...policy,
      sample: async (request, given) => ({
        ...(await policy.sample(request, given)),
        finish: { kind: 'abort' },
      }),
    }
    const tree = await roll(stopped)
    expect(tree.trajectories).toMatchObject([
      {
        outcome: { kind: 'truncated', limit: 'context' },
        turns: [{ finish: { kind: 'length' } }],
        events: [{ kind: 'context-refused' }],
      },
    ])
    expect(tree.trajectories[0]!.usage.sampled).toBe(begun.length)
  })

  it('[O2] other failures of the policy stay failures', async () => {
    const policy = script(renderer, [sum])
    const tree = await roll(policy)
    expect(tree.trajectories).toMatchObject([{ outcome: { kind: 'failed', boundary: 'policy' } }])
  })

  it('[R2] ends one path of a tree, and no other', async () => {
    const policy = refusing(
      [sum, 'It is 5<|im_end|>'],
      ({ key }) => key.branch !== '' && key.turn > 0,
    )
    const context = contextOf({ environment: world, renderer, policy })
    const rolling = rollTree({ branch: fixedBranches({ depth: 1 }), leaves: 2 })
    const tree = await rolling(context, attemptAt(world, task))
    expect(tree.trajectories.map(({ outcome }) => outcome)).toEqual([
      { kind: 'completed' },
      { kind: 'truncated', limit: 'context' },
    ])
  })
})
