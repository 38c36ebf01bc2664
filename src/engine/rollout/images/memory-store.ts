import type { ImageStore } from '../../../base/core/image.ts'

/** Keeps images in memory, for runs that have no folder: of more bytes than `most`, those that were used last. */
export function makeMemoryStore(most = 256 * 2 ** 20): ImageStore {
  const kept = new Map<string, Uint8Array>()
  let size = 0
  const use = (digest: string, bytes: Uint8Array): void => {
    if (!kept.delete(digest)) size += bytes.length
    kept.set(digest, bytes)
    for (const [oldest, { length }] of kept) {
      if (size <= most || oldest === digest) return
      kept.delete(oldest)
      size -= length
    }
  }
  return {
    async keep({ digest }, bytes) {
      use(digest, bytes)
    },
    async read({ digest }) {
      const bytes = kept.get(digest)
      if (!bytes)
        throw new Error(
          `the image ${digest} is not here: a run without a folder keeps ${most} bytes of images; give it one (\`out\`, \`--out\`)`,
        )
      use(digest, bytes)
      return bytes
    },
  }
}
