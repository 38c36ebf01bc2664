import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Environment } from '../../src/base/core/environment.ts'
import { rowsOf } from '../../src/base/core/row.ts'
import { pathEnds } from '../../src/base/core/tree.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import { withFork } from '../../src/engine/environments/fork.ts'
import { openBranchPolicy } from '../../src/engine/rollout/branches/registry.ts'
import { rollChain } from '../../src/engine/rollout/chain.ts'
import { rollSteps } from '../../src/engine/rollout/step.ts'
import { rollTree } from '../../src/engine/rollout/tree.ts'
import { auditRun } from '../../src/learn/learn/audit.ts'
import { teach } from '../../src/learn/learn/teach.ts'
import { roll } from '../../src/run/run/roll.ts'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { openPolicy } from '../../src/run/settings/open-policy.ts'
import { demonstrateDesk } from '../desk-players.ts'

const folder = mkdtempSync(join(tmpdir(), 'condense-audit-'))
const model = join(folder, 'model')

/** A customer who answers whatever is said, and never comes to an end. */
const talk: Environment = {
  name: 'talk',
  readTask: data => data,
  async open() {
    let said = 0
    return {
      opening: [{ role: 'user', content: 'where is my order' }],
      tools: [],
      step: async () => ({
        kind: 'continue',
        observed: [
          { role: 'user', content: `order ${said++} is old, is it gone, cancel order ${said}` },
        ],
      }),
      [Symbol.asyncDispose]: async () => {},
    }
  },
  reward: { talked: ({ messages }) => messages.length },
}
const world = withFork(talk)

// It knows the words of the desk and little else: what it says is made up.
const shape = { width: 16, layers: 1, heads: 2, hidden: 32, context: 1024 }
const taught = await teach(desk(), 12, {
  show: demonstrateDesk,
  seed: 1,
  epochs: 1,
  shape,
  threads: 1,
  out: model,
})
await taught[Symbol.asyncDispose]()
const policy = await openPolicy(`embedded:${model}`)
const renderer = await openRenderer(model)
const search = (branch: string) =>
  rollTree({ branch: openBranchPolicy(branch, renderer.vocabulary), leaves: 4 })

describe('[T5] every log-probability of a condensed run is the policy’s own', () => {
  it.each([
    ['chain', 'keep-last-turns', rollChain],
    ['chain', 'keyword:minimum=40,ratio=1.5,above=0.5,to=0.4', rollChain],
    ['chain', 'self:tokens=32,above=0.5,to=0.4,prompt=status', rollChain],
    ['step', 'keep-last-turns', rollSteps({ history: 8 })],
    ['tree', 'keep-last-turns', search('fixed:width=2,depth=2')],
    ['tree', 'self:tokens=32,above=0.5,to=0.4,prompt=status', search('tree-grpo')],
  ] as const)('%s with %s', async (name, condense, strategy) => {
    const out = join(folder, `${name}-${condense.replace(/\W+/g, '-')}`)
    const context = condense === 'keep-last-turns' ? 256 : 512
    let rewrites = 0
    const limits = { context, newTokens: 12, turns: 24 }
    const options = { policy, model: renderer, group: 2, limits, condense, strategy, out }
    for await (const { members, unscored } of roll(world, [{}, {}], {
      ...options,
      onLength: 'continue',
    })) {
      expect(unscored).toEqual([])
      for (const { tree, trajectory } of members) {
        rewrites += pathEnds(tree, trajectory.end).length - 1
        const credits = [{ trajectory: trajectory.id, advantage: 1, weight: 1 }]
        for (const row of rowsOf(tree, { credits })) {
          expect(row.ids.length).toBeLessThanOrEqual(context)
        }
      }
    }
    expect(rewrites).toBeGreaterThan(0)
    const audit = await auditRun(out, policy)
    expect(audit).toMatchObject({ wrong: 0, unchecked: {} })
    expect(audit.checked).toBeGreaterThan(100)
  })
})
