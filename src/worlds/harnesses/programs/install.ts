import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { withoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Harness, OpenedHarness } from '../contract.ts'
import { findHere } from './here.ts'

/** Most seconds that installing one may take. */
export const installSeconds = 600

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

/** How a harness is installed in a sandbox elsewhere: in a folder of its own, which needs no rights. */
export function installLine({ install: { from } }: Harness) {
  const folder = '/var/tmp/espalier-harness'
  const [shown, bin] =
    'npm' in from
      ? [`npm install --no-audit --no-fund --prefix ${folder} ${from.npm}`, 'node_modules/.bin']
      : [`python3 -m venv ${folder} && ${folder}/bin/pip install ${from.pip.join(' ')}`, 'bin']
  return {
    shown,
    bin: `${folder}/${bin}`,
    install: `mkdir -p ${folder} && exec timeout -s KILL ${installSeconds} /bin/sh -c '${shown}' >&2`,
  }
}

async function runHere([program, ...words]: readonly string[]): Promise<void> {
  const timeout = 1000 * installSeconds
  const child = spawn(program!, words, { stdio: ['ignore', 'ignore', 'pipe'], timeout })
  let complaints = ''
  child.stderr.on('data', (chunk: Buffer) => (complaints = `${complaints}${chunk}`.slice(-2000)))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code === 0) return
  const how = code === null ? `did not end within ${installSeconds} s` : `ended with ${code}`
  throw new Error(`${program} ${words[0]} ${how}: ${withoutSecrets(complaints.trim().slice(-500))}`)
}
