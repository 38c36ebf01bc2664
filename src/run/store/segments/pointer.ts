import { checkFrame, encodeFrame } from '../frame.ts'
import type { TreeCost } from '../journal-index.ts'

/** Where the frame of a tree, or of turns of one, lies. */
export interface SegmentPlace extends Pick<TreeCost, 'id'> {
  /** The name of the segment in the run's storage. */
  readonly segment: string
  readonly offset: number
  readonly size: number
  /** The checksum that the frame has there. */
  readonly sum: number
}

/** In place of a tree, a journal may say where its frame lies: in a segment of the machine that made it. */
export interface Pointer extends TreeCost, SegmentPlace {
  readonly kind: 'pointer'
}

/** How the header of such a frame begins, behind its lengths and checksum. */
const start = Buffer.from('[{"kind":"pointer",')
const headerStart = 12

/** Whether a frame points to a tree. */
export function isPointer(frame: Buffer): boolean {
  return frame.subarray(headerStart, headerStart + start.length).equals(start)
}

/** The frame that points to a tree. */
export function pointerTo(
  { id, sampled, prompt }: TreeCost,
  at: Pick<SegmentPlace, 'segment' | 'offset'>,
  frame: Buffer,
): Buffer {
  const pointer: Pointer = { kind: 'pointer', sampled, prompt, ...placeOf(id, at, frame) }
  return encodeFrame({ header: pointer, arrays: [] })
}

/** The place of a frame. */
export function placeOf(
  id: SegmentPlace['id'],
  { segment, offset }: Pick<SegmentPlace, 'segment' | 'offset'>,
  frame: Buffer,
): SegmentPlace {
  return { id, segment, offset, size: frame.length, sum: sumOf(frame) }
}

/** Throws unless a place can be one in a segment: it may come from a database. */
export function checkPlace(
  what: string,
  { segment, offset, size }: Pick<SegmentPlace, 'segment' | 'offset' | 'size'>,
): void {
  const isName = typeof segment === 'string' && nameOfSegment.test(segment)
  const areNumbers = [offset, size].every(each => Number.isSafeInteger(each) && each >= 0)
  if (isName && areNumbers && size < mostBytes) return
  throw new Error(`the place of ${what} is none: ${JSON.stringify({ segment, offset, size })}`)
}

const nameOfSegment = /^[\w-]{1,80}\/[\w-]{1,120}\.frames$/
const mostBytes = 1 << 30

/** Throws if these bytes are not those that lie there. */
export function checkPlaced({ id, segment, offset, size, sum }: SegmentPlace, frame: Buffer): void {
  if (frame.length !== size || sumOf(frame) !== sum) {
    throw new Error(`tree ${id} is not at byte ${offset} of segment ${segment}`)
  }
  checkFrame(frame, offset)
}

const sumOf = (frame: Buffer): number => (frame.length < 8 ? -1 : frame.readUInt32LE(4))
