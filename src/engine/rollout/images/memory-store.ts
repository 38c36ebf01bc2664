import type { ImageStore } from '../../../base/core/image.ts'

/** Keeps images in memory, for runs that have no folder. */
export function makeMemoryStore(): ImageStore {
  const kept = new Map<string, Uint8Array>()
  return {
    async keep({ digest }, bytes) {
      kept.set(digest, bytes)
    },
    async read({ digest }) {
      const bytes = kept.get(digest)
      if (bytes) return bytes
      throw new Error(`the image ${digest} was not kept`)
    },
  }
}
