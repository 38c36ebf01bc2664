import { describe, expect, it } from 'vitest'
import { attemptAt, contextOf, dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { rowsOf } from '../../base/core/row.ts'
import { idsTo, lengthTo, pathTo, type Tree } from '../../base/core/tree.ts'
import { calculator } from '../environments/built-in/calculator.ts'
import { withFork } from '../environments/fork.ts'
import { defaultLimits } from './attempt.ts'
import type { BranchPolicy } from './branch.ts'
import { openBranchPolicy } from './branches/registry.ts'
import { rollTree } from './tree.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })
const world = withFork(calculator())
const names = [
  'fixed',
  'fixed:width=3,depth=1',
  'arpo:initial=2,chance=0.8',
  'arpo:initial=2,measure=before',
  'tree-grpo:expansions=3,rounds=2',
  'tree-rl',
  'tool-error:width=3',
  'best-first',
]
const seeds = 12 * Number(process.env.ESPALIER_SOAK ?? 1)

function roll(branch: BranchPolicy | string, parts: { seed?: number; leaves?: number } = {}) {
  const { seed = 1, leaves = 6 } = parts
  const policy = dicePolicy(renderer)
  const context = contextOf({
    environment: world,
    renderer,
    policy,
    limits: { ...defaultLimits, turns: 6 },
  })
  const opened = typeof branch === 'string' ? openBranchPolicy(branch, renderer.vocabulary) : branch
  const attempt = attemptAt(world, { prompt: 'What is 2+3?', answer: '5' }, { seed })
  return rollTree({ branch: opened, leaves })(context, attempt).then(tree => ({ tree, policy }))
}

/** A tree as values that two equal trees share, whatever the order they grew in. */
function summary(tree: Tree) {
  return tree.trajectories.map(trajectory => ({
    id: trajectory.id,
    ids: [...idsTo(tree, trajectory.end)].join(),
    outcome: trajectory.outcome,
    messages: trajectory.messages,
    share: trajectory.share,
  }))
}

describe.each(names)('rollTree with %s', name => {
  it('never has more endings than allowed, and all of them ended well', async () => {
    for (let seed = 0; seed < seeds; seed++) {
      const leaves = 1 + (seed % 7)
      const { tree } = await roll(name, { seed, leaves })
      expect(tree.trajectories.length).toBeLessThanOrEqual(leaves)
      expect(tree.trajectories.length).toBeGreaterThan(0)
      for (const { outcome } of tree.trajectories)
        expect(outcome.kind).toMatch(/completed|truncated/)
    }
  })

  it('[T2] samples from exact prefixes that are stored once', async () => {
    const { tree, policy } = await roll(name)
    const paths = tree.trajectories.map(({ end }) => [...idsTo(tree, end)].join())
    for (const prompt of policy.prompts) {
      expect(paths.some(path => path.startsWith([...prompt].join()))).toBe(true)
    }
    const stored = tree.nodes.reduce((sum, { segment }) => sum + segment.ids.length, 0)
    const full = tree.trajectories.reduce((sum, { end }) => sum + lengthTo(tree, end), 0)
    if (tree.trajectories.length > 1) expect(stored).toBeLessThan(full)
  })

  it('[T3] each path is what the template renders of its messages', async () => {
    const { tree } = await roll(name, { seed: 3 })
    for (const { messages, end, outcome } of tree.trajectories) {
      if (outcome.kind !== 'completed') continue
      const whole = renderer.chat.render({ messages, tools: tree.tools, opensTurn: false }).text
      expect(`${renderer.decode(idsTo(tree, end))}\n`).toBe(whole)
    }
  })

  it('[T5] every sampled token is trained once', async () => {
    for (let seed = 0; seed < seeds; seed++) {
      const { tree } = await roll(name, { seed })
      const credits = tree.trajectories.map(({ id }) => ({
        trajectory: id,
        advantage: 1,
        weight: 1,
      }))
      const trained = rowsOf(tree, { credits }).reduce(
        (sum, row) => sum + row.mask.filter(Boolean).length,
        0,
      )
      const sampled = tree.nodes.reduce(
        (sum, { segment }) => sum + (segment.origin === 'sampled' ? segment.ids.length : 0),
        0,
      )
      const onPaths = new Set(
        tree.trajectories.flatMap(({ end }) => pathTo(tree, end).map(({ node }) => node)),
      )
      expect(onPaths.size).toBe(tree.nodes.length - 1)
      expect(trained).toBe(sampled)
    }
  })

  it('[S1] gives the same tree for the same seed, and shares that add up to one', async () => {
    const [one, two, other] = await Promise.all([
      roll(name, { seed: 5 }),
      roll(name, { seed: 5 }),
      roll(name, { seed: 6 }),
    ])
    expect(summary(one.tree)).toEqual(summary(two.tree))
    expect(summary(one.tree)).not.toEqual(summary(other.tree))
    const total = one.tree.trajectories.reduce((sum, { share }) => sum + share, 0)
    expect(total).toBeCloseTo(1, 9)
  })
})

describe('rollTree', () => {
  it('refuses a branch policy that needs what the policy does not give, naming both', async () => {
    const { policy: dice } = await roll('fixed')
    const policy = { ...dice, capabilities: { ...dice.capabilities, entropies: false } }
    const context = contextOf({ environment: world, renderer, policy })
    const branch = openBranchPolicy('arpo', renderer.vocabulary)
    const attempt = attemptAt(world, { prompt: '1', answer: '1' })
    await expect(rollTree({ branch, leaves: 2 })(context, attempt)).rejects.toThrow(
      'branch policy "arpo" needs entropies or at least 2 top log-probabilities, which policy dice does not give',
    )
  })

  it('[O1] fails only the tree whose worlds cannot be forked', async () => {
    const plain = calculator()
    const policy = dicePolicy(renderer)
    const branch = openBranchPolicy('fixed', renderer.vocabulary)
    const context = contextOf({ environment: plain, renderer, policy })
    const tree = await rollTree({ branch, leaves: 2 })(
      context,
      attemptAt(plain, { prompt: '1', answer: '1' }),
    )
    expect(tree.trajectories[0]!.outcome).toMatchObject({ kind: 'failed', boundary: 'environment' })
  })

  it('says what is wrong with a branch policy’s name and options', () => {
    expect(() => openBranchPolicy('fxed', 10)).toThrow(
      'No branch policy called "fxed". Known: fixed, arpo',
    )
    expect(() => openBranchPolicy('fixed:wide=2', 10)).toThrow(
      'has no option "wide". Known: width, depth.',
    )
    expect(() => openBranchPolicy('arpo:measure=now', 10)).toThrow(
      'measure must be after or before, not "now"',
    )
  })

  it('a 64-leaf tree over a long shared prefix stores the prefix once', async () => {
    const { tree } = await roll('fixed:width=64,depth=1', { leaves: 64 })
    expect(tree.trajectories).toHaveLength(64)
    const prompts = tree.nodes.filter(
      ({ segment }) => segment.origin === 'prompt' && segment.ids.length > 0,
    )
    expect(prompts).toHaveLength(1)
  })
})
