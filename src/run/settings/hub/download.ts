import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { getFollowed, type Hub, refusal } from './request.ts'

/** A file of a model as its hub describes it. */
export interface Blob {
  readonly name: string
  readonly size: number
  /** The hash of its content, which is its name in the cache: SHA-256 of large files, Git's SHA-1 of others. */
  readonly hash: string
}

/** How a file is downloaded. */
export interface DownloadOptions extends Hub {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes that are there, those of an earlier try included. */
  readonly onBytes?: (bytes: number) => void
}

/** Tries of one file; each goes on where the last was cut off. */
const mostTries = 5

/**
 * Downloads a file to a path, which appears when the file is whole and has the hash it should have. What a cut
 * download left beside it, under `.incomplete`, is gone on with.
 */
export async function download(
  address: string,
  { blob, path }: { readonly blob: Blob; readonly path: string },
  options: DownloadOptions,
): Promise<void> {
  const part = `${path}.incomplete`
  let problem: unknown
  for (let tries = 0; tries < mostTries; tries++) {
    options.signal?.throwIfAborted()
    const before = await sizeOf(part)
    try {
      if (before < blob.size) await fetchRest(address, { blob, part, before }, options)
      const hash = await hashOf(part, blob)
      if (hash === blob.hash) {
        await rename(part, path)
        return
      }
      await rm(part, { force: true })
      problem = new Error(`${blob.name} is damaged: its hash is ${hash}, not ${blob.hash}`)
    } catch (cause) {
      options.signal?.throwIfAborted()
      if (isFinal(cause)) throw cause
      problem = cause
      // One that brought nothing would go on like this.
      if ((await sizeOf(part)) === before && tries > 0) break
    }
  }
  throw problem
}

/** Errors that another try would only repeat. */
class FinalError extends Error {}

function isFinal(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException
  return cause instanceof FinalError || ['ENOSPC', 'EACCES', 'EROFS', 'EDQUOT'].includes(code ?? '')
}

interface Rest {
  readonly blob: Blob
  readonly part: string
  /** Bytes that are there. */
  readonly before: number
}

async function fetchRest(
  address: string,
  { blob, part, before }: Rest,
  options: DownloadOptions,
): Promise<void> {
  const { signal, onBytes } = options
  const answer = await getFollowed(address, options, {
    ...(before > 0 && { headers: { range: `bytes=${before}-` } }),
    ...(signal && { signal }),
  })
  const { status, body } = answer
  if (status !== 200 && status !== 206) {
    await body.dump()
    const { message } = refusal(answer)
    throw status >= 500 || status === 429 ? new Error(message) : new FinalError(message)
  }
  // Whoever ignores the range sends all of it again.
  let done = status === 206 ? before : 0
  const file = await open(part, done > 0 ? 'a' : 'w')
  try {
    for await (const chunk of body) {
      done += chunk.length
      if (done > blob.size)
        throw new FinalError(`${blob.name} is longer than the ${blob.size} bytes it should have`)
      await file.writeFile(chunk as Buffer)
      onBytes?.(done)
    }
  } catch (cause) {
    throw spaceless(cause, part, blob)
  } finally {
    await file.close()
  }
  if (done < blob.size) throw new Error(`${blob.name} was cut off at ${done} of ${blob.size} bytes`)
}

function spaceless(cause: unknown, part: string, { name, size }: Blob): unknown {
  if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') return cause
  const error = new FinalError(
    `the disk is full: ${name} has ${size} bytes. What there is stays at ${part} and is gone on with when there is room`,
    { cause },
  )
  return error
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

/** Git's hash counts the size first; that of large files is of their bytes alone. */
async function hashOf(path: string, { hash, size }: Blob): Promise<string> {
  const hashing: Hash =
    hash.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`)
  for await (const chunk of createReadStream(path)) hashing.update(chunk as Buffer)
  return hashing.digest('hex')
}
