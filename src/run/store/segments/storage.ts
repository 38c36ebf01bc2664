import { resolve } from 'node:path'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { openFolder } from './folder.ts'
import { checkPlace, checkPlaced, type SegmentPlace } from './pointer.ts'

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
  /** Removes a whole segment, if it is there. */
  remove(segment: string): Promise<void>
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

/** The frame that lies in a place. */
export async function follow(storage: RunStorage, place: SegmentPlace): Promise<Buffer> {
  checkPlace(`tree ${place.id}`, place)
  const { segment, offset, size } = place
  const frame = await storage.read(segment, offset, size)
  checkPlaced(place, frame)
  return frame
}

/** Removes segments of turns that nobody needs; one that cannot be removed stays. */
export async function removeTurns(storage: RunStorage, names: readonly string[]): Promise<void> {
  // Their names may come from a database.
  const own = names.filter(name => nameOfTurns.test(name))
  await Promise.allSettled(own.map(name => storage.remove(name)))
}

const nameOfTurns = /^[\w-]{1,80}\/[\w-]{1,100}-turns[\w-]{0,20}\.frames$/

/** Reads it while everything else waits. */
export function followNow(storage: RunStorage, place: SegmentPlace): Buffer {
  checkPlace(`tree ${place.id}`, place)
  const { segment, offset, size } = place
  const frame = storage.readNow(segment, offset, size)
  checkPlaced(place, frame)
  return frame
}
