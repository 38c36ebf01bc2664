import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { makeLane } from '../../base/core/lane.ts'
import type { Policy } from '../../base/core/policy.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import type { RunEvent } from '../watch/events.ts'
import { makeSignals } from '../watch/signals.ts'
import { makeAdaptive } from './adaptive.ts'
import { rollGroups } from './roll-groups.ts'

const renderer = await openByteRenderer()
const end = renderer.stopIds[0]!

/** What is heard of the concurrency of so many attempts, and the most requests at one time. */
async function hearChanges(
  count: number,
  pressure?: Policy['pressure'],
): Promise<{ readonly changes: readonly RunEvent[]; readonly most: number }> {
  const { policy, counts } = openCountingPolicy({ length: () => 5, delay: () => 4, end })
  const changes: RunEvent[] = []
  for await (const _ of rollGroups(
    Array.from({ length: count }, (_, id) => ({ id, prompt: 'x', answer: 'x' })),
    {
      environment: singleTurn(),
      reward: { one: () => 1 },
      policy: { ...policy, ...(pressure && { pressure }) },
      renderer,
      estimate: makeEstimate('grpo'),
      group: 1,
      concurrency: 48,
      adaptive: true,
      signals: makeSignals(),
      listen: event => {
        if (event.kind === 'concurrency-change') changes.push(event)
      },
    },
  ));
  return { changes, most: counts.most }
}

describe('adaptive concurrency', () => {
  it('grows while more requests bring more tokens, up to the limit', async () => {
    const { changes, most } = await hearChanges(900)
    expect(most).toBeLessThanOrEqual(48)
    expect(changes.length).toBeGreaterThan(0)
  })

  it.each([
    {
      use: 0.97,
      moves: [{ from: 32, to: 28, reason: 'the server’s cache of keys and values is 97 % full' }],
    },
    { use: 0.9, moves: [] },
  ])(
    'asks for less while the cache of its server is full, and for no more while it nearly is: $use',
    async ({ use, moves }) => {
      const { changes: moved } = await hearChanges(300, async () => use)
      expect(moved.slice(0, moves.length)).toMatchObject(moves)
      expect(
        moved.filter(event => 'to' in event && 'from' in event && event.to > event.from),
      ).toEqual([])
    },
  )

  it('falls to 70 % where the server is busy, at most once a second', () => {
    let now = 0
    const lane = makeLane('policy', 100)
    const heard: RunEvent[] = []
    const { listen } = makeAdaptive({
      lane,
      clock: () => now,
      start: 100,
      listen: event => heard.push(event),
    })
    const busy = {
      kind: 'retry',
      problem: 'status',
      status: 429,
      attempt: 1,
      waitSeconds: 1,
    } as const
    for (let time = 0; time < 50; time++) listen(busy)
    expect(lane.limit).toBe(70)
    now = 2
    listen({ ...busy, status: 503 })
    listen({ ...busy, status: 500 })
    expect(lane.limit).toBe(49)
    expect(heard).toEqual([
      { kind: 'concurrency-change', from: 100, to: 70, reason: 'the server answered 429' },
      { kind: 'concurrency-change', from: 70, to: 49, reason: 'the server answered 503' },
    ])
    for (let time = 0; time < 40; time++) {
      now += 2
      listen(busy)
    }
    expect(lane.limit).toBe(1)
  })
})
