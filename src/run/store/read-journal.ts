import type { FileHandle } from 'node:fs/promises'
import { openPlain } from '../../base/core/files/plain-file.ts'
import { findFrame } from './find-frame.ts'
import { checkFrame, DamagedFrameError, decodeFrame, type Frame, frameSize } from './frame.ts'

/** The first bytes of every journal: what it is, and the version of its format. */
export const journalMagic: Buffer = Buffer.from('ESPALIER JOURNAL 1\n')

/** Where a frame lies in its journal. */
export interface FramePlace {
  readonly offset: number
  readonly size: number
}

/** A frame read from a journal, with its place. */
export interface JournalEntry {
  readonly place: FramePlace
  readonly frame: Frame
}

/**
 * Reads a journal from its beginning, or from a place on. An incomplete last frame is ignored: its
 * writer is still at work, or died.
 */
export async function* readJournal(path: string, from = 0): AsyncGenerator<JournalEntry> {
  const handle = await openToRead(path)
  if (!handle) return
  try {
    for await (const { place, bytes, isTorn } of readPlaces(handle, path, from)) {
      if (isTorn) return
      yield { place, frame: decodeAt(bytes, place.offset, path) }
    }
  } finally {
    await handle.close()
  }
}

/** Opens a journal for reading; undefined if its writer has not created it yet. */
export async function openToRead(path: string): Promise<FileHandle | undefined> {
  try {
    return await openPlain(path, 'read')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Reads one frame whose place is known, as it lies there. */
export async function readBytes(handle: FileHandle, place: FramePlace): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(place.size)
  const { bytesRead } = await handle.read(bytes, 0, place.size, place.offset)
  return bytes.fill(0, bytesRead)
}

const chunkSize = 1 << 20

/** A frame as it lies in its file; a torn one is not all there. */
export interface PlacedBytes {
  readonly place: FramePlace
  readonly bytes: Buffer
  readonly isTorn: boolean
}

/** The frames of an open journal, undecoded, from a place on. */
export async function* readPlaces(
  handle: FileHandle,
  path: string,
  from = 0,
): AsyncGenerator<PlacedBytes> {
  const { size } = await handle.stat()
  // Its writer is about to write the first bytes.
  if (size < journalMagic.length) return
  await checkMagic(handle, path)
  let offset = Math.max(from, journalMagic.length)
  let buffer: Buffer = Buffer.alloc(0)
  let start = offset
  while (offset < size) {
    const known = await sizeAt(handle, { bytes: buffer, start, offset, size, path })
    const wanted = known ?? 8
    if (wanted === 'torn' || offset + wanted > size) {
      if (wanted !== 'torn') {
        const reason = `its length of ${wanted} bytes leads beyond the end of the file`
        await refuseHidden(handle, { offset, size, path, reason })
      }
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
    const problem = problemOf(bytes, offset)
    if (problem) {
      // Zeros from within the last frame to the end are what a power cut leaves.
      const isCut = await isZeroFrom(handle, offset + wanted - 1, size)
      if (isCut && offset + wanted < size) {
        yield { place: { offset, size: size - offset }, bytes, isTorn: true }
        return
      }
      // Its length may be what is wrong: then it only seems to be the last.
      if (offset + wanted < size) throw damaged(problem, path, { offset })
      await refuseHidden(handle, { offset, size, path, reason: problem.reason })
    }
    yield { place: { offset, size: wanted }, bytes, isTorn: problem !== undefined }
    offset += wanted
  }
}

interface Reading {
  readonly bytes: Buffer
  readonly start: number
  readonly offset: number
  readonly size: number
  readonly path: string
}

/** The size of the next frame; a tail of zeros, as a power cut leaves it, counts as torn. */
async function sizeAt(
  handle: FileHandle,
  { bytes, start, offset, size, path }: Reading,
): Promise<number | 'torn' | undefined> {
  try {
    return frameSize(bytes, offset - start)
  } catch (error) {
    if (await isZeroFrom(handle, offset, size)) return 'torn'
    throw damaged(error, path, { offset })
  }
}

function decodeAt(bytes: Buffer, offset: number, path: string): Frame {
  try {
    return decodeFrame(bytes, offset)
  } catch (error) {
    throw damaged(error, path, { offset })
  }
}

interface Suspect {
  readonly offset: number
  readonly size: number
  readonly path: string
  readonly reason: string
}

/** A crash damages only the last frame; if a whole one follows, the damage has another cause. */
async function refuseHidden(handle: FileHandle, suspect: Suspect): Promise<void> {
  const { offset, size, path, reason } = suspect
  const follows = await findFrame(handle, { from: offset + 8, to: size })
  if (follows === undefined) return
  throw damaged(new DamagedFrameError(reason, offset), path, { offset, follows })
}

/** Damage that no crash leaves behind: where it is, and how to keep what came before. */
function damaged(
  error: unknown,
  path: string,
  { offset, follows }: { readonly offset: number; readonly follows?: number },
): unknown {
  if (!(error instanceof DamagedFrameError)) return error
  const more = follows === undefined ? '' : `, though a frame follows at byte ${follows}`
  return new Error(
    `${path} is damaged at byte ${offset}: ${error.reason}${more}. All before that byte is whole: ` +
      `\`truncate -s ${offset} ${path}\` keeps it and gives up the rest`,
    { cause: error },
  )
}

async function isZeroFrom(handle: FileHandle, offset: number, size: number): Promise<boolean> {
  const chunk = Buffer.alloc(chunkSize)
  for (let at = offset; at < size; at += chunk.length) {
    const { bytesRead } = await handle.read(chunk, 0, Math.min(chunk.length, size - at), at)
    if (chunk.subarray(0, bytesRead).some(byte => byte !== 0)) return false
  }
  return true
}

/** What is wrong with a frame that is all there: a crash may leave a length without its bytes. */
function problemOf(bytes: Buffer, offset: number): DamagedFrameError | undefined {
  try {
    checkFrame(bytes, offset)
    return undefined
  } catch (error) {
    if (error instanceof DamagedFrameError) return error
    throw error
  }
}

async function checkMagic(handle: FileHandle, path: string): Promise<void> {
  const magic = Buffer.alloc(journalMagic.length)
  await handle.read(magic, 0, magic.length, 0)
  if (magic.equals(journalMagic)) return
  const text = magic.toString('latin1').replace(/[^ -~]/g, '.')
  const version = /^ESPALIER JOURNAL (\d+)/.exec(text)?.[1]
  throw new Error(
    version
      ? `${path} is a journal of format ${version}; this program reads format 1. A newer espalier reads it`
      : `${path} is not a journal: it begins with "${text}"`,
  )
}
