import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { openPlain } from '../../base/core/files/plain-file.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import { type Frame, type FrameBuffer, makeFrameBuffer, type WrittenFrame } from './frame.ts'
import { type FramePlace, journalMagic, readPlaces } from './read-journal.ts'

/** An append-only file of frames. One writer, any number of readers. */
export interface Journal extends AsyncDisposable {
  /** Resolves when the frame is written; a crash of this process can no longer lose it. */
  append(frame: Appended): Promise<FramePlace>
  /** Resolves when all that was appended would survive a power cut. */
  sync(): Promise<void>
  /** Bytes that are written. */
  readonly size: number
}

/**
 * A frame to append, or what makes it when its turn has come: thousands of attempts may end together.
 * One that was read from another journal is given as its bytes.
 */
type Appended = Frame | Buffer | (() => WrittenFrame)

/** How a journal is opened. */
export interface JournalOptions {
  /** Seconds between two syncs to the disk. @default 1 */
  readonly syncEvery?: number
}

interface Waiting {
  readonly frame: Appended
  readonly resolve: (place: FramePlace) => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens a journal for appending. A torn last frame, as a crash leaves it, is cut off; any other
 * damage is refused. Frames that arrive while the disk is busy are written together.
 */
export async function openJournal(
  path: string,
  { syncEvery = 1 }: JournalOptions = {},
): Promise<Journal> {
  const { handle, end } = await openToAppend(path)
  const tail = makeTail(handle, end)
  // One batch is written at a time, so that they can share it.
  const buffer = makeFrameBuffer()
  let isDirty = false
  /** Why what was written may not survive a power cut: nothing more is taken then. */
  let broken: StoreError | undefined
  const waiting: Waiting[] = []
  let writing: Promise<void> | undefined

  async function writeBatch(batch: readonly Encoded[]): Promise<void> {
    let offset: number
    try {
      if (broken) throw broken
      offset = await tail.write(buffer.bytes())
    } catch (cause) {
      const refused = broken ?? new StoreError(path, { cause, keeps: true })
      for (const { waiting } of batch) waiting.reject(refused)
      return
    }
    isDirty = true
    for (const { size, waiting } of batch) {
      waiting.resolve({ offset, size })
      offset += size
    }
  }

  /**
   * Writes at once what was appended in this turn of the event loop, up to a batch: the trees of
   * thousands of attempts that end together would hold the loop.
   */
  async function writeNext(): Promise<void> {
    await setImmediate()
    const batch = takeBatch(waiting, buffer)
    if (batch.length > 0) await writeBatch(batch)
    writing = waiting.length > 0 ? writeNext() : undefined
  }

  const append = (frame: Appended): Promise<FramePlace> =>
    new Promise((resolve, reject) => {
      waiting.push({ frame, resolve, reject })
      writing ??= writeNext()
    })

  async function syncWritten(): Promise<void> {
    if (!isDirty) return
    isDirty = false
    await handle.datasync()
  }

  async function sync(): Promise<void> {
    // Nothing is written when all before it is. Whoever appends meanwhile is not waited for: under
    // load somebody always does.
    if (writing) await append(Buffer.alloc(0)).catch(() => {})
    await syncWritten()
  }
  const timer = setInterval(() => void syncWritten().catch(fail), syncEvery * 1000).unref()

  function fail(cause: unknown): void {
    broken ??= new StoreError(path, { cause, keeps: true })
  }

  return {
    get size() {
      return tail.end
    },
    append,
    sync,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      // The append has reported the failure already.
      await sync().catch(fail)
      await handle.close()
    },
  }
}

/** The end of a journal: what is written there is in the file whole or not at all. */
function makeTail(handle: FileHandle, start: number) {
  let end = start
  /** Whether a part of a frame may lie behind the last whole one. */
  let isTorn = false

  /** Cuts off what would hide all later frames. */
  async function cut(): Promise<void> {
    if (isTorn) await handle.truncate(end)
    isTorn = false
  }

  return {
    get end() {
      return end
    },
    /** Gives the place where the bytes lie. */
    async write(bytes: Buffer): Promise<number> {
      const place = end
      try {
        await cut()
        await writeAll(handle, bytes)
      } catch (cause) {
        isTorn = true
        await cut().catch(() => {})
        throw cause
      }
      end += bytes.length
      return place
    },
  }
}

/** A frame in the buffer, with whoever waits for it. */
interface Encoded {
  readonly waiting: Waiting
  readonly size: number
}

/** Takes frames off a list and into the buffer until they are a batch. */
function takeBatch(waiters: Waiting[], buffer: FrameBuffer): readonly Encoded[] {
  buffer.clear()
  const encoded: Encoded[] = []
  let count = 0
  let size = 0
  while (count < waiters.length && size < largeBatch) {
    const waiting = waiters[count++]!
    const added = encodeWaiting(waiting, buffer)
    if (added === undefined) continue
    encoded.push({ waiting, size: added })
    size += added
  }
  waiters.splice(0, count)
  return encoded
}

/** Puts a frame into the buffer and gives its size; one that has no form as bytes fails alone. */
function encodeWaiting({ frame, reject }: Waiting, buffer: FrameBuffer): number | undefined {
  try {
    if (typeof frame === 'function') return buffer.add(frame())
    return Buffer.isBuffer(frame) ? buffer.addBytes(frame) : buffer.add(frame)
  } catch (error) {
    reject(error)
    return undefined
  }
}

async function openToAppend(path: string): Promise<{ handle: FileHandle; end: number }> {
  const handle = await openPlain(path, 'append').catch((cause: unknown) => {
    throw new StoreError(path, { cause })
  })
  try {
    return { handle, end: await findEnd(handle, path) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Frames are added to a batch up to this many bytes, so that its last may reach beyond them. */
const largeBatch = 256 * 1024
/** Up to this many bytes are written synchronously: an asynchronous write takes longer. */
const smallWrite = 2 * largeBatch

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const isSmall = bytes.length - written <= smallWrite
    written += isSmall
      ? writeSync(handle.fd, bytes, written)
      : (await handle.write(bytes, written)).bytesWritten
  }
}

async function findEnd(handle: FileHandle, path: string): Promise<number> {
  const { size } = await handle.stat()
  if (size < journalMagic.length) {
    if (size > 0) await handle.truncate(0)
    await writeAll(handle, journalMagic).catch((cause: unknown) => {
      throw new StoreError(path, { cause })
    })
    return journalMagic.length
  }
  let end = journalMagic.length
  for await (const { place, isTorn } of readPlaces(handle, path)) {
    if (!isTorn) end = place.offset + place.size
  }
  if (end < size) await handle.truncate(end)
  return end
}
