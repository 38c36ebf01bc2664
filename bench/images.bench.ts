import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { missedOf } from './expectation.ts'

const run = promisify(execFile)
const attempts = 1000
/** What an image of a screen has, and nearly none. */
const sizes = { large: 370_000, small: 1000 }

/** Megabytes that a process holds: on its heap and beside it, and of the machine's memory. */
interface Held {
  readonly heap: number
  readonly resident: number
}

interface Crowd {
  readonly before: Held
  /** While all attempts wait for a sample, turn by turn. */
  readonly held: readonly Held[]
  /** The most of the machine's memory. */
  readonly peak: number
}

/** What attempts hold of the images that they see: nothing, so that large images cost what small ones do. */
export async function bench({ json }: { json: boolean }) {
  const large = await measureCrowd(sizes.large)
  const small = await measureCrowd(sizes.small)
  if (!json) {
    for (const [bytes, { held, peak }] of [
      [sizes.large, large],
      [sizes.small, small],
    ] as const) {
      const turns = held.map(({ heap }) => heap.toFixed(0)).join(', ')
      console.log(
        `${attempts} attempts at once, 3 images of ${bytes} bytes each: ${turns} MB held at turns 1 to 3, ${peak.toFixed(0)} MB resident at most`,
      )
    }
  }
  const missed = missedOf([
    { what: 'MB held for larger images', value: last(large) - last(small), atMost: 20 },
    { what: 'MB resident at most', value: large.peak, atMost: 600 },
  ])
  return { large, small, missed }
}

const last = ({ held }: Crowd): number => held.at(-1)!.heap

async function measureCrowd(bytes: number): Promise<Crowd> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-images-'))
  const program = fileURLToPath(new URL('./images/crowd.ts', import.meta.url))
  const words = ['--expose-gc', '--import', 'tsx', program, attempts, bytes, join(folder, 'run')]
  try {
    const { stdout } = await run(process.execPath, words.map(String))
    return JSON.parse(stdout) as Crowd
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
