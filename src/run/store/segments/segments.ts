import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { decodeFrame } from '../frame.ts'
import type { RunManifest } from '../run-folder.ts'
import { isPointer, type Pointer } from './pointer.ts'
import { follow, openStorage, type RunStorage } from './storage.ts'

/** The segments of a run, for whoever reads its journal. */
export interface Segments {
  /** The frame of a tree: these bytes, or those that they point to. */
  whole(bytes: Buffer): Promise<Buffer>
}

/** The segments of a run; their storage is opened with the first tree that lies there. */
export function segmentsOf(folder: string, { config, directory }: RunManifest): Segments {
  let opening: Promise<RunStorage> | undefined
  return {
    async whole(bytes) {
      if (!isPointer(bytes)) return bytes
      opening ??= openStorage(addressIn(folder, config.segments, directory))
      return await follow(await opening, decodeFrame(bytes, 0).header as Pointer)
    },
  }
}

/** Where the segments lie: as the run says, or beside its journal if they were copied there. */
function addressIn(folder: string, segments: unknown, directory = '.'): string {
  const beside = join(folder, 'segments')
  if (typeof segments !== 'string') return beside
  if (segments.startsWith('s3://')) return segments
  const named = resolve(directory, segments)
  return existsSync(named) ? named : beside
}
