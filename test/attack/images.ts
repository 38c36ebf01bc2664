import { readFileSync } from 'node:fs'
import {
  dataUrlBytes,
  ImageRefusedError,
  parseReference,
  readImageHeader,
} from '@espalier/text/images'
import { keepImage } from '../../src/engine/rollout/images/keep.ts'
import { makeMemoryStore } from '../../src/engine/rollout/images/memory-store.ts'
import { type Attack, damagedBytes, hold, oneOf } from './attack.ts'

const heads = [
  '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff',
  '\xff\xd8\xff\xe1\xff\xffExif\0\0II*\0\xff\xff\xff\xff',
  'RIFF\xff\xff\xff\xffWEBPVP8X\n\0\0\0\xff\0\0\0\xff\xff\xff\xff\xff\xff',
  'GIF89a\xff\xff\xff\xff\xff\0\0',
  '<svg onload=alert(1)>',
  '%PDF-1.7',
]

const addresses = [
  'file:///dev/zero',
  'file:///proc/self/environ',
  'http://169.254.169.254/latest',
  `image:${'0'.repeat(64)}.svg?width=1&height=1&bytes=1`,
  'image:../../etc/passwd',
  'data:image/png,plain',
  'data:image/png;base64,%%%%',
  'data:;base64,',
  'javascript:alert(1)',
  'blob:null/1',
  '',
]

/** Images of others: damaged, of two kinds, of sizes that they have not, or named where nobody may look. */
export const images: Attack = {
  name: 'images',
  promise: 'H6',
  share: 10,
  async open() {
    const known = readFileSync('test/fixtures/image-headers.jsonl', 'utf8')
      .trim()
      .split('\n')
      .map(line => Buffer.from((JSON.parse(line) as { bytes: string }).bytes, 'base64'))
    const { signal } = new AbortController()
    const settings = { store: makeMemoryStore(), max: 32, pixels: 2 ** 24, from: [] }
    return async draw => {
      const whole = oneOf(known, draw)
      const head = Buffer.from(oneOf(heads, draw), 'latin1')
      const bytes = draw() < 0.3 ? Buffer.concat([head, whole]) : damagedBytes(whole, draw)
      const data = `data:image/${oneOf(['png', 'svg+xml', '', 'x/y'], draw)};base64,${bytes.toString('base64')}`
      const url = draw() < 0.2 ? oneOf(addresses, draw) : data
      try {
        const part = { type: 'image_url', image_url: { url } } as const
        const kept = await keepImage(part, settings, signal)
        const reference = kept.type === 'image_url' ? parseReference(kept.image_url.url) : undefined
        hold(reference !== undefined, `${url.slice(0, 80)} was kept without a reference`)
        const { width, height, kind } = readImageHeader(dataUrlBytes(url) ?? bytes)
        hold(reference!.kind === kind, `${reference!.kind} is ${kind}`)
        hold(width * height <= settings.pixels, `${width} x ${height} pixels were kept`)
      } catch (cause) {
        hold(cause instanceof ImageRefusedError, `${url.slice(0, 80)}: ${String(cause)}`)
      }
    }
  },
}
