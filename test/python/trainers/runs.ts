// The runs that trainers are compared on, with the log-probabilities of a tiny model:
//   tsx runs.ts FOLDER            writes the neutral rows, for the model to score
//   tsx runs.ts FOLDER SCORES     writes every format for every loss, with those log-probabilities
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Group } from '../../../src/base/core/group.ts'
import { plainSampling } from '../../../src/base/core/policy.ts'
import { idsTo, type Tree } from '../../../src/base/core/tree.ts'
import { grpoAdvantages } from '../../../src/base/math/advantages/grpo.ts'
import { random, seedOf } from '../../../src/base/math/random.ts'
import { readImportance, weighImportance } from '../../../src/engine/weigh/importance.ts'
import { RefusedError } from '../../../src/run/sinks/format.ts'
import { formatNamed } from '../../../src/run/sinks/formats/registry.ts'
import { chainGroup, cutGroup, seeingGroup, toExport, treeGroup } from '../../export-runs.ts'
import { writeTo } from '../../memory-output.ts'

const [folder, scores] = process.argv.slice(2)
if (folder === undefined) throw new Error('say where to: runs.ts FOLDER [SCORES]')

/** The tiny model's vocabulary; its first two ids are kept for padding and ending. */
const vocabulary = 48

const four = { rewrites: 0, widest: 1 }
const shapes: Readonly<Record<string, readonly Group[]>> = {
  chains: [chainGroup([1, 0, 0.5, 0.25]), treeGroup(7, 4, four)],
  cut: [cutGroup([1, 0, 0.5, 0.25]), chainGroup([1, 0, 0.5, 0.25], { id: 'whole' })],
  trees: [treeGroup(4, 2, { rewrites: 0 }), treeGroup(5, 2, { rewrites: 0 })],
  steps: [
    treeGroup(11, 4, { rewrites: 1, widest: 1 }),
    treeGroup(12, 4, { rewrites: 1, widest: 1 }),
  ],
  condensed: [chainGroup([1, 0, 0.5, 0.75], { rewritten: [0, 2] })],
  weighed: [treeGroup(4, 2, { rewrites: 0 }), chainGroup([1, 0, 0.5, 0.25])],
}

/** Runs whose engine sampled otherwise than the model says, with weights against it. */
const importance: Readonly<Record<string, readonly string[]>> = {
  weighed: ['token:high=1.2', 'sequence:high=3'],
}

const known: Readonly<Record<string, number>> | undefined =
  scores === undefined
    ? undefined
    : (JSON.parse(readFileSync(scores, 'utf8')) as Record<string, number>)

/** The same group with the model's ids and log-probabilities, nothing filtered, nothing failed. */
function forModel(group: Group, id: string, names: readonly string[] = []): Group {
  const whole = seeingGroup(group)
  const trees = new Map(whole.members.map(({ tree }) => [tree, scored(tree, names.length > 0)]))
  const made: Group = {
    ...whole,
    id: id as Group['id'],
    task: id as Group['task'],
    unscored: [],
    members: whole.members.map(member => ({
      ...member,
      tree: trees.get(member.tree)!,
      dropped: null,
    })),
  }
  return known ? weighImportance(made, readImportance(names), 0) : made
}

/** `isOther`: recorded log-probabilities are those of another engine, near the model's. */
function scored(tree: Tree, isOther: boolean): Tree {
  const next = random(seedOf(1, tree.id))
  const small = {
    ...tree,
    sampling: plainSampling,
    nodes: tree.nodes.map(node => ({
      ...node,
      segment: {
        ...node.segment,
        ids: node.segment.ids.map(each => 2 + (each % (vocabulary - 2))),
      },
    })),
  } as Tree
  const nodes = small.nodes.map((node, index) => {
    const { segment } = node
    if (segment.origin !== 'sampled' || !known) return node
    const path = idsTo(small, { node: index, offset: segment.ids.length })
    const logprobs = Float32Array.from(segment.ids, (_, offset) => {
      const value = known[path.subarray(0, node.start + offset + 1).join()]
      if (value === undefined) throw new Error(`no score for token ${offset} of node ${index}`)
      return value
    })
    if (!isOther) return { ...node, segment: { ...segment, logprobs } }
    const recorded = logprobs.map(value => Math.min(0, value + 0.4 * (next() - 0.5)))
    return { ...node, segment: { ...segment, logprobs: recorded, others: { proximal: logprobs } } }
  })
  return { ...small, nodes } as Tree
}

/** How trainers that compare rewards themselves do it, where that is not as we do. */
const comparisons: Readonly<Record<string, Parameters<typeof grpoAdvantages>[1]>> = {
  trl: { epsilon: 1e-4 },
  rllm: { deviation: 'population' },
}

function weighedFor(group: Group, format: string): Group {
  const entries = group.members.map(({ trajectory, reward }) => ({
    group: group.id,
    trajectory: trajectory.id,
    reward: reward.total,
  }))
  const advantages = grpoAdvantages(entries, comparisons[format])
  const members = group.members.map((member, index) => ({
    ...member,
    advantage: advantages[index]!,
  }))
  return { ...group, members }
}

async function write(
  shape: string,
  groups: readonly Group[],
  file: { readonly format: string; readonly loss: string },
): Promise<void> {
  const { format, loss } = file
  const path = join(folder!, shape, `${format}.${loss}`)
  try {
    const written = await writeTo(formatNamed(format), groups.map(toExport), { loss })
    writeFileSync(path, written.bytes)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    writeFileSync(`${path}.refused`, error.message)
  }
}

for (const [shape, groups] of Object.entries(shapes)) {
  mkdirSync(join(folder, shape), { recursive: true })
  const own = groups.map((group, index) => forModel(group, `${shape}${index}`, importance[shape]))
  await write(shape, own, { format: 'jsonl', loss: 'ppo' })
  if (!known) continue
  for (const format of ['trl', 'verl', 'slime', 'skyrl', 'rllm', 'tinker']) {
    const groups = own.map(group => weighedFor(group, format))
    const { bytes } = await writeTo(formatNamed('jsonl'), groups.map(toExport))
    writeFileSync(join(folder, shape, `ours.${format}`), bytes)
    for (const loss of ['ppo', 'grpo', 'gspo', 'cispo'])
      await write(shape, groups, { format, loss })
  }
}
