import { existsSync } from 'node:fs'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageFacts } from '@espalier/text/images'
import { StoreError } from '../../../base/core/files/store-error.ts'
import { writeWhole } from '../../../base/core/files/whole-file.ts'
import type { ImageStore } from '../../../base/core/image.ts'

/** Keeps images as files of a run, named by their digest: several threads may keep the same one. */
export function makeImageFolder(folder: string): ImageStore {
  return {
    async keep(image, bytes) {
      const path = imagePath(folder, image)
      if (existsSync(path)) return
      try {
        await makeFolder(folder)
        await writeWhole(path, bytes)
      } catch (cause) {
        throw new StoreError(path, { cause })
      }
    },
    async read(image) {
      const path = imagePath(folder, image)
      const { size } = await stat(path)
      if (size !== image.bytes)
        throw new Error(`${path} has ${size} bytes, not the ${image.bytes} of the image kept there`)
      return await readFile(path)
    },
  }
}

/** Makes a folder beside others: what was removed is not made again by an attempt that goes on. */
async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** The file of an image. What a run says of its images may come from anybody, so it is checked. */
export function imagePath(folder: string, image: Pick<ImageFacts, 'digest' | 'kind'>): string {
  return join(folder, imageName(image))
}

/** The name of an image's file. */
export function imageName({ digest, kind }: Pick<ImageFacts, 'digest' | 'kind'>): string {
  const isNamed = /^[0-9a-f]{64}$/.test(digest) && /^(?:png|jpeg|webp|gif)$/.test(kind)
  if (isNamed) return `${digest}.${kind}`
  throw new Error(`an image cannot be called ${JSON.stringify(`${digest}.${kind}`.slice(0, 80))}`)
}
