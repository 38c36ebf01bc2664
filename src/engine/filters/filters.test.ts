import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { dice, emptyTree, endAt } from '../../../test/random-tree.ts'
import type { Group, Scored } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { Gradable, Trajectory } from '../../base/core/trajectory.ts'
import { root } from '../../base/core/tree.ts'
import { filterFactories, openFilter } from './registry.ts'
import { hesitation, repetition } from './repetition.ts'

const needs = { version: () => 10 }
const judge = (name: string, ...members: readonly Scored[]) => [
  ...openFilter(name, needs).judge(groupOf(members)).values(),
]

function groupOf(members: readonly Scored[]): Group<Scored> {
  return { id: 'g' as GroupId, task: 'g' as TaskId, members, unscored: [] }
}

let count = 0

/** A scored trajectory that says these texts, with whatever else is wanted. */
function said(
  texts: readonly string[],
  parts: Partial<Trajectory> & { reward?: number; ids?: readonly number[]; version?: number } = {},
): Scored {
  const { reward = 1, ids = [count], version = 10, ...rest } = parts
  const tree = emptyTree(`g/${count++}`)
  const messages: Message[] = [{ role: 'user', content: 'go' }]
  let place = tree.append(root, given('prompt', Int32Array.of(1)))
  const turns = texts.map(content => {
    messages.push({ role: 'assistant', content })
    place = tree.append(
      place,
      sampled({
        ids: Int32Array.from(ids),
        logprobs: null,
        version: { from: version, to: version },
      }),
    )
    return {
      from: place.node,
      end: place,
      finish: { kind: 'stop' } as const,
      messages: messages.length - 1,
    }
  })
  const trajectory = endAt(tree, place, { messages, turns, ...rest }) as Gradable
  tree.end(trajectory)
  return { tree, trajectory, reward: { total: reward, parts: [] } }
}

const calls = (
  ...problems: readonly (CallRecord['problem'] | undefined)[]
): readonly CallRecord[] =>
  problems.map((problem, turn) => ({
    turn,
    id: `${turn}`,
    tool: 'look',
    input: { at: turn },
    output: '',
    seconds: 0,
    ...(problem && { problem }),
  }))

/** A trajectory whose first path was rewritten: its last one begins anew. */
function rewritten(first: { ids: readonly number[]; version: number }): Scored {
  const tree = emptyTree(`g/${count++}`)
  const sample = (ids: readonly number[], version: number) =>
    sampled({ ids: Int32Array.from(ids), logprobs: null, version: { from: version, to: version } })
  const before = tree.append(
    tree.append(root, given('prompt', Int32Array.of(1))),
    sample(first.ids, first.version),
  )
  const lineage = { kind: 'rewrites', of: before, by: 'test', reason: 'condensed' } as const
  const anew = tree.append(root, given('prompt', Int32Array.of(2)), lineage)
  const trajectory = endAt(tree, tree.append(anew, sample([9], 10))) as Gradable
  tree.end(trajectory)
  return { tree, trajectory, reward: { total: 1, parts: [] } }
}

