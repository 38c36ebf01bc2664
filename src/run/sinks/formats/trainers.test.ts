import { describe, expect, it } from 'vitest'
import {
  chainGroup,
  cutGroup,
  plainTree,
  seeingGroup,
  toExport,
  treeGroup,
  weighed,
} from '../../../../test/export-runs.ts'
import { writeTo } from '../../../../test/memory-output.ts'
import {
  addCredit,
  artAdvantages,
  creditDifference,
  rllmPrecomputed,
  skyrlStepWise,
  slimeByMetadata,
  slimeByPosition,
  type TokenCredit,
  tinkerSum,
  trlAsync,
  trlByPosition,
  verifiersBranches,
  verlEspalier,
  verlGrpo,
} from '../../../../test/trainer-formulas.ts'
import type { Group } from '../../../base/core/group.ts'
import { rowForms } from '../../../base/core/row.ts'
import type { LeafWeighting } from '../../../base/math/credit.ts'
import { cutsOf } from '../../../engine/policies/schemes.ts'
import { groupRows } from '../../rows/row-record.ts'
import { type Format, type FormatOptions, RefusedError } from '../format.ts'
import { makeLossReport } from '../lost.ts'
import { art } from './art.ts'
import { atif } from './atif.ts'
import { jsonl } from './jsonl.ts'
import { parquet } from './parquet.ts'
import { rllm } from './rllm.ts'
import { skyrl } from './skyrl.ts'
import { slime } from './slime.ts'
import { tinker } from './tinker.ts'
import { trl } from './trl.ts'
import { verifiers } from './verifiers.ts'
import { verl } from './verl.ts'

/** What every token is worth to us, by the rows of the run. */
function ours(groups: readonly Group[], weighting: LeafWeighting = 'uniform'): TokenCredit {
  const credit: TokenCredit = new Map()
  for (const group of groups) {
    for (const { row } of groupRows(group, { weighting })) {
      const values = [...row.advantages].map((advantage, token) => advantage * row.weights[token]!)
      addCredit(credit, [...row.ids], values)
    }
  }
  return credit
}

function expectSame(theirs: TokenCredit, expected: TokenCredit, tolerance = 1e-9): void {
  expect(expected.size).toBeGreaterThan(0)
  expect(creditDifference(theirs, expected)).toBeLessThanOrEqual(tolerance)
}

async function linesOf(
  format: Format,
  groups: readonly Group[],
  options: Partial<FormatOptions> = {},
) {
  return (await writeTo(format, groups.map(toExport), options)).lines
}

const chains = [chainGroup([1, 0, 0.5, 0.25]), chainGroup([0, 1, 1, 0.75], { id: 'plums' })]
const rewritten = [chainGroup([1, 0, 0.5], { rewritten: [0, 2] })]
const seeds = Array.from({ length: process.env.ESPALIER_SOAK ? 200 : 10 }, (_, index) => index)

/** A group whose policy gave no log-probability for the second token of every turn. */
function patchy(logprobs = Float32Array.of(-0.5, Number.NaN, -0.25)): Group {
  const { members, ...rest } = chainGroup([1, 0])
  const patched = members.map(member => {
    const nodes = member.tree.nodes.map(node =>
      node.segment.origin === 'sampled'
        ? { ...node, segment: { ...node.segment, logprobs } }
        : node,
    )
    return { ...member, tree: { ...member.tree, nodes } }
  })
  return { ...rest, members: patched }
}

