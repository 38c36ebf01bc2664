import { ImageRefusedError, type ImageSize } from './layout.ts'

/** The kinds of image that are read. */
export type ImageKind = 'png' | 'jpeg' | 'webp' | 'gif'

/** What an image's header says, without decoding a pixel. */
export interface ImageHeader extends ImageSize {
  readonly kind: ImageKind
  /** Pixels as they are stored, before the turn that EXIF asks for. */
  readonly stored: ImageSize
  /** How EXIF wants it turned, 1 to 8; 1 as it is stored. */
  readonly orientation: number
  /** Whether it has several frames: models see the first. */
  readonly isAnimated: boolean
}

/** How many segments of a JPEG, or chunks of another file, are looked at before its size has to be known. */
const mostParts = 4096

/** Reads kind and size of an image from its first bytes. What is no such image is refused, with what was found. */
export function readImageHeader(bytes: Uint8Array): ImageHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = readers.find(({ isKind }) => isKind(bytes))
  if (!found)
    throw new ImageRefusedError(
      `not an image that is read (PNG, JPEG, WebP, GIF): ${describeStart(bytes)}`,
    )
  try {
    return checked(found.read(view))
  } catch (cause) {
    if (cause instanceof RangeError)
      throw new ImageRefusedError(`a ${found.kind} file that is cut before its size`, { cause })
    throw cause
  }
}

function checked(header: ImageHeader): ImageHeader {
  const { kind, width, height } = header
  if (width < 1 || height < 1)
    throw new ImageRefusedError(`a ${kind} file of ${width} x ${height} pixels`)
  return header
}

function describeStart(bytes: Uint8Array): string {
  const start = text(bytes, 0, Math.min(bytes.length, 256)).trimStart()
  if (/^(?:<\?xml|<!doctype svg|<svg)/i.test(start))
    return 'SVG is refused, since it is a program and not pixels'
  const hex = Array.from(bytes.subarray(0, 8), byte => byte.toString(16).padStart(2, '0'))
  return bytes.length === 0 ? 'it is empty' : `it begins with ${hex.join(' ')}`
}

interface Reader {
  readonly kind: ImageKind
  isKind(bytes: Uint8Array): boolean
  read(view: DataView): ImageHeader
}

const text = (bytes: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...bytes.subarray(from, to))

const readers: readonly Reader[] = [
  { kind: 'png', isKind: bytes => text(bytes, 0, 8) === '\x89PNG\r\n\x1a\n', read: readPng },
  { kind: 'jpeg', isKind: bytes => text(bytes, 0, 3) === '\xff\xd8\xff', read: readJpeg },
  {
    kind: 'webp',
    isKind: bytes => text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP',
    read: readWebp,
  },
  { kind: 'gif', isKind: bytes => /^GIF8[79]a$/.test(text(bytes, 0, 6)), read: readGif },
]

/** An image that stands as it is stored. */
function upright(kind: ImageKind, stored: ImageSize, isAnimated = false): ImageHeader {
  return { kind, ...stored, stored, orientation: 1, isAnimated }
}

/** The orientations that lie on their side. */
const sideways = (orientation: number): boolean => orientation >= 5

function turned(
  kind: ImageKind,
  stored: ImageSize,
  {
    orientation,
    isAnimated = false,
  }: { readonly orientation: number; readonly isAnimated?: boolean },
): ImageHeader {
  const size = sideways(orientation) ? { width: stored.height, height: stored.width } : stored
  return { kind, ...size, stored, orientation, isAnimated }
}

const tagAt = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map(offset => view.getUint8(at + offset)))

function readPng(view: DataView): ImageHeader {
  if (tagAt(view, 12) !== 'IHDR') throw new ImageRefusedError('a PNG file without its header')
  const stored = { width: view.getUint32(16), height: view.getUint32(20) }
  let orientation = 1
  let isAnimated = false
  for (let at = 8, part = 0; part < mostParts && at + 8 <= view.byteLength; part++) {
    const [length, tag] = [view.getUint32(at), tagAt(view, at + 4)]
    if (tag === 'IDAT' || tag === 'IEND') break
    if (tag === 'acTL') isAnimated = true
    if (tag === 'eXIf') orientation = readOrientation(stretch(view, at + 8, length))
    at += 12 + length
  }
  return turned('png', stored, { orientation, isAnimated })
}

/** A stretch of a file, cut where the file ends. */
function stretch(view: DataView, at: number, length: number): DataView {
  const from = Math.min(at, view.byteLength)
  return new DataView(view.buffer, view.byteOffset + from, Math.min(length, view.byteLength - from))
}

