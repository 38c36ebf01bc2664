import { describeCause } from '../../../base/core/failure.ts'
import type { ImageStore } from '../../../base/core/image.ts'
import { imageFacts } from '../../../engine/rollout/images/keep.ts'
import { checkPlace } from '../../../run/store/segments/pointer.ts'
import type { RunStorage } from '../../../run/store/segments/storage.ts'
import type { ImageOnItsWay, ImageTable } from './image-table.ts'

/** Where a coordinator finds the images of its run, and where it keeps them. */
export interface ImageTaking {
  readonly table: Pick<ImageTable, 'waiting' | 'taken'>
  readonly storage?: RunStorage | undefined
  readonly store: Pick<ImageStore, 'keep'>
  readonly tell: (line: string) => void
}

/** Images in memory at one time. */
const together = 4

/** What came is not the image that was meant; asking again would not help. */
class BrokenImageError extends Error {
  override name = 'BrokenImageError'
}

/** Takes the images that workers sent. */
export class ImageTaker {
  readonly #taking: ImageTaking
  #running = 0
  #told = ''

  constructor(taking: ImageTaking) {
    this.#taking = taking
  }

  get isBusy(): boolean {
    return this.#running > 0
  }

  /** Keeps all images that wait. Gives whether it could: what cannot be read now is read another time. */
  async take(): Promise<boolean> {
    this.#running++
    try {
      await takeAll(this.#taking)
      return true
    } catch (error) {
      if (error instanceof BrokenImageError) throw error
      const line = `images cannot be taken, and are tried again: ${describeCause(error)}`
      if (line !== this.#told) this.#taking.tell(line)
      this.#told = line
      return false
    } finally {
      this.#running--
    }
  }
}

async function takeAll(taking: ImageTaking): Promise<void> {
  const { table } = taking
  for (;;) {
    const images = await table.waiting(together)
    for (const image of images) await take(image, taking)
    if (images.length > 0) await table.taken(images.map(({ digest }) => digest))
    if (images.length < together) return
  }
}

/** Keeps an image; anybody with access to the database could have written it. */
async function take(image: ImageOnItsWay, { storage, store }: ImageTaking): Promise<void> {
  const bytes = image.bytes ?? (await bytesIn(image, storage))
  const facts = orBroken(image, () => imageFacts(bytes))
  if (facts.digest !== image.digest) throw broken(image, `its digest is ${facts.digest}`)
  await store.keep(facts, bytes)
}

async function bytesIn(image: ImageOnItsWay, storage: RunStorage | undefined): Promise<Buffer> {
  const { segment, offset, size } = image
  const place = { segment: segment ?? '', offset: offset ?? 0, size }
  orBroken(image, () => checkPlace('its bytes', place))
  if (storage) return await storage.read(place.segment, place.offset, size)
  throw broken(image, 'it lies in a segment, and the run has no --segments')
}

function orBroken<Result>(image: ImageOnItsWay, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw broken(image, (cause as Error).message)
  }
}

const broken = ({ digest }: ImageOnItsWay, why: string): Error =>
  new BrokenImageError(`image ${digest} of a worker is broken: ${why}`)
