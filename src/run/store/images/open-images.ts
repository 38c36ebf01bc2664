import type { ImageStore } from '../../../base/core/image.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import type { ImageSettings } from '../../../engine/rollout/images/keep.ts'
import { makeMemoryStore } from '../../../engine/rollout/images/memory-store.ts'
import { runPaths } from '../run-folder.ts'
import { makeImageFolder } from './image-folder.ts'

/** Where the images of a run are kept: in its folder, or in the folder that another thread has it in. */
export interface ImagePlaces {
  readonly out?: string | undefined
  readonly imageFolder?: string | undefined
  /** What `--images` says. */
  readonly images?: string | undefined
}

/** Which images attempts may see, as `--images` says, and where they are kept. */
export function imageSettings({ out, imageFolder, images = '' }: ImagePlaces): ImageSettings {
  return { ...readImages(images), store: storeFor({ out, imageFolder }) }
}

/** The folder of a run's images; undefined for a run without a folder. */
export function imageFolderOf({ out, imageFolder }: ImagePlaces): string | undefined {
  return out === undefined ? imageFolder : runPaths(out).images
}

function storeFor(places: ImagePlaces): ImageStore {
  const folder = imageFolderOf(places)
  return folder === undefined ? makeMemoryStore() : makeImageFolder(folder)
}

type Bounds = Omit<ImageSettings, 'store'>

function readImages(text: string): Bounds {
  const bounds = { max: 32, pixels: 2 ** 24 }
  const from: string[] = []
  for (const item of text === '' ? [] : text.split(',')) {
    const [, name, value = ''] = /^(max|pixels|from)=(.+)$/.exec(item) ?? []
    const number = Number(value)
    if (name === 'from') from.push(value)
    else if (name !== undefined && Number.isSafeInteger(number) && number >= 1)
      bounds[name as keyof typeof bounds] = number
    else throw new SettingError(`--images ${text}: "${item}" is none of max=N, pixels=N, from=HOST`)
  }
  return { ...bounds, from }
}
