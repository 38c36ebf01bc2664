import type { ContentPart, Message } from '@espalier/text'
import { type ImageFacts, parseReference } from '@espalier/text/images'
import { changeImages, type PromptImages } from '../../../base/core/image.ts'
import { asIds, asObject, wrong } from '../transport/reading.ts'

/** An image as servers take it: its bytes in base64, under the kind that its header says. */
export async function dataUrlOf(
  image: ImageFacts,
  { store }: Pick<PromptImages, 'store'>,
): Promise<string> {
  const { buffer, byteOffset, byteLength } = await store.read(image)
  return `data:image/${image.kind};base64,${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}`
}

/** Messages with the bytes of their images, for servers that are sent messages. */
export async function withImageData(
  messages: readonly Message[],
  images: PromptImages | undefined,
): Promise<readonly Message[]> {
  if (!images) return messages
  const partOf = async (part: ContentPart): Promise<ContentPart> => {
    const facts = part.type === 'image_url' ? parseReference(part.image_url.url) : undefined
    if (!facts) return part
    return { type: 'image_url', image_url: { url: await dataUrlOf(facts, images) } }
  }
  return await changeImages(messages, partOf)
}

/** Throws unless the server laid a prompt's images out as exactly these tokens. */
export function checkLaidOut(answer: unknown, ids: Int32Array, where: string): void {
  const { prompt_token_ids: said } = asObject(answer, where, 'the answer')
  const read = asIds(said, where, 'prompt_token_ids')
  const at = ids.findIndex((id, index) => id !== read[index])
  if (at < 0 && read.length === ids.length) return
  const place = at < 0 ? ids.length : at
  throw wrong(
    where,
    `the server laid the images out in ${read.length} prompt tokens where ${ids.length} were meant, and read ` +
      `${read[place]} at place ${place} instead of ${ids[place]}: is --model the model it serves, with its processor's settings?`,
  )
}
