import type { FileHandle } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { prefixSize } from './frame.ts'

const windowSize = 1 << 20
/** Every frame is so many bytes long, or a multiple. */
const grain = 8
/** Bytes of a frame that are looked at before its checksum: its prefix, header length, first byte. */
const shown = prefixSize + 5

/** What may be a frame, by its first bytes. */
interface Candidate {
  readonly offset: number
  /** Bytes of its body. */
  readonly size: number
  readonly checksum: number
}

/**
 * Where the first whole frame begins in a part of a file. The search is bounded: after too many false
 * candidates, the next candidate is taken for a frame.
 */
export async function findFrame(
  handle: FileHandle,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number | undefined> {
  let patience = 100 * windowSize + (to - from)
  const window = Buffer.alloc(windowSize + shown)
  for (let start = from; start + shown <= to; start += windowSize) {
    const { bytesRead } = await handle.read(window, 0, window.length, start)
    for (let at = 0; at < windowSize && at + shown <= bytesRead; at += grain) {
      const candidate = candidateIn(window, at, start + at)
      if (!candidate || candidate.offset + prefixSize + candidate.size > to) continue
      patience -= candidate.size + 1000
      if (patience < 0 || (await isFrame(handle, candidate))) return candidate.offset
    }
  }
  return undefined
}

/** A frame's plausible beginning: consistent lengths, and a header that begins like our JSON. */
function candidateIn(window: Buffer, at: number, offset: number): Candidate | undefined {
  const size = window.readUInt32LE(at)
  const header = window.readUInt32LE(at + prefixSize)
  if (size < grain || size % grain !== 0 || header < 2 || 4 + header > size) return undefined
  if (window[at + prefixSize + 4] !== 0x5b) return undefined
  return { offset, size, checksum: window.readUInt32LE(at + 4) }
}

async function isFrame(handle: FileHandle, candidate: Candidate): Promise<boolean> {
  const { offset, size, checksum } = candidate
  const chunk = Buffer.alloc(Math.min(size, windowSize))
  let actual = 0
  for (let done = 0; done < size; ) {
    const length = Math.min(chunk.length, size - done)
    const { bytesRead } = await handle.read(chunk, 0, length, offset + prefixSize + done)
    if (bytesRead === 0) return false
    actual = crc32(chunk.subarray(0, bytesRead), actual)
    done += bytesRead
  }
  return actual === checksum
}
