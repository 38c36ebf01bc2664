import { cp } from 'node:fs/promises'
import { basename } from 'node:path'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { openJournal } from '../store/journal.ts'
import { openToRead, readPlaces } from '../store/read-journal.ts'
import {
  createRun,
  readManifest,
  runPaths,
  standingOf,
  writeManifest,
} from '../store/run-folder.ts'
import { isPointer } from '../store/segments/pointer.ts'
import { segmentsOf } from '../store/segments/segments.ts'

/** What was packed. */
export interface Packed {
  /** Trees that lay in segments. */
  readonly trees: number
  /** Bytes of the journal that holds everything. */
  readonly bytes: number
}

/** Copies a run into a folder of its own, with one journal that holds the trees of all its segments. */
export async function packRun(run: string, out: string): Promise<Packed> {
  const manifest = await readManifest(run)
  if ((await standingOf(run, manifest)) === 'running') {
    throw new SettingError(`${run} is being written: pack it when it has ended`)
  }
  const { segments: _, ...config } = manifest.config
  const whole = { ...manifest, config }
  await using _lock = await createRun(out, whole)
  await copyRest(run, out)
  const packed = await joinJournal(run, out, segmentsOf(run, manifest))
  await writeManifest(out, whole)
  return packed
}

/** What lies beside the journal, checkpoints too; what belongs to one writer is left out. */
async function copyRest(run: string, out: string): Promise<void> {
  const { manifest, journal, index, lock } = runPaths('')
  const left = new Set([manifest, journal, index, lock, 'segments'].map(path => basename(path)))
  const filter = (path: string): boolean => !left.has(basename(path))
  await cp(run, out, { recursive: true, filter })
}

async function joinJournal(
  run: string,
  out: string,
  segments: ReturnType<typeof segmentsOf>,
): Promise<Packed> {
  const path = runPaths(run).journal
  await using journal = await openJournal(runPaths(out).journal)
  const handle = await openToRead(path)
  let trees = 0
  try {
    for await (const { bytes, isTorn } of handle ? readPlaces(handle, path) : []) {
      if (isTorn) break
      if (isPointer(bytes)) trees++
      // The bytes are read over by the next ones.
      await journal.append(Buffer.from(await segments.whole(bytes)))
    }
  } finally {
    await handle?.close()
  }
  await journal.sync()
  return { trees, bytes: journal.size }
}
