import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { withoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Harness, OpenedHarness } from '../contract.ts'
import { findHere } from './here.ts'

/** Where harnesses are installed that this machine did not have. */
const cache = (): string =>
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'espalier', 'harnesses')

/** Finds a harness on this machine, or installs it for the user, after saying so. */
export async function installHere(
  harness: Harness,
  tell: (text: string) => void,
): Promise<Pick<OpenedHarness, 'program' | 'shown'>> {
  const { program, from } = harness.install
  const folder = join(cache(), harness.name)
  const bin = 'npm' in from ? join(folder, 'node_modules', '.bin') : join(folder, 'bin')
  const paths = [...(process.env.PATH ?? '').split(delimiter), bin]
  const found = findHere(program, paths)
  if (found) return found
  tell(`${harness.name} is not on this machine: installing it into ${folder}`)
  await mkdir(cache(), { recursive: true })
  // A Python environment knows its own path, so it cannot be made elsewhere and moved.
  const making = 'npm' in from ? `${folder}.${process.pid}` : folder
  try {
    for (const words of linesFor(from, making)) await runHere(words)
    if (making !== folder && !existsSync(folder)) await rename(making, folder)
  } catch (cause) {
    await rm(making, { recursive: true, force: true })
    throw new Error(`${harness.name} could not be installed: ${(cause as Error).message}`)
  }
  const installed = findHere(program, paths)
  if (installed) return installed
  throw new Error(`the package of ${harness.name} brought no program called ${program}`)
}

function linesFor(
  from: Harness['install']['from'],
  folder: string,
): readonly (readonly string[])[] {
  if ('npm' in from) {
    const quiet = ['--no-audit', '--no-fund', '--no-save']
    return [['npm', 'install', ...quiet, '--prefix', folder, from.npm]]
  }
  return [
    ['python3', '-m', 'venv', folder],
    [join(folder, 'bin', 'pip'), 'install', '--quiet', ...from.pip],
  ]
}

/** The shell line that installs a harness in a sandbox elsewhere. */
export function installLine({ install: { from } }: Harness): string {
  if ('npm' in from) return `npm install --global --no-audit --no-fund ${from.npm}`
  const packages = from.pip.join(' ')
  return `pip install --quiet ${packages} || pip install --quiet --break-system-packages ${packages}`
}

async function runHere([program, ...words]: readonly string[]): Promise<void> {
  const child = spawn(program!, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaints = ''
  child.stderr.on('data', (chunk: Buffer) => (complaints = `${complaints}${chunk}`.slice(-2000)))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code === 0) return
  throw new Error(
    `${program} ${words[0]} ended with ${code}: ${withoutSecrets(complaints.trim().slice(-500))}`,
  )
}
