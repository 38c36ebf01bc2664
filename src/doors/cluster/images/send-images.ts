import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SegmentWriter } from '../../../run/store/segments/storage.ts'
import type { ImageTable } from './image-table.ts'

/** Where a worker keeps the images of a run, and where it sends them. */
export interface ImageSending {
  /** All threads of the worker keep them here. */
  readonly folder: string
  readonly table: Pick<ImageTable, 'lacking' | 'put'>
  /** Takes their bytes, if the run has segments. */
  readonly segment?: SegmentWriter | undefined
}

/** Images that are read at one time. */
const together = 4

/**
 * Sends the images that were kept since the last time, each unless some worker has. Resolves when all that were
 * kept before the call are there, so that a result is never there before its images.
 */
export function makeImageSender(sending: ImageSending): () => Promise<void> {
  const sent = new Set<string>()
  let last = Promise.resolve()
  return () => {
    const sendNew = () => sendAll(sending, sent)
    const next = last.then(sendNew, sendNew)
    last = next
    return next
  }
}

async function sendAll({ folder, table, segment }: ImageSending, sent: Set<string>): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  const fresh = new Map<string, string>()
  for (const name of names) {
    // Other files are drafts of images that are being kept.
    const [, digest] = /^([0-9a-f]{64})\.[a-z]+$/.exec(name) ?? []
    if (digest !== undefined && !sent.has(digest)) fresh.set(digest, name)
  }
  if (fresh.size === 0) return
  const lacking = await table.lacking([...fresh.keys()])
  for (let at = 0; at < lacking.length; at += together) {
    const batch = lacking.slice(at, at + together)
    await Promise.all(batch.map(each => send(each, join(folder, fresh.get(each)!))))
  }
  for (const digest of fresh.keys()) sent.add(digest)

  async function send(digest: string, path: string): Promise<void> {
    const bytes = await readFile(path)
    const place = segment ? await segment.append(bytes) : { segment: null, offset: null }
    const image = { digest, size: bytes.length, bytes: segment ? null : bytes, ...place }
    if (await table.put(image)) return
    if ((await table.lacking([digest])).length === 0) return
    throw new Error('the database is full of images that the coordinator has not taken yet')
  }
}
