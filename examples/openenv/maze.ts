// Somebody who walks through OpenEnv's maze without knowing the way. docs/openenv.md trains from here.
import { random, seedOf } from 'espalier'

/** Left, right, up and down by the maze's own numbers; right and down a little more often. */
const moves = [0, 1, 1, 2, 3, 3]

export function show({ task, turn }: { task: { id: string }; turn: number }) {
  if (turn === 12) return undefined
  const draw = random(seedOf('maze', task.id, turn))()
  return { tool: 'act', input: { action: moves[Math.floor(moves.length * draw)] } }
}
