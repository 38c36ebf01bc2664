import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { attemptAt, contextOf, dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { rowsOf } from '../../base/core/row.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Tree } from '../../base/core/tree.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { withFork } from '../../engine/environments/fork.ts'
import { openBranchPolicy } from '../../engine/rollout/branches/registry.ts'
import { rollChain } from '../../engine/rollout/chain.ts'
import { rollTree } from '../../engine/rollout/tree.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { groupRows } from '../rows/row-record.ts'
import { rollIntoRun } from '../run/open-run-folder.ts'
import type { RollParts } from '../run/roll-groups.ts'
import { openRunReader } from '../store/store.ts'
import { convertRun, convertTree } from './convert.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })
const environment = withFork(calculator())
const seeds = 20 * Number(process.env.ESPALIER_SOAK ?? 1)

function roll(seed: number, branch?: string): Promise<Tree> {
  const context = contextOf({ environment, renderer, policy: dicePolicy(renderer) })
  const attempt = attemptAt(environment, { prompt: 'What is 2+3?', answer: '5' }, { seed })
  if (!branch) return rollChain(context, attempt)
  const opened = openBranchPolicy(branch, renderer.vocabulary)
  return rollTree({ branch: opened, leaves: 5 })(context, attempt)
}

/** A chain of more than two turns. */
async function longest(): Promise<Tree> {
  for (let seed = 0; ; seed++) {
    const tree = await roll(seed)
    if (tree.trajectories[0]!.turns.length > 2) return tree
  }
}

const countSampled = (tree: Tree): number =>
  tree.nodes.reduce((sum, { segment }) => sum + (isSampled(segment) ? segment.ids.length : 0), 0)

describe.each([undefined, 'fixed', 'tree-rl', 'tree-grpo'])(
  'steps of a tree grown by %s',
  branch => {
    it('[T5] train every sampled token once, behind the opening and the last turns', async () => {
      for (let seed = 0; seed < seeds; seed++) {
        const tree = await roll(seed, branch)
        const converted = convertTree(tree, { renderer, history: 2, keepsLogprobs: false })
        const credits = converted.trajectories.map(({ id }) => ({
          trajectory: id,
          advantage: 1,
          weight: 1,
        }))
        const rows = rowsOf(converted, { credits })
        const trained = rows.reduce((sum, { mask }) => sum + mask.filter(Boolean).length, 0)
        expect(trained).toBe(countSampled(tree))
        for (const row of rows) {
          const first = row.mask.indexOf(1)
          const prompt = renderer.decode(row.ids.slice(0, first))
          expect(prompt).toContain('What is 2+3?')
          expect(prompt.split('<|im_start|>assistant').length - 2).toBeLessThanOrEqual(2)
          expect(row.logprobs[first]).toBeNaN()
        }
      }
    })
  },
)

describe('a converted trajectory', () => {
  it('[T4] says of every prompt that the policy never saw it', async () => {
    const tree = await longest()
    const converted = convertTree(tree, { renderer, history: 1, keepsLogprobs: false })
    const [before, after] = [tree.trajectories[0]!, converted.trajectories[0]!]
    expect(after.fidelity.forks).toHaveLength(before.turns.length - 1)
    for (const { reason } of after.fidelity.forks) expect(reason).toContain('off-policy')
    expect(after.events.at(-1)).toMatchObject({ kind: 'converted' })
    expect(after.messages).toEqual(before.messages)
  })
})

describe('a converted run', () => {
  it('keeps rewards and trains a row for every turn', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'espalier-convert-'))
    const [run, out] = [join(folder, 'run'), join(folder, 'steps')]
    const estimate = makeEstimate('grpo')
    const parts: RollParts = {
      environment,
      renderer,
      policy: dicePolicy(renderer),
      estimate,
      group: 4,
    }
    const record = { out: run, kind: 'roll', config: {} }
    for await (const _ of rollIntoRun(1, parts, record));
    const config = { stepHistory: 3 }
    const options = { out, renderer, history: 3, estimate, weighting: 'uniform' as const, config }
    const counts = await convertRun(run, options)
    const [before, after] = await Promise.all([run, out].map(readGroup))
    expect(after!.members.map(({ reward }) => reward)).toEqual(
      before!.members.map(({ reward }) => reward),
    )
    expect(after!.members.map(({ advantage }) => advantage)).toEqual(
      before!.members.map(({ advantage }) => advantage),
    )
    expect(groupRows(after!)).toHaveLength(counts.turns)
    await expect(convertRun(run, options)).rejects.toThrow('already holds a run')
  })
})

async function readGroup(run: string) {
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) return group
  throw new Error('no group')
}