describe('trainers that compare rewards by position or by group', () => {
  it('slime gives chains of equal groups the advantages of the run', async () => {
    expectSame(slimeByPosition(await linesOf(slime, chains), 4), ours(chains))
  })

  it('verl gives chains the advantages of the run', async () => {
    expectSame(verlGrpo(await linesOf(verl, chains)), ours(chains))
  })

  it("TRL gives chains the advantages of the run, with TRL's epsilon", async () => {
    const scaled = chains.map(group => weighed(group, { epsilon: 1e-4 }))
    expectSame(trlByPosition(await linesOf(trl, scaled), 4), ours(scaled))
  })

  it('SkyRL gives all rows of a trajectory the advantages of the run, step-wise', async () => {
    expectSame(skyrlStepWise(await linesOf(skyrl, rewritten)), ours(rewritten))
    expectSame(skyrlStepWise(await linesOf(skyrl, chains)), ours(chains))
  })

  it('ART computes the advantages of GRPO with the deviation of a population', async () => {
    const [line] = await linesOf(art, chains.slice(0, 1))
    const group = weighed(chains[0]!, { deviation: 'population' })
    const expected = group.members.map(member => member.advantage)
    artAdvantages(line!).forEach((value, index) => {
      expect(value).toBeCloseTo(expected[index]!, 12)
    })
  })
})

