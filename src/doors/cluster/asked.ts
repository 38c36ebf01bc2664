import type { Answering } from '../../base/core/call.ts'
import { seatGroup, treeId } from '../../base/core/ids.ts'
import type {
  GroupCall,
  GroupWork,
  Piece,
  Returned,
  ReturnedGroup,
  Work,
} from '../../run/run/elsewhere.ts'
import { seatsOf } from '../../run/run/pipeline.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { toMade } from '../../run/run/threads/thread.ts'
import type { RunStorage } from '../../run/store/segments/storage.ts'
import { brokenResult, unpackParcel } from './parcel.ts'
import type { Over, Placed } from './placing.ts'

/** An attempt that a coordinator waits for. */
export interface AskedAttempt extends Answering<Returned> {
  readonly kind: 'attempt'
  readonly work: Work
  readonly placed: Placed
}

/** A group that it waits for. */
export interface AskedGroup
  extends Answering<ReturnedGroup>,
    Pick<GroupCall, 'onBegin' | 'onPiece'> {
  readonly kind: 'group'
  readonly work: GroupWork
  readonly placed: Placed
  /** Attempts that have not come. */
  left: number
}

/** What a coordinator waits for. */
export type Asked = AskedAttempt | AskedGroup

/** How many attempts are still to come. */
export const leftOf = (asked: Asked): number => (asked.kind === 'group' ? asked.left : 1)

/** What of a run decides which trees an attempt has. */
type Seated = Pick<RollParts, 'environment'>

/** What answers are read with. */
export interface Reading {
  readonly parts: Seated
  /** Where workers put large trees. */
  readonly storage?: RunStorage | undefined
}

/** Answers with what is over; throws if that is no answer. */
export function answer(asked: Asked, over: Over, reading: Reading): void {
  if (asked.kind === 'group') asked.resolve(groupOf(asked, over, reading))
  else asked.resolve(attemptOf(asked, over, reading))
}

/** A part of a group; throws if it is none. */
export function partOf(asked: AskedGroup, { result }: Over, { storage }: Reading): Piece {
  const parcel = unpackParcel(result!, storage)
  if (parcel.kind !== 'piece') throw brokenResult('a part of it holds nothing')
  refuseOthers(parcel.piece, namesOf(asked.work))
  return parcel.piece
}

function attemptOf({ work }: AskedAttempt, over: Over, { parts, storage }: Reading): Returned {
  const { state, reason, result } = over
  if (state !== 'done' || !result) {
    return { kind: 'poisoned', reason: reason ?? 'it broke wherever it was tried' }
  }
  const parcel = unpackParcel(result, storage)
  if (parcel.kind === 'spent') return parcel
  const names = seatsOf(parts).map(seat => treeId(seatGroup(work.group, seat), work.member))
  refuseOthers(parcel.piece, names)
  if (parcel.piece.count < names.length) throw brokenResult('a tree of it is missing')
  return toMade(parcel.piece)
}

function groupOf(
  asked: AskedGroup,
  { state, tries, result }: Over,
  { parts, storage }: Reading,
): ReturnedGroup {
  if (state !== 'done' || !result) return { kind: 'broken', tries }
  const parcel = unpackParcel(result, storage)
  if (parcel.kind === 'spent') return parcel
  const { piece } = parcel
  refuseOthers(piece, namesOf(asked.work))
  if (seatsOf(parts).length === 1 && piece.group && piece.count === asked.left) {
    return { kind: 'made', piece }
  }
  throw brokenResult('it is no whole group')
}

const namesOf = ({ group, members }: GroupWork): readonly string[] =>
  Array.from({ length: members }, (_, member) => treeId(group, member))

/** Throws if a result is not that of what was asked for. */
function refuseOthers({ notes }: Piece, names: readonly string[]): void {
  const got = notes.map(([id]) => id)
  if (got.every(id => names.includes(id)) && new Set(got).size === got.length) return
  throw brokenResult(`it is that of ${got.join(', ')}`)
}
