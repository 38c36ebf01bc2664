import { type ImagePart, imagesIn, type Message } from '@espalier/text'
import { ImageRefusedError } from '@espalier/text/images'
import { changeImages, type ImageStore } from '../../base/core/image.ts'
import { whyUnseen } from '../rollout/images/admit.ts'
import { boundedStore } from '../rollout/images/bounded-store.ts'
import { keepSentImage } from '../rollout/images/keep.ts'
import { withoutOldest } from '../rollout/images/leave-out.ts'
import type { CaptureContext, ChatRequest } from './contract.ts'
import { RequestProblem } from './dialects/problem.ts'

/** The images that the requests of one seat show: kept as they come, named by references from then on. */
export class SentImages {
  readonly #context: CaptureContext
  readonly #note: (detail: string) => void
  /** By address: references that were given out, and what was fetched. */
  #known: Map<string, ImagePart> | undefined
  #store: ImageStore | undefined

  /** `note` is told of images that are left out. */
  constructor(context: CaptureContext, note: (detail: string) => void) {
    this.#context = context
    this.#note = note
  }

  /** A request with references in place of its images, of which the newest are shown. */
  async admit(request: ChatRequest, signal: AbortSignal): Promise<ChatRequest> {
    const messages: Message[] = []
    for (const [index, message] of request.messages.entries()) {
      const place = `messages[${index}]`
      messages.push(...(await changeImages([message], part => this.#admit(part, place, signal))))
    }
    const { max } = this.#context.images!
    const surplus = imagesIn(messages).length - max
    if (surplus <= 0) return { ...request, messages }
    this.#note(`${surplus} left out: at most ${max} are shown`)
    return { ...request, messages: withoutOldest(messages, max) }
  }

  async #admit(part: ImagePart, place: string, signal: AbortSignal): Promise<ImagePart> {
    const refuse = (why: string): never => {
      throw new RequestProblem('unsupported', `${place} has an image: ${why}`)
    }
    const unseen = whyUnseen(this.#context)
    if (unseen) return refuse(unseen.message)
    try {
      return await this.#reference(part, signal)
    } catch (cause) {
      if (cause instanceof ImageRefusedError) return refuse(cause.message)
      throw cause
    }
  }

  async #reference(part: ImagePart, signal: AbortSignal): Promise<ImagePart> {
    const { images, renderer } = this.#context
    const address = part.type === 'image_url' ? part.image_url.url : ''
    const known = this.#known?.get(address)
    if (known) return known
    this.#store ??= boundedStore(images!.store)
    const kept = await keepSentImage(part, { ...images!, store: this.#store }, signal)
    renderer.images!.count(kept)
    this.#known ??= new Map()
    this.#known.set(kept.image_url.url, kept)
    // What was fetched is not fetched again; an address that holds the bytes is not kept in memory.
    if (/^https?:/i.test(address)) this.#known.set(address, kept)
    return kept
  }
}
