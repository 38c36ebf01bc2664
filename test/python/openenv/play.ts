import type { Environment } from '../../../src/base/core/environment.ts'
import type { TaskId } from '../../../src/base/core/ids.ts'
import { makeLanes } from '../../../src/base/core/lane.ts'
import { type Player, playWorld } from '../../../src/engine/environments/play.ts'
import { replyOf, type ScriptedCall } from '../../../src/engine/environments/reply.ts'

/** The calls that are played in the recorded worlds, by the first tool that a world offers. */
const scripts: Readonly<Record<string, readonly (readonly ScriptedCall[])[]>> = {
  act: [
    [{ tool: 'act', input: { guess: 'four' } }],
    ...[4, 6, 5, 7, 8, 2, 3, 1].map(guess => [{ tool: 'act', input: { guess } }]),
  ],
  count: [
    [{ tool: 'count' }, { tool: 'sell', input: { pears: 9 } }],
    [{ tool: 'sell', input: { pears: 2 } }],
    [{ tool: 'sell', input: { pears: 1 } }],
  ],
}

/** Plays one world of an environment by the script for it. */
export async function playOpenEnv(
  environment: Environment,
  { signal }: { readonly signal: AbortSignal },
) {
  const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
  const task = { id: 'a' as TaskId, data: environment.readTask({ reset: { seed: 14 } }) }
  await using world = await environment.open(task, { seed: 1, lanes, signal })
  const player: Player = ({ tools, turn }) => {
    const calls = scripts[tools[0]!.function.name]![turn]
    return calls && replyOf('', ...calls)
  }
  const play = await playWorld(world, task, { player, turns: 12, signal })
  return { opening: world.opening, tools: world.tools, ...play }
}
