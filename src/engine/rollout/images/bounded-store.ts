import { ImageRefusedError } from '@espalier/text/images'
import type { ImageStore } from '../../../base/core/image.ts'

/** Bytes of images that one seat of an attempt may bring along: an agent could fill the disk of the run with more. */
const mostBytes = 512 * 2 ** 20

/** A store that takes so many bytes and no more; what it took before is no more bytes. */
export function boundedStore(store: ImageStore, most = mostBytes): ImageStore {
  const taken = new Set<string>()
  let size = 0
  return {
    async keep(image, bytes) {
      if (!taken.has(image.digest) && size + image.bytes > most)
        throw new ImageRefusedError(`with it, the images sent have more than ${most} bytes`)
      if (!taken.has(image.digest)) size += image.bytes
      taken.add(image.digest)
      await store.keep(image, bytes)
    },
    read: image => store.read(image),
  }
}
