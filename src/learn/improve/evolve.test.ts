import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { type Candidate, digestOf, type Parts } from './candidate.ts'
import { type EvolveOptions, evolve } from './evolve.ts'
import { merge, tasksToMergeOn } from './merge.ts'
import { frontOf, pickParent, withoutDominated } from './pareto.ts'
import { readProposal } from './reflect.ts'
import type { Tries, Try } from './tries.ts'

const task = (id: string): Task => ({ id: id as TaskId, data: { id } })
const words = ['unit', 'round', 'polite', 'short']
const reflected = Array.from({ length: 12 }, (_, at) => task(`r${at}-${words[at % 4]}`))
const validation = Array.from({ length: 8 }, (_, at) => task(`v${at}-${words[at % 4]}`))

/** A policy that solves a task if one of its texts has the task's word. */
function openScripted(): Tries & { readonly asked: string[] } {
  const tokens = { policy: 0, reflection: 0 }
  const tried = new Set<string>()
  const texts = new Map<string, { text?: string; sampled: number }>()
  const asked: string[] = []
  return {
    tokens,
    asked,
    async of(parts, tasks) {
      return tasks.map(({ id }): Try => {
        const word = id.split('-')[1]!
        const scored = [...parts.values()].some(text => text.includes(word)) ? 1 : 0
        const key = `${digestOf(parts)} ${id}`
        if (!tried.has(key)) tokens.policy += 10
        tried.add(key)
        asked.push(key)
        const text = `failed for want of ${word}`
        return {
          kind: 'try',
          prompt: digestOf(parts),
          task: id,
          text,
          scored,
          solved: scored,
          sampled: 10,
        }
      })
    },
    async written(key, write) {
      if (!texts.has(key)) texts.set(key, await write())
      const made = texts.get(key)!
      tokens.reflection += made.sampled
      return made
    },
  }
}

/** Adds the first missing word that an attempt failed for. */
const speaker: Speaker = {
  name: 'scripted',
  async say([message]) {
    const content = String(message!.content)
    const now = content.split('---\n')[1]!.trim().replace('(nothing)', '')
    const word = words.find(each => content.includes(`want of ${each}`) && !now.includes(each))
    return {
      message: { role: 'assistant', content: `I see.\n\`\`\`\n${now} ${word ?? ''}\n\`\`\`` },
      finish: 'stop',
      usage: { prompt: 1, sampled: 5 },
    }
  },
}

const options = (tries: Tries, more: Partial<EvolveOptions> = {}): EvolveOptions => ({
  tries,
  speaker,
  parts: new Map([
    ['system', ''],
    ['tool look', ''],
  ]),
  reflected,
  validation,
  budget: 20_000,
  minibatch: 3,
  perfect: 1,
  seed: 7,
  reflectionTokens: 100,
  signal: new AbortController().signal,
  onCandidate: () => {},
  ...more,
})

describe('evolving prompts', () => {
  it('finds the texts that solve all tasks, and stops there', async () => {
    const { candidates, best } = await evolve(options(openScripted()))
    expect(candidates[best]!.scores).toEqual(validation.map(() => 1))
  })

  it('comes to the same end for the same seed', async () => {
    const runs = await Promise.all([1, 2].map(() => evolve(options(openScripted()))))
    expect(runs[1]).toEqual(runs[0])
  })

  it('stops within one iteration of its budget', async () => {
    const tries = openScripted()
    await evolve(options(tries, { budget: 200 }))
    expect(tries.tokens.policy + tries.tokens.reflection).toBeLessThan(200 + 200)
  })

  it('ends if nobody ever writes anything new', async () => {
    const silent: Speaker = {
      ...speaker,
      say: async () => ({
        message: { role: 'assistant', content: '' },
        finish: 'stop',
        usage: { prompt: 1, sampled: 0 },
      }),
    }
    const { candidates } = await evolve(options(openScripted(), { speaker: silent }))
    expect(candidates).toHaveLength(1)
  })

  it('never shows whoever reflects a task that chooses', async () => {
    const seen: string[] = []
    const watching: Speaker = {
      ...speaker,
      say: async (messages, call) => {
        seen.push(String(messages[0]!.content))
        return await speaker.say(messages, call)
      },
    }
    await evolve(options(openScripted(), { speaker: watching }))
    expect(seen.filter(text => text.includes('v0-'))).toEqual([])
  })
})

const candidate = (
  scores: number[],
  parents: number[] = [],
  parts: Parts = new Map(),
): Candidate => ({
  scores,
  parents,
  parts,
})

describe('the front', () => {
  it('has for every task the best, and forgets whoever is needed nowhere', () => {
    const candidates = [candidate([1, 0, 0]), candidate([1, 1, 0]), candidate([0, 0, 1])]
    expect(frontOf(candidates).map(each => [...each])).toEqual([[0, 1], [1], [2]])
    const left = withoutDominated(frontOf(candidates), candidates)
    expect(left.map(each => [...each])).toEqual([[1], [1], [2]])
  })

  it('always leaves a leader for every task', () => {
    const scores = fc.array(fc.array(fc.constantFrom(0, 0.5, 1), { minLength: 4, maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(scores, all => {
        const candidates = all.map(each => candidate(each))
        const front = frontOf(candidates)
        const left = withoutDominated(front, candidates)
        expect(
          left.every((each, at) => each.size > 0 && [...each].every(one => front[at]!.has(one))),
        ).toBe(true)
        expect(pickParent(candidates, () => 0.999)).toBeLessThan(candidates.length)
      }),
    )
  })
})

describe('merging', () => {
  const parts = (system: string, tool: string): Parts =>
    new Map([
      ['system', system],
      ['tool look', tool],
    ])
  const family = [
    candidate([0, 0], [], parts('a', 'a')),
    candidate([1, 0], [0], parts('b', 'a')),
    candidate([0, 1], [0], parts('a', 'c')),
  ]

  it('takes from each what changed since their common ancestor', () => {
    expect(
      merge(
        family,
        () => false,
        () => 0,
      )?.parts,
    ).toEqual(parts('b', 'c'))
  })

  it('does not merge what is known, nor an ancestor with its child', () => {
    expect(
      merge(
        family,
        () => true,
        () => 0,
      ),
    ).toBeUndefined()
    expect(
      merge(
        [family[0]!, candidate([1, 1], [0], parts('b', 'b'))],
        () => false,
        () => 0,
      ),
    ).toBeUndefined()
  })

  it('is tried on tasks that each leads, in equal numbers', () => {
    const pair = [candidate([1, 1, 1, 0, 0]), candidate([0, 0, 0, 1, 0])] as const
    expect(tasksToMergeOn(pair, 3, () => 0)).toEqual([0, 3, 4])
  })
})

describe('reading what was written', () => {
  it.each([
    ['so:\n```\nnew text\n```\nbye', 'new text'],
    ['```text\nwith\n```js\ncode\n```\nin it\n```', 'with\n```js\ncode\n```\nin it'],
    ['```\ncut', 'cut'],
    ['plain', 'plain'],
    ['', undefined],
  ])('%j', (answer, text) => {
    expect(readProposal(answer)).toBe(text)
  })
})
