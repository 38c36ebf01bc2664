import { afterEach, describe, expect, it } from 'vitest'
import type { Group } from '../../src/base/core/group.ts'
import { type Policy, plainCapabilities } from '../../src/base/core/policy.ts'
import { sampled } from '../../src/base/core/segment.ts'
import { roll } from '../../src/run/run/roll.ts'
import { openByteRenderer } from '../rolling.ts'
import { type BadCase, type Closing, kindsOfBadness, type Meeting } from './contract.ts'
import { inThisProcess, seatsOfOthers, walls } from './own.ts'
import { pythonPackages, simulatedUsers, taskFolders } from './programs.ts'
import { mcpServers, openEnvServers, sandboxServers } from './served.ts'

const kinds = [
  inThisProcess,
  openEnvServers,
  pythonPackages,
  mcpServers,
  walls,
  sandboxServers,
  taskFolders,
  simulatedUsers,
  seatsOfOthers,
]
const renderer = await openByteRenderer()
const closing: Closing = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A policy that says what a meeting has it say, by task and turn. */
function speaking({ says, names = usualNames }: Meeting): Policy {
  return {
    name: 'speaking',
    capabilities: plainCapabilities,
    async sample({ key, prompt }) {
      const lines = key.task === names.bad ? says.bad : says.good
      const line = lines[key.turn] ?? 'done'
      const text = line.endsWith('<|im_end|>') ? line : `${line}<|im_end|>`
      const ids = renderer.tokenizer.encode(text)
      const logprobs = new Float32Array(ids.length).fill(-1)
      return {
        kind: 'tokens',
        segment: sampled({ ids, logprobs, version: { from: 0, to: 0 } }),
        finish: { kind: 'stop' },
        usage: { prompt: prompt.ids.length, sampled: ids.length, seconds: 0 },
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

const usualNames = { bad: '1', good: '2' }

/** Rolls both tasks side by side, or only the bad one: the run's own clock is too short for anything else. */
async function rollBoth(meeting: Meeting) {
  const { environment, bad, good, options, names = usualNames } = meeting
  const groups: Group[] = []
  const given = { policy: speaking(meeting), model: renderer, group: 1, ...options }
  const tasks = options?.limits?.seconds === undefined ? [bad, good] : [bad]
  for await (const group of roll(environment, tasks, given)) groups.push(group)
  const at = (name: string) => groups.filter(({ task }) => task === name)
  return { bad: at(names.bad), good: at(names.good), count: tasks.length }
}

function title({ badness, how }: BadCase): string {
  return how === undefined ? badness : `${badness}: ${how}`
}

describe.each(kinds)('[O1] $kind that is bad costs one attempt, with its reason', kind => {
  const { cases, boundary, cannot = {}, isHere = true } = kind
  if (!isHere) console.warn(`SKIPPED: what ${kind.kind} needs is not here.`)

  it('is tried with every badness, or it is said why not', () => {
    const tried = cases.map(({ badness }) => badness)
    expect(kindsOfBadness.filter(each => !tried.includes(each) && !(each in cannot))).toEqual([])
  })

  it.runIf(isHere).each(cases.map(each => [title(each), each] as const))('%s', async (_, each) => {
    const { bad, good, count } = await rollBoth(await each.meet(closing))
    for (const { members, unscored } of bad) {
      // Nothing of it is scored, with 0 or otherwise.
      expect(members.map(({ reward }) => reward.total)).toEqual([])
      expect(unscored).toHaveLength(1)
      const expected =
        each.reason === 'aborted'
          ? { kind: 'aborted', by: 'time' }
          : { boundary: each.boundary ?? boundary, message: expect.stringMatching(each.reason) }
      expect(unscored[0]!.outcome).toMatchObject(expected)
    }
    expect(bad.length).toBeGreaterThan(0)
    // Whoever plays beside it is not harmed.
    expect(good.map(({ members }) => members.map(({ reward }) => reward.total))).toEqual(
      good.map(() => [1]),
    )
    expect(good.length > 0).toBe(count > 1)
  })
})
