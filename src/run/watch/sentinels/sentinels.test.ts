import { describe, expect, it } from 'vitest'
import { type PlainTree, plainTree } from '../../../../test/plain-tree.ts'
import type { Group } from '../../../base/core/group.ts'
import type { GroupId, TaskId } from '../../../base/core/ids.ts'
import type { Gradable } from '../../../base/core/trajectory.ts'
import { random, seedOf } from '../../../base/math/random.ts'
import type { RolledAhead, Warned } from '../events.ts'
import { makeSentinels } from './open-sentinels.ts'

const words = new Map([[9, 'please do it now']])
const renderer = { decode: (ids: Int32Array) => [...ids].map(id => words.get(id) ?? '?').join('') }

interface Watched {
  readonly isOurs?: boolean
  readonly members?: number
  /** The training step that rolled the groups. */
  readonly step?: number
}

/** What sentinels say to a run of these trees, each a group of its own. */
function watch(
  trees: readonly PlainTree[],
  rewards?: readonly number[],
  { isOurs = false, members = 1, step }: Watched = {},
): readonly Warned[] {
  const warnings: Warned[] = []
  const listen = makeSentinels({ renderer, isOurs }, warning => warnings.push(warning))
  trees.forEach((parts, index) => {
    const tree = plainTree({ task: `task-${index}`, answer: `answer ${index}`, ...parts })
    listen({ kind: 'tree-end', tree })
    const total = rewards?.[index] ?? index % 2
    const reward = { total, parts: [{ name: 'right', score: total, weight: 1 }] }
    const trajectory = tree.trajectories[0] as Gradable
    const member = { tree, trajectory, reward, dropped: null, advantage: 0, weight: 1 }
    const id = `group-${index}` as GroupId
    const group: Group = {
      id,
      task: tree.task as TaskId,
      members: new Array(members).fill(member),
      unscored: [],
      ...(step !== undefined && { step }),
    }
    listen({ kind: 'group-end', group })
  })
  return warnings
}

const many = (count: number, parts: (index: number) => PlainTree = () => ({})): PlainTree[] =>
  Array.from({ length: count }, (_, index) => parts(index))
const names = (warnings: readonly Warned[]) => warnings.map(({ sentinel }) => sentinel)

