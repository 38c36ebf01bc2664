import { writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { type Frame, type FrameBuffer, openFrameBuffer } from './frame.ts'
import { type FramePlace, journalMagic, readPlaces } from './read-journal.ts'
import { StoreError } from './store-error.ts'

/** An append-only file of frames. One writer, any number of readers. */
export interface Journal extends AsyncDisposable {
  /**
   * Resolves when the frame is written; a crash of this process can no longer lose it. One that is
   * given as a function is asked for when it is about to be written, and may grow until then; one
   * that was read from another journal is given as its bytes.
   */
  append(frame: Frame | Buffer | (() => Frame)): Promise<FramePlace>
  /** Resolves when all that was appended would survive a power cut. */
  sync(): Promise<void>
  /** Bytes that are written. */
  readonly size: number
}

/** How a journal is opened. */
export interface JournalOptions {
  /** Seconds between two syncs to the disk. @default 1 */
  readonly syncEvery?: number
}

interface Waiting {
  readonly frame: Frame | Buffer | (() => Frame)
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
  const handle = await openToAppend(path)
  let end = await findEnd(handle, path).catch(async (error: unknown) => {
    await handle.close()
    throw error
  })
  // One batch is written at a time, so that they can share it.
  const buffer = openFrameBuffer()
  let isDirty = false
  let broken: StoreError | undefined
  let waiting: Waiting[] = []
  let writing: Promise<void> | undefined

  async function writeBatch(waiters: readonly Waiting[]): Promise<void> {
    const batch = encodeAll(waiters, buffer)
    if (batch.length === 0) return
    try {
      if (broken) throw broken
      await writeAll(handle, buffer.bytes())
    } catch (cause) {
      // What stands behind the last whole frame would hide all that came later.
      if (!broken) await handle.truncate(end).catch(() => {})
      broken ??= new StoreError(path, { cause, keeps: true })
      for (const { waiting } of batch) waiting.reject(broken)
      return
    }
    isDirty = true
    for (const { size, waiting } of batch) {
      waiting.resolve({ offset: end, size })
      end += size
    }
  }

  async function writeWaiting(): Promise<void> {
    // All that is appended in this turn of the event loop is written at once.
    await setImmediate()
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await writeBatch(batch)
    }
    writing = undefined
  }

  async function sync(): Promise<void> {
    await writing
    if (!isDirty) return
    isDirty = false
    await handle.datasync()
  }
  const timer = setInterval(() => void sync().catch(fail), syncEvery * 1000)
  timer.unref()

  function fail(cause: unknown): void {
    broken ??= new StoreError(path, { cause, keeps: true })
  }

  return {
    get size() {
      return end
    },
    append: frame =>
      new Promise((resolve, reject) => {
        waiting.push({ frame, resolve, reject })
        writing ??= writeWaiting()
      }),
    sync,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      // Whoever appended was told of a failure; closing has nothing to add.
      await sync().catch(fail)
      await handle.close()
    },
  }
}

/** A frame in the buffer, with whoever waits for it. */
interface Encoded {
  readonly waiting: Waiting
  readonly size: number
}

function encodeAll(waiters: readonly Waiting[], buffer: FrameBuffer): readonly Encoded[] {
  buffer.clear()
  return waiters.flatMap(each => encodeWaiting(each, buffer))
}

/** Puts a frame into the buffer; one that has no form as bytes fails alone. */
function encodeWaiting(waiting: Waiting, buffer: FrameBuffer): readonly Encoded[] {
  const { frame, reject } = waiting
  try {
    if (Buffer.isBuffer(frame)) return [{ waiting, size: buffer.addBytes(frame) }]
    return [{ waiting, size: buffer.add(typeof frame === 'function' ? frame() : frame) }]
  } catch (error) {
    reject(error)
    return []
  }
}

async function openToAppend(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a+')
  } catch (cause) {
    throw new StoreError(path, { cause })
  }
}

/** Up to so many bytes are handed to the system at once: waking a thread for them takes longer. */
const smallWrite = 256 * 1024

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
