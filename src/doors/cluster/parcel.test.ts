import { describe, expect, it } from 'vitest'
import { scratch } from '../../../test/end-to-end/cli.ts'
import { pieceOf } from '../../../test/made-piece.ts'
import { plainTree } from '../../../test/plain-tree.ts'
import { openStorage } from '../../run/store/segments/storage.ts'
import { packPiece, unpackParcel } from './parcel.ts'

/** An attempt with so long a prompt. */
async function made(tokens: number) {
  const tree = plainTree({ prompt: new Int32Array(tokens).fill(7) })
  const [trajectory] = tree.trajectories
  const reward = { total: 1, parts: [{ name: 'right', score: 1, weight: 1 }] }
  const members = [{ tree, trajectory: trajectory as never, reward }]
  return { tree, piece: await pieceOf({ kind: 'made', trees: [tree], members, events: [] }) }
}

describe('what a worker gives back', () => {
  it('[P1] of a large tree is its place, and of a small one all of it; both are read alike', async () => {
    const storage = await openStorage(scratch())
    await using segment = storage.write('run/one')
    for (const [tokens, isPlaced] of [
      [100_000, true],
      [10, false],
    ] as const) {
      const { tree, piece } = await made(tokens)
      const bytes = await packPiece(piece, segment)
      expect(bytes.length < 10_000).toBe(true)
      const parcel = unpackParcel(bytes, storage)
      if (parcel.kind !== 'piece') throw new Error('it is no piece')
      const [read] = parcel.piece.trees
      expect(read!.tree.nodes).toEqual(tree.nodes)
      expect(read!.members[0]!.trajectory.messages).toEqual(tree.trajectories[0]!.messages)
      const alone = unpackParcel(bytes)
      const lookInto = () => alone.kind === 'piece' && alone.piece.trees[0]!.tree.nodes
      if (isPlaced) expect(lookInto).toThrow('the run has no --segments')
      else expect(lookInto()).toEqual(tree.nodes)
    }
  })
})
