import { collapsed, type PromptImages } from '../../../base/core/image.ts'
import type { BodyFrame } from '../transport/prompt-writer.ts'
import { dataUrlOf } from './image-data.ts'

/** The body of a request with images: the server lays each out in the place of its one placeholder. */
export async function bodyWithImages(
  ids: Int32Array,
  images: PromptImages,
  { head, tail, rest }: BodyFrame,
): Promise<string> {
  // The server takes pixels as they are stored, and would count other tokens.
  const turned = images.places.find(({ orientation }) => orientation !== 1)
  if (turned)
    throw new Error(`SGLang does not turn images as EXIF says, and one says ${turned.orientation}.`)
  const data: string[] = []
  for (const image of images.places) data.push(await dataUrlOf(image, images))
  const own = `${head}${collapsed(ids, images).join(',')}${tail}${rest?.toString('utf8') ?? ''}`
  const hashes = images.places.map(({ digest }) => digest)
  const shown = { image_data: data, mm_hashes: hashes, return_prompt_token_ids: true }
  return `${own.slice(0, -1)},${JSON.stringify(shown).slice(1)}`
}
