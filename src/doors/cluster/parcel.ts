import { createHash } from 'node:crypto'
import { deserialize, serialize } from 'node:v8'
import type { SpentKind } from '../../run/run/budget.ts'
import type { Made, Returned, Work } from '../../run/run/elsewhere.ts'
import { type ScoreRecord, toMember, toScoreRecord } from '../../run/run/served/score-record.ts'
import type { Served } from '../../run/run/served/served-run.ts'
import { checkFrame, decodeFrame, encodeFrame } from '../../run/store/frame.ts'
import { treeFromFrame, treeToFrame } from '../../run/store/tree-frame.ts'
import type { RunEvent } from '../../run/watch/events.ts'

/** Work as bytes. Tasks may hold whatever structured cloning can carry, dates and big integers too. */
export function packWork(work: Work): Buffer {
  try {
    return serialize(work)
  } catch (cause) {
    throw new Error(
      `task ${work.task.id} cannot be sent to another process: its data holds something that is no data (${(cause as Error).message})`,
      { cause },
    )
  }
}

/** The work that was sent. */
export function unpackWork(bytes: Uint8Array): Work {
  return deserialize(bytes) as Work
}

/** A digest of everything the result depends on; a budget decides only whether there is a result. */
export function digestOf({ allowance: _, ...work }: Work, version: number | null): string {
  return createHash('sha256').update(serialize(work)).update(`${version}`).digest('hex')
}

type ParcelHeader =
  | { readonly kind: 'spent'; readonly of: SpentKind }
  | {
      readonly kind: 'made'
      /** Each with the place of its first array. */
      readonly trees: readonly { readonly tree: unknown; readonly from: number }[]
      readonly scores: readonly ScoreRecord[]
      readonly events: readonly RunEvent[]
    }

/** What a worker gives back, as bytes. */
export function packServed(served: Served): Buffer {
  return served.kind === 'made' ? packMade(served) : packSpent(served.of)
}

/** An attempt that was made, as bytes: its trees as the journal writes them, its scores, its events. */
export function packMade({ trees, members, events }: Omit<Made, 'kind'>): Buffer {
  const frames = trees.map(treeToFrame)
  const arrays = frames.flatMap(frame => frame.arrays)
  let from = 0
  const headers = frames.map(frame => {
    const placed = { tree: frame.header, from }
    from += frame.arrays.length
    return placed
  })
  const scores = members.map(toScoreRecord)
  const parcel: ParcelHeader = { kind: 'made', trees: headers, scores, events }
  return encodeFrame({ header: parcel, arrays })
}

/** Says that an allowance did not suffice. */
function packSpent(of: SpentKind): Buffer {
  return encodeFrame({ header: { kind: 'spent', of } satisfies ParcelHeader, arrays: [] })
}

/** Reads and checks what a worker gave back: anybody with access to the database could have written it. */
export function unpackReturned(bytes: Buffer): Returned {
  try {
    checkFrame(bytes, 0)
    return readReturned(bytes)
  } catch (cause) {
    throw brokenResult((cause as Error).message, cause)
  }
}

/** What is said of a result that cannot be taken. */
export function brokenResult(why: string, cause?: unknown): Error {
  return new Error(`the result of an attempt in the cluster's database is broken: ${why}`, {
    cause,
  })
}

function readReturned(bytes: Buffer): Returned {
  const { header, arrays } = decodeFrame(bytes, 0)
  const parcel = header as ParcelHeader
  if (parcel.kind === 'spent') return parcel
  const trees = parcel.trees.map(({ tree, from }) =>
    treeFromFrame({ header: tree, arrays: arrays.slice(from) }),
  )
  const members = parcel.scores.map(score => toMember(score, trees))
  return { kind: 'made', trees, members, events: parcel.events }
}
