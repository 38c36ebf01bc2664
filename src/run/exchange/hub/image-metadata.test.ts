import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noImage, withoutImageMetadata } from './image-metadata.ts'

/** Images as Pillow writes them with Exif, places, comments and a film behind the picture. */
const images = JSON.parse(readFileSync('test/fixtures/private-images.json', 'utf8')) as Record<
  string,
  string
>
const urlOf = (type: string, base64: string): string => `data:image/${type};base64,${base64}`
const bytesOf = (url: string): Buffer => Buffer.from(url.split(',')[1]!, 'base64')

describe('what lies beside a picture', () => {
  it.each(Object.entries(images))('is left out of a %s image, and nothing else', (type, base64) => {
    const clean = withoutImageMetadata(`{"url":"${urlOf(type, base64)}"}`)
    const bytes = bytesOf(clean)
    for (const told of ['Secret', 'at home', 'private', 'film', 'Exif', 'EXIF', 'XMP']) {
      expect(bytes.includes(told), told).toBe(false)
    }
    expect(bytes.length).toBeGreaterThan(60)
    expect(withoutImageMetadata(clean)).toBe(clean)
  })

  it('is left out with the image if it cannot be found: other types, and images that are cut', () => {
    const odd = Object.entries(images).flatMap(([type, base64]) => {
      const bytes = Buffer.from(base64, 'base64')
      return [0, 4, 13, 40].map(end => urlOf(type, bytes.toString('base64', 0, end) || '='))
    })
    let count = 0
    for (const url of [urlOf('gif', 'R0lG'), ...odd])
      expect(withoutImageMetadata(`before ${url} behind`, () => count++)).toBe(
        `before ${noImage} behind`,
      )
    expect(count).toBe(odd.length + 1)
  })
})
