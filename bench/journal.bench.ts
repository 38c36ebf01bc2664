// A long run's journal: seconds until its groups are listed, with its index and without, against
// reading its bytes. ESPALIER_JOURNAL_GB scales it (1 unless told; the promise is about 10).
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRunReader } from '../dist/store.js'
import { runPaths } from '../src/run/store/run-folder.ts'
import { writeLongRun } from './long-run.ts'

const GIGABYTES = Number(process.env.ESPALIER_JOURNAL_GB ?? 1)
/** Listing 10 GB takes less; a listing is not longer for what its trees hold. */
const MOST_SECONDS = 2

async function secondsToList(folder: string, groups: number): Promise<number> {
  const start = performance.now()
  await using reader = await openRunReader(folder)
  if (reader.groupCount !== groups) throw new Error(`${reader.groupCount} of ${groups} groups`)
  return (performance.now() - start) / 1000
}

/** The floor of reading everything: its bytes, and nothing done with them. */
async function secondsToRead(path: string): Promise<number> {
  const start = performance.now()
  const handle = await open(path)
  const chunk = Buffer.alloc(1 << 20)
  while ((await handle.read(chunk, 0, chunk.length)).bytesRead > 0);
  await handle.close()
  return (performance.now() - start) / 1000
}

/** Lists a long run five times with its index, once without, and once more with the one then made. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-'))
  try {
    const groups = await writeLongRun(folder, GIGABYTES)
    const { journal, index } = runPaths(folder)
    const withIndex: number[] = []
    for (let turn = 0; turn < 5; turn++) withIndex.push(await secondsToList(folder, groups))
    const read = await secondsToRead(journal)
    await rm(index)
    const without = await secondsToList(folder, groups)
    const madeAnew = await secondsToList(folder, groups)
    const figures = {
      gigabytes: statSync(journal).size / 1e9,
      groups,
      indexMegabytes: statSync(index).size / 1e6,
      secondsWithIndex: withIndex.sort((a, b) => a - b),
      secondsWithout: without,
      secondsMadeAnew: madeAnew,
      secondsToReadBytes: read,
      ratioToReading: withIndex[2]! / read,
    }
    if (!json) console.log(figures)
    if (withIndex[2]! > MOST_SECONDS) {
      throw new Error(`Listing took ${withIndex[2]!.toFixed(2)} s; ${MOST_SECONDS} s are promised.`)
    }
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
