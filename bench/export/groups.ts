import type { Message } from '@espalier/text'
import type { Group } from '../../src/base/core/group.ts'
import type { GroupId, TaskId, TreeId } from '../../src/base/core/ids.ts'
import { plainSampling } from '../../src/base/core/policy.ts'
import { given, sampled } from '../../src/base/core/segment.ts'
import { type Gradable, plainTrajectory } from '../../src/base/core/trajectory.ts'
import { plantTree, root, type Tree } from '../../src/base/core/tree.ts'
import { random, seedOf } from '../../src/base/math/random.ts'
import { corpora } from '../peers/corpora.ts'

const MEMBERS = 8
const TURNS = 12
const PROMPT = 800
const SAMPLED = 180
const OBSERVED = 170
/** Groups that differ; a longer export goes through them again. */
const DISTINCT = 40

/** Tokens of one group. */
export const groupTokens = MEMBERS * (PROMPT + TURNS * (SAMPLED + OBSERVED))
/** Rows of one group. */
export const groupMembers = MEMBERS

type Draw = () => number

/** Groups as agents leave them: long prompts, then samples and observations in turn, with messages of real text. */
export function makeGroups(count: number): readonly Group[] {
  const { code, prose } = corpora().corpora
  const text = [...code, ...prose].join('\n')
  const groups = Array.from({ length: Math.min(count, DISTINCT) }, (_, index) =>
    makeGroup(index, text),
  )
  return Array.from({ length: count }, (_, index) => groups[index % groups.length]!)
}

function makeGroup(index: number, text: string): Group {
  const id = `g${index}`
  const members = Array.from({ length: MEMBERS }, (_, member) => {
    const tree = makeTree({ id, member, text })
    return {
      tree,
      trajectory: tree.trajectories[0] as Gradable,
      reward: { total: member % 2, parts: [{ name: 'exact', score: member % 2, weight: 1 }] },
      dropped: null,
      advantage: member % 2 === 0 ? -1 : 1,
      weight: 1,
    }
  })
  return { id: id as GroupId, task: id as TaskId, members, unscored: [] }
}

interface Planted {
  readonly id: string
  readonly member: number
  readonly text: string
}

function makeTree({ id, member, text }: Planted): Tree {
  const next = random(seedOf(id, member))
  const tree = plantTree({
    id: `${id}/${member}` as TreeId,
    task: id as TaskId,
    member,
    seed: member,
    sampling: plainSampling,
    tools: [],
    renderer: 'bench',
  })
  // The members of a group have one prompt.
  let place = tree.append(root, given('prompt', drawIds(random(seedOf(id, -1)), PROMPT)))
  for (let turn = 0; turn < TURNS; turn++) {
    const logprobs = Float32Array.from({ length: SAMPLED }, () => -(next() ** 4) * 6)
    const version = { from: 1, to: 1 }
    place = tree.append(place, sampled({ ids: drawIds(next, SAMPLED), logprobs, version }))
    place = tree.append(place, given('observed', drawIds(next, OBSERVED)))
  }
  tree.end(
    plainTrajectory({
      id: `${id}/${member}/0` as Gradable['id'],
      end: place,
      outcome: { kind: 'completed' },
      messages: drawMessages(next, text),
      usage: { sampled: TURNS * SAMPLED, prompt: 0 },
    }),
  )
  return tree
}

/** Frequent tokens have small ids, as in real vocabularies. */
function drawIds(next: Draw, count: number): Int32Array {
  return Int32Array.from({ length: count }, () => Math.floor(next() ** 3 * 150_000))
}

function drawMessages(next: Draw, text: string): Message[] {
  const draw = (): string => {
    const start = Math.floor(next() * (text.length - 1000))
    return text.slice(start, start + 400 + Math.floor(next() * 400))
  }
  return Array.from({ length: TURNS }, () => [
    { role: 'user', content: draw() } as const,
    { role: 'assistant', content: draw() } as const,
  ]).flat()
}
