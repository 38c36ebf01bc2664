import type { Content, ContentPart, ImagePart, Message } from '@espalier/text'
import type { ImageFacts } from '@espalier/text/images'
import type { Transition } from './environment.ts'
import { type Place, pathTo, type Tree } from './tree.ts'

/** An image whose tokens stand at `[start, end)` of a segment, a path or a prompt. */
export interface ImagePlace extends ImageFacts {
  readonly start: number
  readonly end: number
}

/** Where the bytes of images are, by their digest. */
export interface ImageStore {
  /** Keeps an image once, however often it is shown. */
  keep(image: ImageFacts, bytes: Uint8Array): Promise<void>
  /** Its bytes; rejects if they are not here. */
  read(image: ImageFacts): Promise<Uint8Array>
}

/** The images that a prompt shows. */
export interface PromptImages {
  /** In the order of their tokens. */
  readonly places: readonly ImagePlace[]
  /** The ids that stand for one image before its tokens are laid out: what servers are sent. */
  readonly placeholder: Int32Array
  readonly store: Pick<ImageStore, 'read'>
}

/** Keeps the bytes of an image and gives a part that names it; one that cannot be shown is given back as it is. */
export type KeepImage = (part: ImagePart) => Promise<ImagePart>

/** Content in parts. */
export type Parts = Exclude<Content, string>

type ChangeImage = (part: ImagePart) => Promise<Parts[number]>

/** Messages with other parts in place of their images. */
export async function changeImages<Messages extends readonly Message[]>(
  messages: Messages,
  change: ChangeImage,
): Promise<Messages> {
  const changed: Message[] = []
  for (const message of messages) {
    const { content } = message
    const isPlain = typeof content === 'string' || content === null
    changed.push(isPlain ? message : { ...message, content: await changeParts(content, change) })
  }
  return changed as readonly Message[] as Messages
}

async function changeParts(content: Parts, change: ChangeImage): Promise<Parts> {
  return await Promise.all(content.map(part => (part.type === 'text' ? part : change(part))))
}

/** What a world answered, with other parts in place of its images. */
export async function changeAnswer<Answer extends Transition>(
  transition: Answer,
  change: ChangeImage,
): Promise<Answer> {
  const { observed = [], calls = [] } = transition
  const changed = calls.map(async call =>
    call.content ? { ...call, content: await changeParts(call.content, change) } : call,
  )
  return {
    ...transition,
    ...(observed.length > 0 && { observed: await changeImages(observed, change) }),
    ...(calls.length > 0 && { calls: await Promise.all(changed) }),
  }
}

/** What stands for an image that is no longer shown. */
export const leftOutImage: ContentPart = { type: 'text', text: '[image left out]' }

/** Throws unless images stand one behind another within so many tokens. */
export function checkPlaces(places: readonly ImagePlace[], length: number): void {
  let at = 0
  for (const { start, end } of places) {
    if (Number.isInteger(start) && Number.isInteger(end) && at <= start && start < end) at = end
    else throw new RangeError(`an image at tokens ${start} to ${end}, behind token ${at}`)
  }
  if (at > length) throw new RangeError(`an image ends at token ${at} of a segment of ${length}`)
}

/** The images on the path to a place that are wholly on it, counted from the path's beginning. */
export function imagesTo(tree: Pick<Tree, 'nodes'>, end: Place): readonly ImagePlace[] {
  return pathTo(tree, end).flatMap(({ node, start, length }) => {
    const { images = [] } = tree.nodes[node]!.segment
    return images.filter(image => image.end <= length).map(image => moved(image, start))
  })
}

/** An image so many tokens further on. */
export function moved(image: ImagePlace, by: number): ImagePlace {
  return by === 0 ? image : { ...image, start: image.start + by, end: image.end + by }
}

/** Tokens with one placeholder for each image, as servers take them that lay images out themselves. */
export function collapsed(
  ids: Int32Array,
  { places, placeholder }: Pick<PromptImages, 'places' | 'placeholder'>,
): Int32Array {
  const parts: Int32Array[] = []
  let read = 0
  for (const { start, end } of places) {
    parts.push(ids.subarray(read, start), placeholder)
    read = end
  }
  parts.push(ids.subarray(read))
  const joined = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
