import { z } from 'zod'
import { random, seedOf } from '../src/base/math/random.ts'
import { environment, roll, tool } from '../src/index.ts'
import { type Expectation, missedOf } from './expectation.ts'
import { type Hits, openReplicas, type Routing } from './replay/replicas.ts'
import { openRouted } from './replay/routed.ts'

const [sessions, replicas, atOnce] = [96, 2, 32]
/** Turns of an agent's session as published: half have at most 29, one in a hundred more than 85. */
const [median, p99] = [29, 85]
/** Tokens that a replica caches: those of the sessions at one time, twice. */
const tokens = 2 * (atOnce / replicas) * p99 * 200

/** Two draws that are even give one that is normal. */
function turnsOf(session: number): number {
  const draw = random(seedOf('replay', session))
  const normal = Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw())
  return Math.max(2, Math.round(median * Math.exp((normal * Math.log(p99 / median)) / 2.326)))
}

const agent = environment({
  name: 'session',
  task: z.object({ turns: z.int() }),
  open({ id, data }) {
    let turn = 0
    const look = tool({
      inputSchema: z.object({}),
      execute: () => `${id} ${++turn} ${'word '.repeat(20)}${turn >= data.turns ? 'LAST' : ''}`,
    })
    const opening = [{ role: 'user' as const, content: `Look around, ${id}.` }]
    return { opening, tools: { look }, report: () => ({ turn }) }
  },
  reward: { looked: ({ report }) => Number(report.turn > 0) },
})

/** A real router, such as `vllm-router` of the package from PyPI. */
const router = process.env.REPLAY_ROUTER

/**
 * Sessions through a router and two replicas whose caches are modelled: how many tokens were there already.
 * `REPLAY_ROUTER=.venv/bin/vllm-router` sends them through the real one too.
 */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const tasks = Array.from({ length: sessions }, (_, id) => ({ id: `s${id}`, turns: turnsOf(id) }))
  const through = (routing: Routing) => replay(openReplicas(replicas, { routing, tokens }), tasks)
  const bySession = await through('session')
  const inTurn = await through('turn')
  const routed = router && (await replay(openRouted(replicas, { router, tokens }), tasks))
  if (!json) {
    const turns = tasks.map(task => task.turns).toSorted((a, b) => a - b)
    console.log(
      `${sessions} sessions, ${turns[sessions / 2]} turns at the median, ${turns.at(-1)} at most`,
    )
    for (const [name, hits] of Object.entries({
      'by X-Session-ID': bySession,
      'in turn': inTurn,
      ...(routed && { 'by X-Session-ID, vllm-router': routed }),
    })) {
      const share = (of: number): string => `${((100 * of) / hits.prompt).toFixed(1)} %`
      console.log(
        `${name}  ${share(hits.cached)} of ${hits.prompt} tokens cached, of at most ${share(hits.ceiling)}`,
      )
    }
  }
  const expectations = [bySession, ...(routed ? [routed] : [])].map(
    ({ cached, ceiling }): Expectation => ({
      what: 'hits by session, as a share of what is possible',
      value: cached / ceiling,
      atLeast: 0.95,
    }),
  )
  return { bySession, inTurn, ...(routed && { routed }), missed: missedOf(expectations) }
}

async function replay(
  opening: Promise<{ readonly url: string; readonly hits: Hits } & AsyncDisposable>,
  tasks: readonly { readonly id: string; readonly turns: number }[],
): Promise<Hits> {
  await using router = await opening
  const rolling = roll(agent, tasks, {
    policy: router.url,
    model: 'models/chatml-bytes',
    group: 1,
    concurrency: atOnce,
    limits: { turns: 400, context: 200_000, tokens: 100_000 },
    threads: 1,
  })
  let turns = 0
  for await (const { members } of rolling) turns += members[0]?.trajectory.turns.length ?? 0
  const expected = tasks.reduce((sum, task) => sum + task.turns + 1, 0)
  if (turns !== expected) throw new Error(`${turns} turns were rolled, not ${expected}`)
  return router.hits
}
