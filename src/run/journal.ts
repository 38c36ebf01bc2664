import { type FileHandle, open } from 'node:fs/promises'
import {
  DamagedFrameError,
  decodeFrame,
  encodeFrame,
  type Frame,
  frameSize,
} from '../core/frame.ts'

/** The first bytes of every journal: what it is, and the version of its format. */
export const journalMagic = Buffer.from('ESPALIER JOURNAL 1\n')

/** Where a frame lies in its journal. */
export interface FramePlace {
  readonly offset: number
  readonly size: number
}

/** An append-only file of frames. One writer, any number of readers. */
export interface Journal extends AsyncDisposable {
  /** Resolves when the frame is written; a crash of this process can no longer lose it. */
  append(frame: Frame): Promise<FramePlace>
  /** Resolves when all that was appended would survive a power cut. */
  sync(): Promise<void>
}

/** How a journal is opened. */
export interface JournalOptions {
  /** Seconds between two syncs to the disk. @default 1 */
  readonly syncEvery?: number
}

/**
 * Opens a journal for appending. A torn last frame, as a crash leaves it, is cut off; any other
 * damage is refused.
 */
export async function openJournal(path: string, options: JournalOptions = {}): Promise<Journal> {
  const { syncEvery = 1 } = options
  const handle = await open(path, 'a+')
  let end = await findEnd(handle, path)
  let dirty = false
  let broken: unknown
  let queue: Promise<void> = Promise.resolve()

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work)
    queue = result.then(
      () => {},
      () => {},
    )
    return result
  }
  const sync = async (): Promise<void> => {
    if (!dirty) return
    dirty = false
    await handle.datasync()
  }
  const timer = setInterval(() => void inTurn(sync).catch(() => {}), syncEvery * 1000)
  timer.unref()

  return {
    append: frame =>
      inTurn(async () => {
        if (broken) throw broken
        const bytes = encodeFrame(frame)
        const place = { offset: end, size: bytes.length }
        try {
          await writeAll(handle, bytes)
        } catch (error) {
          // What stands behind the last whole frame would hide all that came later.
          await handle.truncate(end).catch(() => {})
          broken = new Error(`${path} cannot be written: ${(error as Error).message}`, {
            cause: error,
          })
          throw broken
        }
        end += bytes.length
        dirty = true
        return place
      }),
    sync: () => inTurn(sync),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await inTurn(sync).finally(() => handle.close())
    },
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, written)
    written += bytesWritten
  }
}

async function findEnd(handle: FileHandle, path: string): Promise<number> {
  const { size } = await handle.stat()
  if (size < journalMagic.length) {
    await handle.truncate(0)
    await writeAll(handle, journalMagic)
    return journalMagic.length
  }
  let end = journalMagic.length
  for await (const { place, isTorn } of readPlaces(handle, path)) {
    if (!isTorn) end = place.offset + place.size
  }
  if (end < size) await handle.truncate(end)
  return end
}

/** A frame read from a journal, with its place; `isTorn` frames have no content. */
export interface JournalEntry {
  readonly place: FramePlace
  readonly frame: Frame
}

/**
 * Reads a journal from its beginning, or from a place on. A torn last frame ends it quietly: its
 * writer is still at work, or died.
 */
export async function* readJournal(path: string, from = 0): AsyncGenerator<JournalEntry> {
  const handle = await open(path, 'r')
  try {
    for await (const entry of readPlaces(handle, path, from)) {
      if (!entry.isTorn)
        yield { place: entry.place, frame: decodeFrame(entry.bytes, entry.place.offset) }
    }
  } finally {
    await handle.close()
  }
}

/** Reads one frame whose place is known. */
export async function readFrame(handle: FileHandle, place: FramePlace): Promise<Frame> {
  const bytes = Buffer.alloc(place.size)
  await handle.read(bytes, 0, place.size, place.offset)
  return decodeFrame(bytes, place.offset)
}

const chunkSize = 1 << 20

interface PlacedBytes {
  readonly place: FramePlace
  readonly bytes: Buffer
  readonly isTorn: boolean
}

async function* readPlaces(
  handle: FileHandle,
  path: string,
  from = 0,
): AsyncGenerator<PlacedBytes> {
  const { size } = await handle.stat()
  await checkMagic(handle, path)
  let offset = Math.max(from, journalMagic.length)
  let buffer: Buffer = Buffer.alloc(0)
  let start = offset
  while (offset < size) {
    const known = frameSize(buffer, offset - start)
    const wanted = known ?? 8
    if (offset + wanted > size) {
      yield { place: { offset, size: size - offset }, bytes: buffer, isTorn: true }
      return
    }
    if (offset - start + wanted > buffer.length) {
      const length = Math.min(size - offset, Math.max(chunkSize, wanted))
      buffer = Buffer.alloc(length)
      await handle.read(buffer, 0, length, offset)
      start = offset
      continue
    }
    const bytes = buffer.subarray(offset - start, offset - start + wanted)
    const isTorn = offset + wanted === size && !isWhole(bytes, offset)
    yield { place: { offset, size: wanted }, bytes, isTorn }
    offset += wanted
  }
}

/** Whether the last frame of a file is all there: a crash may leave its length without its bytes. */
function isWhole(bytes: Buffer, offset: number): boolean {
  try {
    decodeFrame(bytes, offset)
    return true
  } catch (error) {
    if (error instanceof DamagedFrameError) return false
    throw error
  }
}

async function checkMagic(handle: FileHandle, path: string): Promise<void> {
  const magic = Buffer.alloc(journalMagic.length)
  await handle.read(magic, 0, magic.length, 0)
  if (magic.equals(journalMagic)) return
  const found = magic.toString('latin1').replace(/[^ -~]/g, '.')
  throw new Error(`${path} is not a journal of format 1: it begins with "${found}"`)
}
