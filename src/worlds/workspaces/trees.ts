import { spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { WorkspaceError } from './contract.ts'

/** Copies a folder; if the file system can, blocks are shared until one of the two changes them. */
export async function copyTree(from: string, to: string): Promise<void> {
  const words = process.platform === 'linux' ? ['-a', '--reflink=auto'] : ['-a']
  const complaint = await complaintOf('cp', [...words, `${from}/.`, to])
  if (complaint !== undefined) {
    throw new WorkspaceError(`the workspace could not be copied: ${complaint}`)
  }
}

/**
 * Removes a folder that commands have worked in. They may have taken their owner's permissions away, or
 * nested folders deeper than a path can tell; the programs of the system can remove those as well.
 */
export async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    await complaintOf('chmod', ['-R', 'u+rwX', folder])
    const complaint = await complaintOf('rm', ['-rf', folder])
    if (complaint === undefined) return
    throw new WorkspaceError(`the workspace could not be removed: ${complaint}`)
  }
}

/** What a program complained of that did not succeed; undefined for one that did. */
async function complaintOf(program: string, words: readonly string[]): Promise<string | undefined> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => (complaint = `${complaint}${chunk}`.slice(0, 500)))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return code === 0 ? undefined : complaint.trim()
}
