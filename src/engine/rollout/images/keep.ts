import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { ImagePart } from '@espalier/text'
import {
  dataUrlBytes,
  formatReference,
  type ImageFacts,
  ImageRefusedError,
  parseReference,
  readImageHeader,
} from '@espalier/text/images'
import type { ImageStore } from '../../../base/core/image.ts'
import { readBounded } from '../../../base/core/process/bounded.ts'

/** Which images attempts may see, and where their bytes are kept. */
export interface ImageSettings {
  readonly store: ImageStore
  /** Images that are shown at one time; the oldest of more are left out. @default 32 */
  readonly max: number
  /** Pixels of one image. @default 16777216 */
  readonly pixels: number
  /** Hosts that images are fetched from; any other address is refused. @default none */
  readonly from: readonly string[]
}

/** Bytes that one image may have. */
const mostBytes = 20 * 2 ** 20
/** Pixels of a side, as much as any model's own processor takes. */
const longestSide = 65_535
/** Seconds that fetching one may take. */
const mostSeconds = 30

/** What stands for an image whose bytes are kept. */
export type KeptImage = Extract<ImagePart, { type: 'image_url' }>

/** A reference to an image whose bytes are kept now; one that is a reference has been kept before. */
export async function keepImage(
  part: ImagePart,
  { store, from, pixels }: ImageSettings,
  signal: AbortSignal,
): Promise<KeptImage> {
  const address = addressOf(part)
  const known = parseReference(address)
  const bytes = known ? undefined : await bytesAt(address, from, signal)
  const facts = known ?? imageFacts(bytes!)
  const { width, height } = facts
  if (width * height > pixels)
    throw new ImageRefusedError(`${width} x ${height} pixels; at most ${pixels} in all`)
  if (Math.max(width, height) > longestSide)
    throw new ImageRefusedError(`${width} x ${height} pixels; at most ${longestSide} on a side`)
  if (bytes) await store.keep(facts, bytes)
  return { type: 'image_url', image_url: { url: formatReference(facts) } }
}

/** That of an image that somebody outside sent: only bytes, or an address on a host that is allowed. */
export async function keepSentImage(
  part: ImagePart,
  settings: ImageSettings,
  signal: AbortSignal,
): Promise<KeptImage> {
  const address = addressOf(part)
  if (/^(?:data|https?):/i.test(address)) return await keepImage(part, settings, signal)
  throw new ImageRefusedError(`${address.slice(0, 120)}: images are sent as data URLs`)
}

/** What an image is, from its bytes; throws an `ImageRefusedError` if they are too many, or none. */
export function imageFacts(bytes: Uint8Array): ImageFacts {
  if (bytes.length > mostBytes)
    throw new ImageRefusedError(`${bytes.length} bytes; at most ${mostBytes} are read`)
  const { kind, width, height, orientation } = readImageHeader(bytes)
  const digest = createHash('sha256').update(bytes).digest('hex')
  return { digest, kind, width, height, orientation, bytes: bytes.length }
}

/** Where an image is named, whichever form its part has. */
function addressOf(part: ImagePart): string {
  const address = part.type === 'image_url' ? part.image_url?.url : addressIn(part.source)
  if (typeof address === 'string') return address
  throw new ImageRefusedError('a part that says neither where the image is nor what')
}

function addressIn(source: Extract<ImagePart, { type: 'image' }>['source'] | undefined) {
  if (source?.type !== 'base64') return source?.url
  return `data:${source.media_type};base64,${source.data}`
}

async function bytesAt(
  address: string,
  from: readonly string[],
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (/^data:/i.test(address) && address.length > mostBytes * 1.4)
    throw new ImageRefusedError(`a data URL of ${address.length} characters`)
  const given = dataUrlBytes(address)
  if (given) return given
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === 'file:') return await readWithin(fileURLToPath(url))
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb && from.includes(url.host)) return await fetchWithin(url, signal)
  const allowed = from.length === 0 ? 'none' : from.join(', ')
  throw new ImageRefusedError(
    `${address.slice(0, 120)} is not fetched: images come as data URLs or files, or from hosts that \`--images from=HOST\` allows (${allowed})`,
  )
}

async function readWithin(path: string): Promise<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    (cause: Error) => {
      throw new ImageRefusedError(`a file that cannot be read: ${cause.message}`, { cause })
    },
  )
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new ImageRefusedError(`${path} is no file`)
    if (stat.size > mostBytes) throw new ImageRefusedError(`${path} has ${stat.size} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** An image from an allowed host; redirects lead elsewhere and are not followed. */
async function fetchWithin(url: URL, signal: AbortSignal): Promise<Uint8Array> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(mostSeconds * 1000)])
  try {
    const answer = await fetch(url, { signal: limit, redirect: 'error' })
    if (!answer.ok) throw new Error(`status ${answer.status}`)
    return await readBounded(answer.body, mostBytes)
  } catch (cause) {
    signal.throwIfAborted()
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ImageRefusedError(`${url.host} gave no image: ${why}`, { cause })
  }
}