describe('filters', () => {
  it('[D1] stale and duplicates look at every row of a trajectory, not at its last path alone', () => {
    const old = rewritten({ ids: [5], version: 1 })
    expect(judge('stale', old)).toEqual([{ reason: 'sampled 9 versions ago', from: 'loss' }])
    const other = rewritten({ ids: [6], version: 10 })
    const same = rewritten({ ids: [6], version: 10 })
    expect(judge('duplicates', old, other)).toEqual([])
    expect(judge('duplicates', old, other, same)).toHaveLength(1)
  })

  it('[D1] void turns: neither a call nor an answer', () => {
    expect(judge('void-turns', said(['hello', ' ']))).toEqual([
      { reason: 'turn 1 has neither a call nor an answer', from: 'loss' },
    ])
    expect(judge('void-turns', said(['hello']))).toEqual([])
    expect(judge('void-turns', said([''], { calls: calls(undefined) }))).toEqual([])
  })

  it('[D1] void turns as SimpleTIR has them: neither a complete call nor a boxed answer', () => {
    expect(judge('void-turns:simpletir', said(['so it is 5']))[0]!.reason).toContain(
      'turn 0 has neither',
    )
    expect(judge('void-turns:simpletir', said(['so it is \\boxed{5}']))).toEqual([])
    expect(judge('void-turns:simpletir', said(['x'], { calls: calls(undefined) }))).toEqual([])
    expect(
      judge('void-turns:simpletir', said(['x'], { calls: calls('malformed-call') })),
    ).toHaveLength(1)
    expect(judge('void-turns:simpletir,from=loss-and-statistics', said(['x']))[0]!.from).toBe(
      'loss-and-statistics',
    )
  })

  it('[D1] dead loops: the same call again and again', () => {
    const same = [0, 1, 2].map(turn => ({ ...calls(undefined)[0]!, turn }))
    expect(judge('dead-loops', said(['a', 'b', 'c'], { calls: same }))[0]!.reason).toContain(
      'look was called 3 times in a row',
    )
    expect(
      judge('dead-loops', said(['a', 'b', 'c'], { calls: calls(undefined, undefined, undefined) })),
    ).toEqual([])
    expect(judge('dead-loops:calls=4', said(['a', 'b', 'c'], { calls: same }))).toEqual([])
  })

  it('[D1] repetition in words and in scripts without spaces, and hesitation', () => {
    expect(
      judge(
        'repetition',
        said(['I will look at the table once more and then say. '.repeat(20)]),
      )[0]!.reason,
    ).toMatch(/repeats \d+ % of its 8-grams/)
    expect(judge('repetition', said(['我再看一次这个表格然后回答。'.repeat(20)]))).toHaveLength(1)
    expect(
      judge('repetition', said(['wait, no, hmm, actually wait. '.repeat(10).slice(0, 290)])),
    ).toHaveLength(1)
    expect(
      repetition('every word here is new and none of them ever comes back again in this text', 3),
    ).toBe(0)
    expect(hesitation('short wait')).toBe(0)
  })

  it('[D1] limits: overlong, premature, guarded', () => {
    const cut = said(['x'], { outcome: { kind: 'truncated', limit: 'tokens' } })
    const guarded = said(['x'], { outcome: { kind: 'truncated', limit: 'guard:json' } })
    expect(judge('overlong', cut, guarded, said(['x']))).toEqual([
      { reason: 'truncated by tokens', from: 'loss' },
    ])
    expect(judge('guarded', cut, guarded)).toEqual([
      { reason: 'truncated by guard:json', from: 'loss' },
    ])
    expect(judge('premature-end', said(['x']), said(['x', 'y']))).toEqual([
      { reason: 'ended after 1 of at least 2 turns', from: 'loss' },
    ])
  })

  it('[D1] tool errors and malformed calls by their share', () => {
    expect(
      judge('tool-errors', said(['x'], { calls: calls('thrown', 'timeout', undefined) }))[0]!
        .reason,
    ).toBe('2 of 3 calls went wrong')
    expect(
      judge('tool-errors', said(['x'], { calls: calls('thrown', undefined, undefined) })),
    ).toEqual([])
    expect(judge('malformed-calls', said(['x'], { calls: calls('malformed-call') }))).toHaveLength(
      1,
    )
  })

  it('[D1] equal rewards by a part: whatever shaping and penalties make of the rest', () => {
    const scored = (right: number, brief: number): Scored => ({
      ...said(['x']),
      reward: {
        total: right + 0.05 * brief,
        parts: [
          { name: 'right', score: right, weight: 1 },
          { name: 'brief', score: brief, weight: 0.05 },
        ],
      },
    })
    const failures = [scored(0, 1), scored(0, 0.2), scored(0, 0)]
    expect(judge('equal-rewards', ...failures)).toEqual([])
    expect(judge('equal-rewards:part=right', ...failures)[0]!.reason).toBe(
      'all 3 rewards by "right" are 0',
    )
    expect(judge('equal-rewards:part=right', ...failures, scored(1, 0))).toEqual([])
    expect(() => judge('equal-rewards:part=rihgt', ...failures)).toThrow(
      'to look at the part "rihgt" of rewards, which have right, brief',
    )
  })

  it('[D1] groups: equal rewards drop all, duplicates all but the first, stale by version', () => {
    expect(judge('equal-rewards', said(['x']), said(['y']))).toHaveLength(2)
    expect(judge('equal-rewards', said(['x'], { reward: 0 }), said(['y']))).toEqual([])
    expect(
      judge(
        'duplicates',
        said(['x'], { ids: [5, 6] }),
        said(['y'], { ids: [5, 6] }),
        said(['z'], { ids: [5] }),
      ),
    ).toHaveLength(1)
    expect(judge('stale', said(['x'], { version: 5 }), said(['y'], { version: 6 }))).toEqual([
      { reason: 'sampled 5 versions ago', from: 'loss' },
    ])
    expect(judge('failed-members', said(['x']))[0]!.reason).toContain(
      '1 of 1 members were scored, 2 are needed',
    )
  })

  it('[D1] sanity of messages and of characters', () => {
    const orphan: Message[] = [
      { role: 'user', content: 'go' },
      { role: 'tool', tool_call_id: '1', content: 'x' },
      { role: 'assistant', content: 'y' },
    ]
    expect(judge('message-sanity', said(['x'], { messages: orphan }))[0]!.reason).toBe(
      'the tool result at message 1 follows user',
    )
    expect(judge('token-soup', said([`aaa ${'z'.repeat(60)}`]))[0]!.reason).toContain(
      'repeats one character 60 times',
    )
    expect(judge('token-soup', said(['\ufffd'.repeat(60)]))).toHaveLength(1)
    expect(judge('token-soup', said(['='.repeat(60)]))).toEqual([])
  })

  it('say what is wrong with a name and an option', () => {
    expect(() => openFilter('void', needs)).toThrow('No filter called "void". Known: void-turns')
    expect(() => openFilter('overlong:by=3', needs)).toThrow(
      'filter "overlong" has no option "by". Known: from.',
    )
    expect(() => openFilter('void-turns:odd', needs)).toThrow(
      'filter "void-turns" has no variant "odd". Known: general, simpletir.',
    )
  })

  it('judge 10,000 random trajectories without a crash', () => {
    const { below, chance } = dice(3)
    const words = [
      'wait',
      '再想想',
      '\ud800',
      '\u0000',
      '',
      'x'.repeat(50),
      '{"name"',
      '\ufffd',
      '答え',
    ]
    const problems = ['thrown', 'timeout', 'malformed-call', undefined] as const
    const members = Array.from({ length: 10_000 }, () =>
      said(
        Array.from({ length: below(4) }, () =>
          Array.from({ length: below(30) }, () => words[below(words.length)]).join(' '),
        ),
        {
          calls: chance(0.5)
            ? calls(...Array.from({ length: below(6) }, () => problems[below(4)]))
            : [],
          reward: below(3),
        },
      ),
    )
    for (const name of Object.keys(filterFactories)) {
      for (const { reason } of judge(name, ...members)) expect(reason.length).toBeGreaterThan(5)
    }
  })
})
