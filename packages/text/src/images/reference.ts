import { type ImageKind, readImageHeader } from './header.ts'
import { ImageRefusedError, type ImageSize } from './layout.ts'

/** An image without its bytes: what names it, and what its header says. */
export interface ImageFacts extends ImageSize {
  /** SHA-256 of the bytes, in hexadecimal. */
  readonly digest: string
  readonly kind: ImageKind
  /** How many bytes the file has. */
  readonly bytes: number
  /** How EXIF wants it turned; 1 as it is stored. Width and height are those after the turn. */
  readonly orientation: number
}

/** An image as it stands in messages once its bytes are kept elsewhere: in the place of an address. */
export function formatReference({
  digest,
  kind,
  width,
  height,
  bytes,
  orientation,
}: ImageFacts): string {
  const turn = orientation === 1 ? '' : `&orientation=${orientation}`
  return `image:${digest}.${kind}?width=${width}&height=${height}&bytes=${bytes}${turn}`
}

const pattern =
  /^image:([0-9a-f]{64})\.(png|jpeg|webp|gif)\?width=(\d{1,5})&height=(\d{1,5})&bytes=(\d{1,9})(?:&orientation=([2-8]))?$/

/** What such a reference says; undefined for any other address. */
export function parseReference(url: string): ImageFacts | undefined {
  const [, digest, kind, width, height, bytes, orientation = '1'] = pattern.exec(url) ?? []
  if (digest === undefined) return undefined
  return {
    digest,
    kind: kind as ImageKind,
    width: Number(width),
    height: Number(height),
    bytes: Number(bytes),
    orientation: Number(orientation),
  }
}

/** The bytes of a data URL; undefined for any other address. What is no base64 is refused. */
export function dataUrlBytes(url: string): Uint8Array | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma < 0 || !/;base64$/i.test(url.slice(0, comma).trimEnd()))
    throw new ImageRefusedError('a data URL that is not in base64')
  const bytes = decoded(url.slice(comma + 1))
  if (bytes.length === 0) throw new ImageRefusedError('a data URL without bytes')
  return bytes
}

function decoded(base64: string): Uint8Array {
  let text: string
  try {
    text = atob(base64)
  } catch (cause) {
    throw new ImageRefusedError('a data URL whose base64 is damaged', { cause })
  }
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** The size of an image by its address: a reference, or a data URL whose header is read. */
export function sizeAt(url: string): ImageSize {
  const known = parseReference(url)
  if (known) return known
  const bytes = dataUrlBytes(url)
  if (bytes) return readImageHeader(bytes)
  throw new ImageRefusedError(`an image whose bytes are not here: ${url.slice(0, 80)}`)
}
