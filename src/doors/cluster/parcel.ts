import { createHash } from 'node:crypto'
import { deserialize, serialize } from 'node:v8'
import type { SpentKind } from '../../run/run/budget.ts'
import type { GroupWork, Piece, Work } from '../../run/run/elsewhere.ts'
import type { MadeBatch, SentPiece } from '../../run/run/threads/made-batch.ts'
import { batchOf, type Frames, readMadeBatch } from '../../run/run/threads/read-batch.ts'
import { decodeFrame, encodeFrame, type FrameArray } from '../../run/store/frame.ts'
import type { NotedTree } from '../../run/store/journal-index.ts'
import { isPointer, type Pointer, pointerTo } from '../../run/store/segments/pointer.ts'
import { followNow, type RunStorage, type SegmentWriter } from '../../run/store/segments/storage.ts'

/** An attempt or a whole group as bytes. Tasks may hold whatever structured cloning can carry, dates and big integers too. */
export function packWork(work: Work | GroupWork): Buffer {
  try {
    return serialize(work)
  } catch (cause) {
    throw new Error(
      `task ${work.task.id} cannot be sent to another process: its data holds something that is no data (${(cause as Error).message})`,
      { cause },
    )
  }
}

/** The attempt or the group that was sent. */
export function unpackWork(bytes: Uint8Array): Work | GroupWork {
  return deserialize(bytes) as Work | GroupWork
}

/**
 * A digest of everything that attempts depend on besides their names, so that a group has that of its attempts; a
 * budget decides only whether there is a result.
 */
export function digestOf(
  { group, task, seed, sampling, limits, examples, endpoint }: Work | GroupWork,
  version: number | null,
): string {
  const deciding = serialize({ group, task, seed, sampling, limits, examples, endpoint })
  return createHash('sha256').update(deciding).update(`${version}`).digest('hex')
}

/** What a worker gives back: what was made, or that an allowance did not suffice. */
export type Parcel =
  | { readonly kind: 'piece'; readonly piece: Piece }
  | { readonly kind: 'spent'; readonly of: SpentKind }

type ParcelHeader = Pick<Parcel, 'kind'> & { readonly of?: SpentKind }

/** Trees of fewer bytes pass through the database. */
const small = 64 << 10

/** What was made, as bytes; large trees are in the segment, if there is one, before it is there. */
export async function packPiece(piece: Piece, segment?: SegmentWriter): Promise<Buffer> {
  const batch = segment ? await setAside(piece, segment) : batchOf(piece)
  const { pieces, texts, records, frames } = batch
  const header: ParcelHeader = { kind: 'piece' }
  return encodeFrame({ header, arrays: [frames, ...[pieces, texts, records].map(toBytes)] })
}

/** Puts large trees into a segment, and pointers in their place. */
async function setAside(piece: Piece, segment: SegmentWriter): Promise<MadeBatch> {
  const batch = batchOf(piece)
  const { bytes, notes } = piece
  const frameOf = ([, offset, size]: NotedTree): Buffer => bytes.subarray(offset, offset + size)
  const large = notes.map(frameOf).filter(({ length }) => length >= small)
  if (large.length === 0) return batch
  const place = await segment.append(Buffer.concat(large))
  let { offset } = place
  let end = 0
  const frames: Buffer[] = []
  const moved = notes.map((note): NotedTree => {
    const [id, , size, sampled, prompt] = note
    const own = frameOf(note)
    const isAside = size >= small
    const frame = isAside ? pointerTo({ id, sampled, prompt }, { ...place, offset }, own) : own
    if (isAside) offset += size
    frames.push(frame)
    end += frame.length
    return [id, end - frame.length, frame.length, sampled, prompt]
  })
  const [, last, size] = notes.at(-1)!
  const whole = Buffer.concat([...frames, bytes.subarray(last + size)])
  const [sent] = JSON.parse(batch.pieces) as readonly SentPiece[]
  const pieces = JSON.stringify([{ ...sent, notes: moved, size: whole.length }])
  return { ...batch, pieces, frames: whole }
}

/** Says that an allowance did not suffice. */
export function packSpent(of: SpentKind): Buffer {
  const header: ParcelHeader = { kind: 'spent', of }
  return encodeFrame({ header, arrays: [] })
}

const toBytes = (text: string): Uint8Array => Buffer.from(text)

/**
 * Reads and checks what a worker gave back: anybody with access to the database could have written it. Trees that
 * it only points to are read from the storage when they are looked into.
 */
export function unpackParcel(bytes: Buffer, storage?: RunStorage): Parcel {
  try {
    const { header, arrays } = decodeFrame(bytes, 0)
    const { kind, of } = header as ParcelHeader
    if (kind === 'spent') return { kind, of: of === 'money' ? of : 'tokens' }
    return { kind: 'piece', piece: readPiece(arrays, storage) }
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

function readPiece(arrays: readonly FrameArray[], storage: RunStorage | undefined): Piece {
  const [frames, ...texts] = arrays as readonly Uint8Array[]
  const [pieces = '', own = '', records = ''] = texts.map(each => Buffer.from(each).toString())
  if (!frames) throw new Error('it has no frames')
  refuseOdd(JSON.parse(pieces), { frames: frames.length, own: own.length, records: records.length })
  const batch = { kind: 'made', pieces, texts: own, records, frames } as const
  return readMadeBatch(batch, framesIn(storage))[0]!.piece
}

/** The frames of trees, from their segments if they lie there. */
const framesIn = (storage: RunStorage | undefined): Frames => ({
  isFar: bytes => storage?.isFar === true && isPointer(bytes),
  whole(bytes) {
    if (!isPointer(bytes)) return bytes
    if (storage) return followNow(storage, decodeFrame(bytes, 0).header as Pointer)
    throw new Error('a tree lies in a segment, and the run has no --segments')
  },
})

/** Refuses a piece whose places lead out of what was sent with it. */
function refuseOdd(
  [sent]: readonly SentPiece[],
  lengths: { readonly frames: number; readonly own: number; readonly records: number },
): void {
  if (!sent) throw new Error('it holds nothing')
  const { notes, sampled, outcomes, lines, details, group } = sent
  const isShaped = isCount(sampled) && Array.isArray(outcomes) && (!group || group.glance)
  if (!isShaped) throw new Error('it does not say what it holds')
  let end = 0
  for (const [id, offset, size, ...costs] of notes) {
    if (typeof id !== 'string' || offset !== end || !(size > 0) || !costs.every(isCount)) {
      throw new Error(`its tree ${id} lies at ${offset}, with ${size} bytes`)
    }
    end += size
  }
  const own = lines + details + (group?.line ?? 0)
  if (end > lengths.frames || own !== lengths.own || (group?.record ?? 0) !== lengths.records) {
    throw new Error('it is not as long as it says')
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0
