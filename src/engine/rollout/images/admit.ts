import { type ImagePart, imagesIn, type Message } from '@espalier/text'
import { ImageRefusedError } from '@espalier/text/images'
import type { Transition } from '../../../base/core/environment.ts'
import { Failure } from '../../../base/core/failure.ts'
import { changeAnswer, changeImages, type KeepImage, type Parts } from '../../../base/core/image.ts'
import type { CallRecord } from '../../../base/core/tool.ts'
import type { Attempt, RolloutContext } from '../attempt.ts'
import { note, type Walk } from '../walk.ts'
import { keepImage } from './keep.ts'

/**
 * Keeps the images of worlds of an attempt as soon as they show them; nothing for a policy that sees none. What cannot
 * be shown is left as it is, and refused when the policy should see it.
 */
export function imageKeeper(context: RolloutContext, { signal }: Attempt): KeepImage | undefined {
  const { images } = context
  if (!images || whyUnseen(context)) return undefined
  return part =>
    keepImage(part, images, signal).catch((cause: unknown) => {
      if (cause instanceof ImageRefusedError) return part
      throw cause
    })
}

/** An opening with its images kept; one that cannot be shown is the environment's failure. */
export async function admitOpening(
  context: RolloutContext,
  attempt: Attempt,
  opening: readonly Message[],
): Promise<readonly Message[]> {
  if (imagesIn(opening).length === 0) return opening
  const admit = makeAdmission(context, attempt, cause => {
    throw new Failure('environment', { cause })
  })
  return await changeImages(opening, admit)
}

/** What a world answered, with its images kept; the policy is told of those that cannot be shown. */
export async function admitTransition<Answer extends Transition>(
  walk: Walk,
  transition: Answer,
): Promise<Answer> {
  const { calls = [] } = transition
  const shown = calls.some(({ content }) => content !== undefined)
  // To a policy that only reads, an image of a tool is a word already.
  if (shown && whyUnseen(walk.context))
    return await admitTransition(walk, withoutContent(transition))
  const observed = (transition.observed ?? []).map(message => answered(message, calls))
  if (imagesIn(observed).length === 0) return transition
  const admit = makeAdmission(walk.context, walk.attempt, ({ message }) => {
    note(walk, 'image:refused', message)
    return { type: 'text', text: `[image left out: ${message}]` }
  })
  return await changeAnswer(observed.length > 0 ? { ...transition, observed } : transition, admit)
}

function withoutContent<Answer extends Transition>(transition: Answer): Answer {
  const calls = transition.calls?.map(({ content: _, ...rest }) => rest)
  return { ...transition, ...(calls && { calls }) }
}

/** What a tool answered, in parts if it showed images. */
function answered(message: Message, calls: readonly CallRecord[]): Message {
  if (message.role !== 'tool') return message
  const content = calls.find(({ id }) => id === message.tool_call_id)?.content
  return content ? { ...message, content } : message
}

/** Why a policy is shown no images; nothing if it is. */
export function whyUnseen({
  images,
  renderer,
  policy,
}: Pick<RolloutContext, 'images' | 'renderer' | 'policy'>): Failure | undefined {
  const { noImages = 'the model reads text only' } = renderer
  if (!renderer.images)
    return new Failure('renderer', { cause: new Error(`An image: ${noImages}.`) })
  if (policy.capabilities.images && images) return undefined
  const cause = new Error(`An image is shown to ${policy.name}, which reads text only.`)
  return new Failure('policy', { cause })
}

type Admit = (part: ImagePart) => Promise<Parts[number]>

/** Keeps an image and gives its reference; `refuse` is told of one that cannot be shown. */
function makeAdmission(
  context: RolloutContext,
  attempt: Attempt,
  refuse: (cause: Error) => Parts[number],
): Admit {
  const unseen = whyUnseen(context)
  if (unseen) throw unseen
  const images = context.images!
  const seen = context.renderer.images!
  const known = new Map<ImagePart, Promise<Parts[number]>>()
  const admit: Admit = async part => {
    try {
      const reference = await keepImage(part, images, attempt.signal)
      seen.count(reference)
      return reference
    } catch (cause) {
      if (cause instanceof ImageRefusedError) return refuse(cause)
      throw cause
    }
  }
  return part => {
    const admitted = known.get(part) ?? admit(part)
    known.set(part, admitted)
    return admitted
  }
}