describe('sentinels', () => {
  it('say with the first tree that log-probabilities are not the tempered ones', () => {
    const warnings: Warned[] = []
    const listen = makeSentinels({ renderer }, warning => warnings.push(warning))
    const tree = plainTree({ task: 'task', answer: 'answer' })
    const cut = { ...tree, sampling: { ...tree.sampling, temperature: 1, topK: 20 } }
    listen({ kind: 'tree-end', tree: cut })
    listen({ kind: 'tree-end', tree: cut })
    expect(warnings.map(({ sentinel, message }) => [sentinel, message])).toEqual([
      [
        'untempered-logprobs',
        expect.stringMatching(/not the tempered ones: drawn with top-k 20/) as string,
      ],
    ])
  })

  it('say once that a condenser condensed nothing', () => {
    const event = { kind: 'nothing-condensed', turn: 0, detail: 'no text has 200 characters' }
    const [warning, ...more] = watch(many(3, () => ({ events: [event] })))
    expect(more).toEqual([])
    expect(warning).toMatchObject({
      sentinel: 'nothing-condensed',
      message: 'the opening of task task-0 was not condensed: no text has 200 characters',
    })
  })

  it('say nothing about a run that goes well', () => {
    const call = (index: number) => ({ input: { index }, output: String(index) })
    expect(watch(many(300, index => ({ tools: 1, calls: [call(index)] })))).toEqual([])
  })

  it('tools that nobody calls', () => {
    const [warning, ...others] = watch(many(60, () => ({ tools: 2 })))
    expect(others).toEqual([])
    expect(warning?.message).toBe('no tool was called in 24 trajectories although 2 are offered')
    expect(warning?.likely).toContain('espalier doctor')
    expect(watch(many(20, () => ({ tools: 2 })))).toEqual([])
    const written = watch(many(60, index => ({ tools: 2, answer: `<tool_call>${index}` })))
    expect(written[0]?.likely).toContain("the parser does not know this model's format")
  })

  it('calls that cannot be read', () => {
    const calls = [{ problem: 'malformed-call' as const, output: 'could not be read' }]
    const warnings = watch(many(60, () => ({ tools: 1, calls })))
    expect(names(warnings)).toEqual(['parser-mismatch'])
    expect(warnings[0]?.message).toBe('24 of 24 calls could not be read')
  })

  it('a tool that always says the same', () => {
    const call = (index: number) => ({ input: { index }, output: 'error: no connection' })
    const warnings = watch(many(80, index => ({ tools: 1, calls: [call(index)] })))
    expect(names(warnings)).toEqual(['constant-observations'])
    expect(warnings[0]?.message).toContain('answered all 48 calls')
  })

  it('rewards that are all equal', () => {
    const [warning] = watch(many(60), new Array(60).fill(0))
    expect(warning).toMatchObject({
      sentinel: 'equal-rewards',
      message: 'all 32 rewards of 32 groups are 0',
      likely: expect.stringContaining('score --probe'),
    })
  })

  it('an opening that is not in the prompt', () => {
    const [warning] = watch(many(3, () => ({ opening: 'something else' })))
    expect(warning?.sentinel).toBe('missing-opening')
    expect(warning?.message).toContain('"something else"')
  })

  it('an opening that leaves no room for an answer, once', () => {
    const warnings: Warned[] = []
    const listen = makeSentinels({ renderer }, warning => warnings.push(warning))
    const tree = plainTree({ task: 'long', prompt: new Int32Array(700).fill(9) })
    const [trajectory] = tree.trajectories
    const outcome = { kind: 'truncated', limit: 'context' } as const
    const end = tree.nodes[2]!.parent
    const cut = { ...tree, trajectories: [{ ...trajectory!, outcome, turns: [], end }] }
    listen({ kind: 'tree-end', tree: { ...tree, trajectories: [{ ...trajectory!, outcome }] } })
    expect(names(warnings)).not.toContain('opening-too-long')
    listen({ kind: 'tree-end', tree: cut })
    listen({ kind: 'tree-end', tree: cut })
    const said = warnings.filter(({ sentinel }) => sentinel === 'opening-too-long')
    expect(said.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the opening of task long has 700 tokens and leaves no room/),
    ])
  })

  it('log-probabilities of another temperature, told from chance', () => {
    const draw = random(seedOf('logprobs'))
    const at = (temperature: number): readonly Warned[] =>
      watch(
        many(100, () => {
          const size = 64
          // A coin that lands on 1 with p; reported as if it had been drawn at temperature 1.
          const p = 0.8
          const powered = p ** (1 / temperature)
          const drawn = powered / (powered + (1 - p) ** (1 / temperature))
          const ids = Int32Array.from({ length: size }, () => (draw() < drawn ? 1 : 2))
          const logprobs = Float32Array.from(ids, id => Math.log(id === 1 ? p : 1 - p))
          const entropy = -(p * Math.log(p) + (1 - p) * Math.log(1 - p))
          return { sampled: { ids, logprobs, entropies: new Float32Array(size).fill(entropy) } }
        }),
      )
    expect(names(at(1))).toEqual([])
    expect(names(at(0.5))).toEqual(['odd-logprobs'])
    const greedy = watch(
      many(60, () => ({ sampled: { ids: new Int32Array(50), logprobs: new Float32Array(50) } })),
    )
    expect(greedy[0]?.message).toContain('2000 of 2000 log-probabilities are 0')
  })

  it('collapse: of entropy, of length, to one answer', () => {
    const surprise = (index: number) =>
      Float32Array.from([1, 2, 3], () => (index < 70 ? -1 : -0.01))
    const entropy = watch(many(200, index => ({ sampled: { logprobs: surprise(index) } })))
    expect(names(entropy)).toEqual(['entropy-collapse'])
    const length = watch(
      many(200, index => ({ sampled: { ids: new Int32Array(index < 70 ? 50 : 5).fill(7) } })),
    )
    expect(names(length)).toEqual(['length-drift'])
    const [warning] = watch(many(80, () => ({ answer: 'I cannot help' })))
    expect(warning?.message).toBe(
      '64 of the last 64 answers, to 64 different tasks, are "I cannot help"',
    )
  })

  it('a policy that falls apart', () => {
    const surprise = (index: number) =>
      Float32Array.from([1, 2, 3], () => (index < 70 ? -0.1 : -1.5))
    const trees = many(200, index => ({ sampled: { logprobs: surprise(index) } }))
    expect(names(watch(trees))).toEqual(['entropy-rise'])
    // One that solves its tasks may try more words.
    expect(watch(trees, new Array(200).fill(1).with(0, 0))).toEqual([])
  })

  it('a tool that throws every time, and not one that works once', () => {
    const thrown = { tool: 'ship', problem: 'thrown' as const, output: 'no address' }
    const [warning, ...others] = watch(many(60, () => ({ tools: 1, calls: [thrown] })))
    expect(others).toEqual([])
    expect(warning?.message).toBe('tool "ship" threw in all of its 24 calls: "no address"')
    const mostly = many(60, index => ({
      tools: 1,
      calls: [index === 20 ? { tool: 'ship', output: 'sent' } : thrown],
    }))
    expect(watch(mostly)).toEqual([])
  })

  it('training that compares single attempts', () => {
    expect(names(watch(many(8), undefined, { step: 1 }))).toEqual(['no-siblings'])
    expect(watch(many(8))).toEqual([])
  })

  it('steps in a row without any advantage', () => {
    const warned = (trained: readonly number[]): readonly string[] => {
      const warnings: Warned[] = []
      const listen = makeSentinels({ renderer }, warning => warnings.push(warning))
      for (const [index, trainedRows] of trained.entries()) {
        listen({ kind: 'step-end', step: index + 1, metrics: { rows: 8, trainedRows } })
      }
      return names(warnings)
    }
    expect(warned([8, 0, 0, 3, 0, 0])).toEqual([])
    expect(warned([8, 0, 0, 0, 0])).toEqual(['idle-training'])
  })

  it('tasks that are learned by heart: success on them rises, on held-out ones it does not', () => {
    const warned = (heldOut: (step: number) => number, tasks = 4): readonly string[] => {
      const warnings: Warned[] = []
      const listen = makeSentinels({ renderer }, warning => warnings.push(warning))
      const curves = (step: number, name: string, value: number): void =>
        listen({ kind: 'curves', step, values: { [name]: value } })
      for (let step = 0; step <= 40; step++) {
        if (step % 10 === 0) curves(step, 'held-out/success', heldOut(step))
        const [id, task] = [`${step}` as GroupId, `${step % tasks}` as TaskId]
        listen({ kind: 'group-end', group: { id, task, members: [], unscored: [] } })
        curves(step, 'train/success', 0.2 + step / 50)
      }
      return names(warnings)
    }
    expect(warned(() => 0.2)).toEqual(['learned-by-heart'])
    expect(warned(step => 0.2 + step / 60)).toEqual([])
    // One measurement that is low by chance.
    expect(warned(step => (step === 30 ? 0.2 : 0.2 + step / 50))).toEqual([])
    expect(warned(() => 0.2, 30)).toEqual([])
  })

  it('are quiet where there is nothing to fear', () => {
    // Writing tools say the same each time, and agents end with the same word.
    const call = (index: number) => ({ input: { index }, output: 'ok' })
    expect(watch(many(300, index => ({ tools: 1, calls: [call(index)] })))).toEqual([])
    // A policy that solves its tasks may be certain.
    const logprobs = (index: number) => Float32Array.of(1, 2, 3).fill(index < 70 ? -1 : -0.01)
    const certain = many(200, index => ({ sampled: { logprobs: logprobs(index) } }))
    expect(watch(certain, new Array(200).fill(1).with(0, 0))).toEqual([])
    // A model of ours that is merely bad.
    const calls = [{ problem: 'malformed-call' as const, output: 'could not be read' }]
    const bad = many(60, () => ({ tools: 1, calls }))
    expect(watch(bad, undefined, { isOurs: true })).toEqual([])
    const exact = many(60, () => ({
      sampled: { ids: new Int32Array(50), logprobs: new Float32Array(50) },
    }))
    expect(watch(exact, undefined, { isOurs: true })).toEqual([])
  })

  it('groups without contrast, with the three usual causes', () => {
    const [warning, ...others] = watch(many(60), undefined, { members: 4 })
    expect(others).toEqual([])
    expect(warning?.message).toContain('in each of 24 groups all attempts have the same reward')
    expect(warning?.likely).toMatch(/one of three: .*teach it first.*temperature.*score --probe/)
  })

  it('advantages by shaping alone, with the filter that ends them', () => {
    const warnings: Warned[] = []
    const listen = makeSentinels({ renderer }, warning => warnings.push(warning))
    const tree = plainTree({ task: 'task', answer: 'answer' })
    const trajectory = tree.trajectories[0] as Gradable
    const member = (right: number, brief: number, advantage: number) => {
      const parts = [
        { name: 'right', score: right, weight: 1 },
        { name: 'brief', score: brief, weight: 0.05 },
      ]
      const reward = { total: right + 0.05 * brief, parts }
      return { tree, trajectory, reward, dropped: null, advantage, weight: 1 }
    }
    const end = (index: number, ...members: readonly ReturnType<typeof member>[]): void => {
      const group = { id: `g${index}` as GroupId, task: tree.task as TaskId, members, unscored: [] }
      listen({ kind: 'group-end', group })
    }
    for (let index = 0; index < 20; index++) end(index, member(1, 0, 1), member(0, 1, -1))
    expect(names(warnings)).toEqual([])
    for (let index = 20; index < 40; index++) end(index, member(0, 0, -0.96), member(0, 1, 1.03))
    expect(warnings).toMatchObject([
      {
        sentinel: 'phantom-advantages',
        message:
          'in 7 of 27 groups that are learned from, "right" is the same for all attempts, and brief alone gives them advantages from -0.96 to 1.03',
        likely: expect.stringContaining('--filter equal-rewards:part=right') as string,
      },
    ])
  })

  it('failures are not taken for collapse', () => {
    const outcome = { kind: 'failed', boundary: 'policy', message: 'no' } as const
    const failed = watch(many(100, () => ({ answer: '', tools: 1, outcome })))
    expect(names(failed)).toEqual([])
  })
})

