import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// What the system's own folder is called differs by system; programs that tests start read it too.
const names = ['TMPDIR', 'TEMP', 'TMP']

let folder: string | undefined

/** Gives a test run a temporary folder of its own, so that no test can leave anything behind. */
export function setup(): void {
  folder = mkdtempSync(join(tmpdir(), 'espalier-tests-'))
  for (const name of names) process.env[name] = folder
}

/** Removes the folder with all that tests, and programs they started, left in it. */
export function teardown(): void {
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