describe('[T5] trainers that take our advantages', () => {
  const ways = [
    ['slime', slime, slimeByMetadata, 1e-9],
    ['verl', verl, verlEspalier, 1e-9],
    ['trl', trl, trlAsync, 1e-9],
    ['rllm', rllm, rllmPrecomputed, 1e-9],
    ['verifiers', verifiers, verifiersBranches, 1e-9],
    ['tinker', tinker, tinkerSum, 1e-6],
  ] as const

  it.each(ways)(
    '%s trains every token of a rewritten trajectory once',
    async (_, format, formula, tolerance) => {
      expectSame(formula(await linesOf(format, rewritten)), ours(rewritten), tolerance)
    },
  )

  it.each(ways)(
    '%s gives every token of a tree the credit of the run, in both forms',
    async (_, format, formula, tolerance) => {
      for (const seed of seeds) {
        const group = seeingGroup(treeGroup(seed))
        for (const weighting of ['uniform', 'hard'] as const) {
          for (const form of rowForms) {
            const lines = await linesOf(format, [group], { weighting, form })
            expectSame(formula(lines), ours([group], weighting), tolerance * 10)
          }
        }
      }
    },
  )

  it('SkyRL gives every ending of a tree its own advantage on its full path', async () => {
    const group = { ...seeingGroup(treeGroup(3)), unscored: [] }
    const members = group.members.map(member => ({ ...member, dropped: null }))
    const lines = await linesOf(skyrl, [{ ...group, members }])
    expectSame(skyrlStepWise(lines), ours([{ ...group, members }]))
  })

  it.each([
    ['skyrl', skyrl],
    ['art', art],
  ] as const)('%s refuses trees with tokens once, or weighed unevenly', async (_, format) => {
    const groups = [seeingGroup(treeGroup(3))]
    for (const options of [{ form: 'once' }, { weighting: 'branch' }] as const) {
      await expect(linesOf(format, groups, options)).rejects.toThrow(RefusedError)
      await expect(linesOf(format, groups, options)).rejects.toThrow(/holds trees.*verl/)
    }
  })

  const rowTrainers = [verl, trl, skyrl, rllm, verifiers]

  it('Tinker refuses losses that average sequences: it sums', async () => {
    await expect(linesOf(tinker, chains, { loss: 'grpo' })).rejects.toThrow(
      /Tinker sums over tokens/,
    )
  })

  it.each(rowTrainers)('$name refuses losses over sequences where a row is none', async format => {
    const trees = [seeingGroup(plainTree())]
    for (const loss of ['grpo', 'gspo', 'gmpo', 'sapo']) {
      await expect(linesOf(format, trees, { loss, form: 'once' })).rejects.toThrow(
        format === skyrl ? /holds trees|shares tokens/ : /shares tokens.*Use --rows paths/,
      )
      await expect(linesOf(format, rewritten, { loss })).rejects.toThrow(/several sequences/)
      await linesOf(format, trees, { loss })
      await linesOf(format, chains, { loss, form: 'once' })
    }
    await linesOf(format, rewritten, { loss: 'ppo' })
  })

  it('slime takes all rows of a trajectory for one sequence in means, not in ratios', async () => {
    await linesOf(slime, rewritten, { loss: 'grpo' })
    await expect(linesOf(slime, rewritten, { loss: 'gspo' })).rejects.toThrow(/several sequences/)
  })

  it('slime numbers rollouts by trajectory, and neutral rows carry what paths are made of', async () => {
    const group = seeingGroup(plainTree())
    const samples = await linesOf(slime, [group])
    const rollouts = samples.map(({ rollout_id }) => rollout_id)
    expect(new Set(rollouts).size).toBe(group.members.length)
    const [first] = await linesOf(jsonl, [group])
    expect(first).toMatchObject({
      trajectories: [
        [2, 5, ['t/0/0', 't/0/1']],
        [5, 6, ['t/0/0']],
      ],
      passages: [
        [
          2,
          5,
          [
            { trajectory: 't/0/0', advantage: group.members[0]!.advantage, weight: 1, share: 1 },
            { trajectory: 't/0/1', advantage: group.members[1]!.advantage, weight: 1, share: 1 },
          ],
        ],
        [
          5,
          6,
          [{ trajectory: 't/0/0', advantage: group.members[0]!.advantage, weight: 1, share: 1 }],
        ],
      ],
    })
  })

  it.each([trl, tinker, verifiers])(
    '$name refuses a run without log-probabilities',
    async format => {
      const blind = chainGroup([1, 0], { blind: [0, 1] })
      await expect(linesOf(format, [blind])).rejects.toThrow(
        `${format.name} cannot carry this run: it needs log-probabilities, and the policy of pears/`,
      )
    },
  )

  it.each([verl, slime, skyrl, art, rllm])(
    '$name says that there are no log-probabilities, and invents none',
    async format => {
      const lines = await linesOf(format, [chainGroup([1, 0], { blind: [0, 1] })])
      const text = JSON.stringify(lines)
      expect(text).toMatch(/log_?probs":(null|\[\])/)
      expect(text).not.toMatch(/log_?probs":(?!null|\[\])/)
    },
  )

  it('[D1] atif counts what lacks a log-probability, where the rest then carries none', async () => {
    const { lost, text } = await writeTo(atif, [toExport(patchy())])
    expect(text).not.toMatch(/log_?probs":\[/)
    expect(lost.map(({ what }) => what).join()).toMatch(/without a log-prob.*therefore carry none/)
  })

  const unknown = { what: 'sampled tokens without a log-probability: not trained', count: 4 }

  it.each([
    ['trl', trl, 'env_mask', 'logprobs'],
    ['verl', verl, 'response_mask', 'response_logprobs'],
    ['slime', slime, 'loss_mask', 'rollout_log_probs'],
    ['skyrl', skyrl, 'loss_mask', 'rollout_logprobs'],
  ] as const)(
    '[D1] %s trains no token without a log-probability, and counts it',
    async (_, format, mask, logprobs) => {
      const { lines, lost } = await writeTo(format, [toExport(patchy())])
      expect(lines[0]).toMatchObject({
        [mask]: [1, 0, 1, 0, 0, 1, 0, 1],
        [logprobs]: [-0.5, 0, -0.25, 0, 0, -0.5, 0, -0.25],
      })
      expect(lost).toContainEqual(unknown)
    },
  )

  it.each([jsonl, parquet, tinker, verifiers, rllm, art])(
    '[D1] $name counts tokens without a log-probability as not trained',
    async format => {
      const { lost } = await writeTo(format, [toExport(patchy())])
      expect(lost).toContainEqual(unknown)
    },
  )

  it('[D1] neutral rows leave tokens without a log-probability out of mask and passages', async () => {
    const [first] = await linesOf(jsonl, [patchy()])
    expect(first).toMatchObject({
      mask: [0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1],
      logprobs: [0, 0, 0, 0, -0.5, null, -0.25, 0, 0, -0.5, null, -0.25],
    })
  })

  it('neutral rows have the order of cuts where it decided their numbers', async () => {
    const cut = { temperature: 0.7, topP: 0.9, topK: 0, minP: 0.02 }
    const { members, ...rest } = chainGroup([1, 0])
    const renormalised = members.map(member => {
      const nodes = member.tree.nodes.map(node =>
        node.segment.origin === 'sampled'
          ? { ...node, segment: { ...node.segment, basis: 'renormalised' as const } }
          : node,
      )
      return { ...member, tree: { ...member.tree, nodes, sampling: cut } }
    })
    const cuts = cutsOf(['vllm:http://a', 'vllm:http://b'])
    expect(cuts).toEqual(['min-p', 'top-k', 'top-p'])
    expect(cutsOf(['vllm:http://a', 'llama-cpp:http://b'])).toBeUndefined()
    const group = { ...rest, members: renormalised }
    expect((await linesOf(jsonl, [group], { cuts }))[0]!.cuts).toEqual(cuts)
    expect((await linesOf(jsonl, [chainGroup([1, 0])], { cuts }))[0]!.cuts).toBeUndefined()
  })

  it('[D1] rLLM and ART, which train whole steps, leave out the step', async () => {
    const [episode] = await linesOf(rllm, [patchy()])
    const [trajectory] = (episode as { trajectories: { steps: object[] }[] }).trajectories
    expect(trajectory!.steps).toEqual([])
    const { text } = await writeTo(art, [toExport(patchy())])
    expect(text).not.toContain('finish_reason')
  })

  it.each([art, skyrl])('$name refuses advantages of parts of turns', async format => {
    const { members, ...rest } = plainTree()
    const stretches = [{ node: 2, start: 0, end: 1, advantage: 9 }]
    const group = { ...rest, members: members.map(member => ({ ...member, stretches })) }
    await expect(linesOf(format, [group])).rejects.toThrow(/cannot carry.*advantages/)
  })

  it.each([
    ['verl', verl, 'response_mask'],
    ['slime', slime, 'loss_mask'],
    ['skyrl', skyrl, 'loss_mask'],
    ['trl', trl, 'env_mask'],
  ] as const)(
    '[D1] %s trains no attempt without log-probabilities where others have them',
    async (_, format, mask) => {
      const mixed = chainGroup([1, 0], { blind: [1] })
      const { lines, lost } = await writeTo(format, [toExport(mixed)])
      expect(lines[0]![mask]).toContain(1)
      expect(lines[1]![mask]).not.toContain(1)
      expect(lost).toContainEqual({
        what: 'attempts without log-probabilities where others have them: not trained',
        count: 1,
      })
    },
  )

  it('verl: a response ends where nothing was sampled after, and the reward stands on a trained token', async () => {
    const [first] = await linesOf(verl, [cutGroup([1, 0])])
    expect(first).toMatchObject({
      response_ids: [100, 101, 102],
      response_mask: [1, 1, 1],
      token_level_scores: [0, 0, 1],
    })
    const [unknownLast] = await linesOf(verl, [patchy(Float32Array.of(-0.5, -0.25, Number.NaN))])
    expect(unknownLast).toMatchObject({
      response_mask: [1, 1, 0, 0, 0, 1, 1, 0],
      token_level_scores: [0, 0, 0, 0, 0, 0, 1, 0],
    })
  })

  it('verl: says what its own grpo makes of trajectories of several rows', async () => {
    const group = chainGroup([1, 0, 0.5], { rewritten: [0] })
    const notes: string[] = []
    const lost = { ...makeLossReport(), note: (what: string) => void notes.push(what) }
    await writeTo(verl, [toExport(group)], { lost })
    expect(notes.join()).toMatch(/2 rows .* counts each as an attempt.* 0\.\d{3} off on average/)
    notes.length = 0
    await writeTo(verl, [toExport(chainGroup([1, 0]))], { lost })
    expect(notes.join()).not.toMatch(/counts each/)
  })

  it('failed and filtered trajectories are written untrained where they are asked for', async () => {
    const group = chainGroup([1, 0, 0.5], { dropped: [2], failed: 1 })
    const samples = await linesOf(slime, [group])
    expect(samples.map(({ remove_sample, status }) => [remove_sample, status])).toEqual([
      [false, 'completed'],
      [false, 'completed'],
      [true, 'completed'],
      [true, 'failed'],
    ])
    expectSame(slimeByMetadata(samples), ours([group]))
  })
})
