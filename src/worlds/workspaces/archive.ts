import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { ImpossibleError, WorkspaceError } from './contract.ts'

/** A folder as a tar archive; throws if it is larger than `most` bytes. */
export async function packFolder(
  folder: string,
  { most, signal }: { readonly most: number; readonly signal: AbortSignal },
): Promise<Buffer> {
  const child = spawn('tar', ['-c', '-C', folder, '.'], {
    signal,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const complaint = complaintOf(child.stderr)
  const parts: Buffer[] = []
  let size = 0
  child.stdout.on('data', (part: Buffer) => {
    size += part.length
    if (size <= most) parts.push(part)
    else child.kill('SIGKILL')
  })
  const code = await ended(child)
  if (size > most) throw new WorkspaceError(`${folder} has more than ${most} bytes`)
  if (code !== 0) throw new WorkspaceError(`${folder} could not be packed: ${complaint()}`)
  return Buffer.concat(parts)
}

/** Unpacks a tar archive into a folder; if it is not one, throws with tar's message. */
export async function unpackFolder(
  archive: Buffer,
  folder: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  await mkdir(folder, { recursive: true })
  const words = ['-x', '--no-same-owner', '-C', folder]
  const child = spawn('tar', words, { signal, stdio: ['pipe', 'ignore', 'pipe'] })
  const complaint = complaintOf(child.stderr)
  child.stdin.on('error', () => undefined)
  child.stdin.end(archive)
  if ((await ended(child)) !== 0) throw new ImpossibleError(`not a tar archive: ${complaint()}`)
}

function complaintOf(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.on('data', (chunk: Buffer) => (text = `${text}${chunk}`.slice(0, 500)))
  return () => text.trim()
}

function ended(child: ReturnType<typeof spawn>): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
}
