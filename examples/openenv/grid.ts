// A player that walks over OpenEnv's grid at random. docs/guides/openenv.md trains from here.
import { random, seedOf } from 'espalier/math'

const moves = ['UP', 'DOWN', 'DOWN', 'LEFT', 'RIGHT', 'RIGHT']

export function show({ task, turn }: { task: { id: string }; turn: number }) {
  if (turn === 12) return undefined
  return moves[Math.floor(moves.length * random(seedOf('grid', task.id, turn))())]
}
