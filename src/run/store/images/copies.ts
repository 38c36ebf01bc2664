import { copyFile, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ImagePlace } from '../../../base/core/image.ts'
import { runPaths } from '../run-folder.ts'
import { imageName, imagePath } from './image-folder.ts'

/** Images of a run that an export takes with it, into a folder beside its file. */
export interface ImageCopies {
  /** Where an image will lie, as seen from the file. */
  readonly fileOf: (image: ImagePlace) => string
  /** Copies what was asked for since the last time. */
  copy(): Promise<void>
}

/** Makes copies of images into `<file>.images`, each once. */
export function makeImageCopies({
  run,
  out,
}: {
  readonly run: string
  readonly out: string
}): ImageCopies {
  const folder = `${basename(out)}.images`
  const copied = new Set<string>()
  const asked = new Map<string, ImagePlace>()
  return {
    fileOf(image) {
      const name = imageName(image)
      if (!copied.has(name)) asked.set(name, image)
      return `${folder}/${name}`
    },
    async copy() {
      if (asked.size === 0) return
      const target = join(dirname(out), folder)
      await mkdir(target, { recursive: true })
      for (const [name, image] of asked) {
        await copyFile(imagePath(runPaths(run).images, image), join(target, name))
        copied.add(name)
      }
      asked.clear()
    },
  }
}