/** Markers that begin a frame and so hold its size; four numbers among them mean something else. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

/** Markers that stand alone, without a length. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)

function readJpeg(view: DataView): ImageHeader {
  let orientation = 1
  for (let at = 2, part = 0; part < mostParts; part++) {
    if (view.getUint8(at) !== 0xff)
      throw new ImageRefusedError(`a jpeg file that is damaged at byte ${at}`)
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) at++
    else if (isBare(marker)) at += 2
    else {
      const length = view.getUint16(at + 2)
      if (length < 2) throw new ImageRefusedError(`a jpeg file that is damaged at byte ${at}`)
      if (isFrame(marker))
        return turned(
          'jpeg',
          { width: view.getUint16(at + 7), height: view.getUint16(at + 5) },
          { orientation },
        )
      if (marker === 0xe1 && length > 14 && tagAt(view, at + 4) === 'Exif')
        orientation = readOrientation(stretch(view, at + 10, length - 8))
      at += 2 + length
    }
  }
  throw new ImageRefusedError(`a jpeg file without a size in its first ${mostParts} segments`)
}

/** The tag of EXIF that holds the orientation. */
const orientationTag = 0x0112

/** The orientation in a block of TIFF, 1 if it has none or is damaged, as readers of images take it. */
function readOrientation(tiff: DataView): number {
  try {
    const isLittle = tiff.getUint16(0) === 0x4949
    const start = tiff.getUint32(4, isLittle)
    const entries = tiff.getUint16(start, isLittle)
    for (let entry = 0; entry < entries; entry++) {
      const at = start + 2 + 12 * entry
      if (tiff.getUint16(at, isLittle) !== orientationTag) continue
      const value = tiff.getUint16(at + 8, isLittle)
      return value >= 1 && value <= 8 ? value : 1
    }
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
  }
  return 1
}

function readGif(view: DataView): ImageHeader {
  const stored = { width: view.getUint16(6, true), height: view.getUint16(8, true) }
  return upright('gif', stored, countGifFrames(view) > 1)
}

/** Frames of a GIF as far as its bytes are there, two at most: more is not asked. */
function countGifFrames(view: DataView): number {
  const flags = view.getUint8(10)
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0)
  const skipBlocks = (): void => {
    while (at < view.byteLength && view.getUint8(at) !== 0) at += 1 + view.getUint8(at)
    at++
  }
  let frames = 0
  for (let part = 0; part < mostParts && frames < 2 && at < view.byteLength; part++) {
    const kind = view.getUint8(at)
    if (kind === 0x21) at += 2
    else if (kind === 0x2c && at + 10 < view.byteLength) {
      frames++
      const local = view.getUint8(at + 9)
      at += 11 + (local & 0x80 ? 3 * 2 ** ((local & 7) + 1) : 0)
    } else break
    skipBlocks()
  }
  return frames
}

function readWebp(view: DataView): ImageHeader {
  const tag = tagAt(view, 12)
  if (tag === 'VP8 ') {
    const side = (at: number): number => view.getUint16(at, true) & 0x3fff
    return upright('webp', { width: side(26), height: side(28) })
  }
  if (tag === 'VP8L') {
    const bits = view.getUint32(21, true)
    return upright('webp', { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 })
  }
  if (tag === 'VP8X') return readExtendedWebp(view)
  throw new ImageRefusedError(`a webp file that begins with ${JSON.stringify(tag)}`)
}

function readExtendedWebp(view: DataView): ImageHeader {
  const side = (at: number): number => 1 + view.getUint16(at, true) + (view.getUint8(at + 2) << 16)
  const flags = view.getUint8(20)
  let orientation = 1
  for (
    let at = 12, part = 0;
    flags & 0x08 && part < mostParts && at + 8 <= view.byteLength;
    part++
  ) {
    const length = view.getUint32(at + 4, true)
    if (tagAt(view, at) === 'EXIF')
      orientation = readOrientation(withoutMark(stretch(view, at + 8, length)))
    at += 8 + length + (length % 2)
  }
  return turned(
    'webp',
    { width: side(24), height: side(27) },
    { orientation, isAnimated: (flags & 0x02) !== 0 },
  )
}

/** Some writers begin the block with the mark that JPEG has before it. */
function withoutMark(block: DataView): DataView {
  const isMarked = block.byteLength > 6 && tagAt(block, 0) === 'Exif'
  return isMarked ? stretch(block, 6, block.byteLength - 6) : block
}
