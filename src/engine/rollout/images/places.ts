import { type ImagePart, imagesIn, type Message, type Renderer } from '@espalier/text'
import { type ImageFacts, parseReference } from '@espalier/text/images'
import { type ImagePlace, moved } from '../../../base/core/image.ts'

/** The images of messages in the tokens that they were rendered as. */
export function placesIn(
  { images }: Pick<Renderer, 'images'>,
  ids: Int32Array,
  messages: readonly Message[],
): readonly ImagePlace[] {
  if (!images || imagesIn(messages).length === 0) return []
  return images
    .locate(ids, messages)
    .map(({ part, start, end }) => ({ ...factsOf(part), start, end }))
}

function factsOf(part: ImagePart): ImageFacts {
  const facts = part.type === 'image_url' ? parseReference(part.image_url.url) : undefined
  if (facts) return facts
  throw new Error('an image is shown whose bytes were not kept')
}

/** Two contexts with their images. */
interface Contexts {
  readonly old: readonly ImagePlace[]
  readonly now: readonly ImagePlace[]
  /** Tokens that both begin with. */
  readonly keep: number
}

/**
 * How many tokens two contexts share if their images count as well: other images of one size have the same
 * tokens, and no image is cut.
 */
export function sharedTokens({ old, now, keep }: Contexts): number {
  for (let index = 0; ; index++) {
    const [was, is] = [old[index], now[index]]
    const isSame = was && is && was.digest === is.digest && was.start === is.start
    if (isSame && is.end <= keep) continue
    return Math.min(keep, was?.start ?? keep, is?.start ?? keep)
  }
}

/** The images behind the first `keep` tokens, counted from there. */
export function placesBehind(places: readonly ImagePlace[], keep: number): readonly ImagePlace[] {
  return places.filter(({ start }) => start >= keep).map(image => moved(image, -keep))
}
