import { crc32, deflateSync } from 'node:zlib'
import type { ImagePart } from '@espalier/text'

/** Red, green and blue, from 0 to 255. */
export type Colour = readonly [red: number, green: number, blue: number]

/** A rectangle in pixels. */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A small picture that is painted with rectangles. */
export class Canvas {
  readonly width: number
  readonly height: number
  readonly #pixels: Uint8Array

  constructor(width: number, height: number, ground: Colour) {
    this.width = width
    this.height = height
    this.#pixels = new Uint8Array(3 * width * height)
    this.paint({ x: 0, y: 0, width, height }, ground)
  }

  /** Paints a rectangle; what lies outside of the picture is left out. */
  paint({ x, y, width, height }: Box, colour: Colour): void {
    const right = Math.min(this.width, x + width)
    const bottom = Math.min(this.height, y + height)
    for (let row = Math.max(0, y); row < bottom; row++)
      for (let column = Math.max(0, x); column < right; column++)
        this.#pixels.set(colour, 3 * (row * this.width + column))
  }

  /** The picture as a PNG file: the same bytes for the same pixels on every machine. */
  toPng(): Buffer {
    const header = Buffer.alloc(13)
    header.writeUInt32BE(this.width, 0)
    header.writeUInt32BE(this.height, 4)
    // Eight bits of each colour, no filter of rows that is chosen anew, not interlaced.
    header.set([8, 2, 0, 0, 0], 8)
    const line = 3 * this.width
    const rows = Buffer.alloc((line + 1) * this.height)
    for (let row = 0; row < this.height; row++)
      rows.set(this.#pixels.subarray(row * line, (row + 1) * line), row * (line + 1) + 1)
    const body = deflateSync(rows, { level: 9 })
    const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
    return Buffer.concat([
      signature,
      chunk('IHDR', header),
      chunk('IDAT', body),
      chunk('IEND', Buffer.alloc(0)),
    ])
  }

  /** The picture as a part of a message. */
  toPart(): ImagePart {
    const url = `data:image/png;base64,${this.toPng().toString('base64')}`
    return { type: 'image_url', image_url: { url } }
  }
}

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const whole = Buffer.alloc(named.length + 8)
  whole.writeUInt32BE(data.length, 0)
  whole.set(named, 4)
  whole.writeUInt32BE(crc32(named), named.length + 4)
  return whole
}
