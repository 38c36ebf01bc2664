import { existsSync } from 'node:fs'
import { commandLine } from '../../base/core/names/program-name.ts'
import { lockFile } from './lock.ts'
import { journalMagic, readJournal } from './read-journal.ts'
import { type RunManifest, readManifest, runPaths, sizeOf, writeManifest } from './run-folder.ts'

/** The journal of a finished run holds less than it did when the run was finished. */
export class CutJournalError extends Error {
  override name = 'CutJournalError'
  /** Whether `resume` rolls what is missing. */
  readonly canBeRolled: boolean

  constructor(folder: string, manifest: RunManifest, cut: Cut) {
    const { journal } = runPaths(folder)
    const problem = cut.end === undefined ? 'is missing' : `ends at byte ${cut.end} of ${cut.of}`
    super(
      `${folder} is damaged: it was finished, but ${journal} ${problem}. ${remedy(folder, manifest, cut)}`,
    )
    this.canBeRolled = rolledAgain.includes(manifest.kind)
  }
}

/** Where whole frames end in a journal, if it is there, and where they should. */
interface Cut {
  readonly end?: number
  readonly of: number
}

/** The runs whose missing groups `resume` rolls: their policy is the same for all of them. */
const rolledAgain: readonly string[] = ['roll', 'eval']

function remedy(folder: string, { kind }: RunManifest, { end }: Cut): string {
  const again = rolledAgain.includes(kind)
    ? `\`${commandLine('resume', folder)}\` rolls what is missing`
    : kind === 'train'
      ? 'What is missing was sampled by weights of earlier steps and cannot be rolled again; its checkpoints do not depend on it'
      : 'What is missing cannot be rolled again: make the run anew in another folder'
  if (end === undefined) return again
  const { manifest } = runPaths(folder)
  return `${again}. To read what is left as it is, make the status in ${manifest} "stopped"`
}

/** Refuses a finished run whose journal does not reach as far as it did. */
export function refuseCut(folder: string, manifest: RunManifest, end: number): void {
  const cut = cutAt(folder, manifest, end)
  if (cut) throw cut
}

/**
 * What is wrong with a finished run whose journal does not reach as far as it did. `end` is the byte that its
 * whole frames reach. A run that is not finished may end anywhere: its writer is at work, or died.
 */
export function cutAt(
  folder: string,
  manifest: RunManifest,
  end: number,
): CutJournalError | undefined {
  const cut = cutOf(folder, manifest, end)
  return cut && new CutJournalError(folder, manifest, cut)
}

function cutOf(folder: string, manifest: RunManifest, end: number): Cut | undefined {
  if (manifest.status !== 'finished') return undefined
  const { journal, lock } = runPaths(folder)
  const size = sizeOf(journal)
  const least = journalMagic.length
  // Without a known length the file itself must end with a whole frame, unless somebody is adding to it.
  const expected = manifest.journalBytes ?? (existsSync(lock) ? least : Math.max(size ?? 0, least))
  if (size === undefined) return { of: expected }
  const reached = Math.max(end, Math.min(size, least))
  return reached < expected ? { end: reached, of: expected } : undefined
}

/**
 * Reads every frame of a finished run: says whether and how its journal is cut. Other damage is thrown,
 * with its place.
 */
export async function findCut(
  folder: string,
  manifest: RunManifest,
): Promise<CutJournalError | undefined> {
  let end = 0
  for await (const { place } of readJournal(runPaths(folder).journal)) {
    end = place.offset + place.size
  }
  return cutAt(folder, manifest, end)
}

/** Takes back that a run is finished, so that what its journal lacks is rolled. */
export async function reopenCut(folder: string): Promise<void> {
  await using _lock = await lockFile(runPaths(folder).lock)
  const { finished: _finished, ...manifest } = await readManifest(folder)
  await writeManifest(folder, { ...manifest, status: 'stopped', reason: 'its journal was cut off' })
}
