import type { Outcome } from '../../base/core/outcome.ts'
import { outcomeOf } from './end-walk.ts'
import { requestOf, roomOf, type Sampled, sampleTurn } from './sample-turn.ts'
import type { Walk } from './walk.ts'

/** A walk with the result of its turn. */
export interface Stepped {
  readonly walk: Walk
  readonly step: Sampled
}

/** Samples one turn of each walk; those that stand at one place draw together if the policy can. */
export function sampleWalks(walks: readonly Walk[]): Promise<readonly Stepped[]> {
  drawTogether(walks)
  return Promise.all(walks.map(sampleOne))
}

async function sampleOne(walk: Walk): Promise<Stepped> {
  try {
    walk.attempt.signal.throwIfAborted()
    return { walk, step: await sampleTurn(walk) }
  } catch (error) {
    const outcome: Outcome = outcomeOf(error, walk.attempt.signal)
    return { walk, step: { kind: 'end', outcome } }
  }
}

/** Draws the next samples of walks that stand at one place together, if the policy can. */
export function drawTogether(walks: readonly Walk[]): void {
  const byPlace = new Map<string, Walk[]>()
  for (const walk of walks) {
    const key = `${walk.place.node}:${walk.place.offset}`
    const group = byPlace.get(key)
    if (group) group.push(walk)
    else byPlace.set(key, [walk])
  }
  for (const group of byPlace.values()) if (group.length > 1) drawSeveral(group)
}

function drawSeveral(walks: readonly Walk[]): void {
  const first = walks[0]!
  const { policy, lanes, limits } = first.context
  const room = roomOf(first).tokens
  if (!policy.sampleSeveral) return
  if (room <= 0 || first.turns.length >= limits.turns) return
  const requests = walks.map(walk => requestOf(walk, room, 0))
  const seeds = requests.map(({ seed }) => seed)
  const drawn = lanes.policy.run(first.attempt, () =>
    policy.sampleSeveral!(requests[0]!, seeds, first.attempt),
  )
  walks.forEach((walk, index) => {
    const own = drawn.then(samples => samples[index]!)
    // The walk that takes it handles a failure; until then it must not count as unhandled.
    own.catch(() => {})
    walk.next.drawn = own
  })
}
