import { packPiece, unpackParcel } from '../../src/doors/cluster/parcel.ts'
import { decodeFrame, encodeFrame } from '../../src/run/store/frame.ts'
import { pieceOf } from '../made-piece.ts'
import { plainTree } from '../plain-tree.ts'
import { type Attack, damagedBytes, damagedJson, hold } from './attack.ts'

/** Results in a cluster's database that are damaged, or were written by somebody else: read, or refused in words. */
export const clusterRows: Attack = {
  name: 'cluster rows',
  promise: 'O1',
  share: 10,
  async open() {
    const tree = plainTree({ calls: [{ tool: 'look' }] })
    const [trajectory] = tree.trajectories
    const reward = { total: 1, parts: [{ name: 'right', score: 1, weight: 1 }] }
    const members = [{ tree, trajectory: trajectory as never, reward }]
    const right = await packPiece(
      await pieceOf({ kind: 'made', trees: [tree], members, events: [] }),
    )
    const { header, arrays } = decodeFrame(right, 0)
    const [frames, pieces, ...texts] = arrays as readonly Uint8Array[]
    const sent: unknown = JSON.parse(`${Buffer.from(pieces!)}`)
    return draw => {
      const written = (): Buffer => {
        const damaged = Buffer.from(JSON.stringify(damagedJson(sent, draw)) ?? '')
        return encodeFrame({ header, arrays: [frames!, damaged, ...texts] })
      }
      const bytes = draw() < 0.7 ? written() : damagedBytes(right, draw)
      try {
        unpackParcel(bytes)
      } catch (cause) {
        const { message } = cause as Error
        hold(message.startsWith('the result of an attempt'), String(cause))
      }
    }
  },
}
