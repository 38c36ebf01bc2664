import { resolve } from 'node:path'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { openFolder } from './folder.ts'
import { checkPlace, checkPointed, type Pointer } from './pointer.ts'

/** Where segments of journals lie: a folder that all machines share, or a bucket. */
export interface RunStorage {
  /** Whether reading means to ask another machine over a network. */
  readonly isFar: boolean
  /** Opens a segment of its own for one writer. */
  write(name: string): SegmentWriter
  /** Reads a part of a segment. */
  read(segment: string, offset: number, size: number): Promise<Buffer>
  /** Reads it while everything else waits, for trees that are looked into where nothing can wait. */
  readNow(segment: string, offset: number, size: number): Buffer
}

/** A segment that one process writes. */
export interface SegmentWriter extends AsyncDisposable {
  /** Gives where the bytes lie, once they are durable. */
  append(bytes: Buffer): Promise<{ readonly segment: string; readonly offset: number }>
}

/** The storage of an address: `s3://BUCKET/PREFIX`, or a folder. */
export async function openStorage(address: string, directory = '.'): Promise<RunStorage> {
  if (address.startsWith('s3://')) {
    const { openBucket } = await import('./bucket.ts')
    return openBucket(address)
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(address)) {
    throw new SettingError(`--segments ${address}: name a folder, or s3://BUCKET/PREFIX`)
  }
  return openFolder(resolve(directory, address))
}

/** The frame of a tree that is pointed to. */
export async function follow(storage: RunStorage, pointer: Pointer): Promise<Buffer> {
  checkPlace(`tree ${pointer.id}`, pointer)
  const { segment, offset, size } = pointer
  const frame = await storage.read(segment, offset, size)
  checkPointed(pointer, frame)
  return frame
}

/** Reads it while everything else waits. */
export function followNow(storage: RunStorage, pointer: Pointer): Buffer {
  checkPlace(`tree ${pointer.id}`, pointer)
  const { segment, offset, size } = pointer
  const frame = storage.readNow(segment, offset, size)
  checkPointed(pointer, frame)
  return frame
}
