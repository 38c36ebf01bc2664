/** Images as they stand in messages: type and bytes in base64. */
const dataImage = /data:image\/([a-z0-9.+-]+);base64,([A-Za-z0-9+/=]+)/g

/** Stands where an image was that could not be freed of what lies beside it. */
export const noImage = '[image left out]'

/**
 * Leaves out of every image in a text what cameras and programs write beside the picture: places,
 * times, devices, comments. The pictures stay as they are to the byte. An image in which that cannot be found is left
 * out, and counted: a model may write what only begins like one.
 */
export function withoutImageMetadata(text: string, count: () => void = () => {}): string {
  return text.replace(dataImage, (_, type: string, base64: string) => {
    try {
      const clean = Object.hasOwn(cleaners, type) ? cleaners[type] : undefined
      const bytes = clean?.(Buffer.from(base64, 'base64'))
      if (bytes) return `data:image/${type};base64,${bytes.toString('base64')}`
    } catch (cause) {
      if (!(cause instanceof BrokenImage || cause instanceof RangeError)) throw cause
    }
    count()
    return noImage
  })
}

type Clean = (image: Buffer) => Buffer

const cleaners: Readonly<Record<string, Clean>> = {
  jpeg: cleanJpeg,
  jpg: cleanJpeg,
  png: cleanPng,
  webp: cleanWebp,
}

/** An image that ends before its picture does. */
class BrokenImage extends Error {}

/** Markers of JPEG (ITU T.81, table B.1). */
const jpeg = { start: 0xd8, end: 0xd9, scan: 0xda, app: 0xe0, comment: 0xfe }
/** JFIF's and Adobe's segments say how colours are stored; of the others only a colour profile is kept. */
const keptApps = [jpeg.app, jpeg.app + 14]
const profile = 'ICC_PROFILE\0'

/** What follows the end of the picture, such as the film of a moving photograph, is left out too. */
function cleanJpeg(image: Buffer): Buffer {
  const kept: Buffer[] = [image.subarray(0, 2)]
  let at = 2
  for (;;) {
    const marker = image[at + 1]
    if (image[at] !== 0xff || marker === undefined) throw new BrokenImage()
    if (marker === jpeg.end) return Buffer.concat([...kept, image.subarray(at, at + 2)])
    if (at + 4 > image.length) throw new BrokenImage()
    const segment = image.subarray(at, at + 2 + image.readUInt16BE(at + 2))
    at += segment.length
    if (isPicture(marker, segment)) kept.push(segment)
    if (marker !== jpeg.scan) continue
    const end = endOfScan(image, at)
    kept.push(image.subarray(at, end))
    at = end
  }
}

function isPicture(marker: number, segment: Buffer): boolean {
  if (marker === jpeg.comment) return false
  if (marker < jpeg.app || marker > jpeg.app + 15) return true
  return keptApps.includes(marker) || segment.toString('latin1', 4, 4 + profile.length) === profile
}

/** Where the next marker stands; within a scan, 0xff is followed by 0 or by a restart. */
function endOfScan(image: Buffer, from: number): number {
  for (let at = image.indexOf(0xff, from); at >= 0; at = image.indexOf(0xff, at + 2)) {
    const next = image[at + 1]!
    if (next !== 0 && (next < 0xd0 || next > 0xd7)) return at
  }
  throw new BrokenImage()
}

const signatureLength = 8
const besideThePicture = ['eXIf', 'tEXt', 'zTXt', 'iTXt', 'tIME']

function cleanPng(image: Buffer): Buffer {
  const kept: Buffer[] = [image.subarray(0, signatureLength)]
  for (let at = signatureLength; ; ) {
    if (at + 12 > image.length) throw new BrokenImage()
    const chunk = image.subarray(at, at + 12 + image.readUInt32BE(at))
    const name = chunk.toString('latin1', 4, 8)
    if (!besideThePicture.includes(name)) kept.push(chunk)
    if (name === 'IEND') return Buffer.concat(kept)
    at += chunk.length
  }
}

const riffHeader = 12
/** The flags of an extended WebP that announce Exif and XMP. */
const announced = 0b1100

function cleanWebp(image: Buffer): Buffer {
  const kept: Buffer[] = [Buffer.from(image.subarray(0, riffHeader))]
  for (let at = riffHeader; at < image.length; ) {
    if (at + 8 > image.length) throw new BrokenImage()
    const size = image.readUInt32LE(at + 4)
    const chunk = Buffer.from(image.subarray(at, at + 8 + size + (size % 2)))
    if (chunk.length < 8 + size) throw new BrokenImage()
    at += chunk.length
    const name = chunk.toString('latin1', 0, 4)
    if (name === 'EXIF' || name === 'XMP ') continue
    if (name === 'VP8X') chunk[8]! &= ~announced
    kept.push(chunk)
  }
  const whole = Buffer.concat(kept)
  whole.writeUInt32LE(whole.length - 8, 4)
  return whole
}