describe('rolling that is ahead of learning', () => {
  const usual = { maxStaleness: 1, steps: 1, groups: 8, stale: [], seconds: 1, held: 0, slowest: 1 }

  /** What is warned of after twelve such steps. */
  function warned(ahead: Partial<RolledAhead>): readonly Warned[] {
    const warnings: Warned[] = []
    const listen = makeSentinels({ renderer }, each => warnings.push(each))
    for (let step = 1; step <= 12; step++) {
      listen({ kind: 'step-end', step, metrics: {}, ahead: { ...usual, ...ahead } })
    }
    return warnings
  }

  it('[S4] says how long it waits for slow tasks, and what would keep them without waiting', () => {
    expect(warned({})).toEqual([])
    expect(warned({ held: 0.1, slowest: 3.4 })).toEqual([])
    const [warning, ...more] = warned({ held: 0.5, slowest: 3.4 })
    expect(warning).toMatchObject({ sentinel: 'held-by-slow' })
    expect(warning!.message).toContain('waited 50 %')
    expect(warning!.likely).toContain('--max-staleness 4')
    expect(more).toEqual([])
  })

  it('[S4] names the tasks whose groups grew too old', () => {
    const [warning] = warned({ stale: ['slow'] })
    expect(warning).toMatchObject({ sentinel: 'lost-shares' })
    expect(warning!.message).toContain('8 of 64 groups')
    expect(warning!.message).toContain('come again: slow')
  })
})
