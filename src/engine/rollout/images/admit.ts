import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Content, type ImagePart, imagesIn, type Message } from '@espalier/text'
import {
  dataUrlBytes,
  formatReference,
  type ImageFacts,
  ImageRefusedError,
  parseReference,
  readImageHeader,
} from '@espalier/text/images'
import type { Transition } from '../../../base/core/environment.ts'
import { Failure } from '../../../base/core/failure.ts'
import type { ImageStore } from '../../../base/core/image.ts'
import type { CallRecord } from '../../../base/core/tool.ts'
import type { Attempt, RolloutContext } from '../attempt.ts'
import { note, type Walk } from '../walk.ts'

/** Which images attempts may see, and where their bytes are kept. */
export interface ImageSettings {
  readonly store: ImageStore
  /** Images that are shown at one time; the oldest of more are left out. @default 32 */
  readonly max: number
  /** Pixels of one image. @default 16777216 */
  readonly pixels: number
  /** Hosts that images are fetched from; any other address is refused. @default none */
  readonly from: readonly string[]
}

/** Bytes that one image may have. */
const mostBytes = 20 * 2 ** 20
/** Seconds that fetching one may take. */
const mostSeconds = 30

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
  return await admittedMessages(opening, admit)
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
  const kept = calls.map(async call =>
    call.content ? { ...call, content: await admittedContent(call.content, admit) } : call,
  )
  return {
    ...transition,
    ...(observed.length > 0 && { observed: await admittedMessages(observed, admit) }),
    ...(calls.length > 0 && { calls: await Promise.all(kept) }),
  }
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
function whyUnseen({ images, renderer, policy }: RolloutContext): Failure | undefined {
  const { noImages = 'the model reads text only' } = renderer
  if (!renderer.images)
    return new Failure('renderer', { cause: new Error(`An image: ${noImages}.`) })
  if (policy.capabilities.images && images) return undefined
  const cause = new Error(`An image is shown to ${policy.name}, which reads text only.`)
  return new Failure('policy', { cause })
}

type Parts = Exclude<Content, string>
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
      const facts = await keep(part, images, attempt.signal)
      if (facts.width * facts.height > images.pixels) {
        const { width, height } = facts
        throw new ImageRefusedError(`${width} x ${height} pixels; at most ${images.pixels} in all`)
      }
      const reference = { type: 'image_url', image_url: { url: formatReference(facts) } } as const
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

async function admittedMessages<Messages extends readonly Message[]>(
  messages: Messages,
  admit: Admit,
): Promise<Messages> {
  const admitted: Message[] = []
  for (const message of messages) {
    const { content } = message
    const isPlain = typeof content === 'string' || content === null
    admitted.push(
      isPlain ? message : { ...message, content: await admittedContent(content, admit) },
    )
  }
  return admitted as readonly Message[] as Messages
}

async function admittedContent(content: Parts, admit: Admit): Promise<Parts> {
  return await Promise.all(content.map(part => (part.type === 'text' ? part : admit(part))))
}

/** The facts of an image whose bytes are kept now; a reference has been kept before. */
async function keep(
  part: ImagePart,
  { store, from }: ImageSettings,
  signal: AbortSignal,
): Promise<ImageFacts> {
  const address = addressOf(part)
  const known = parseReference(address)
  if (known) return known
  const bytes = await bytesAt(address, from, signal)
  if (bytes.length > mostBytes)
    throw new ImageRefusedError(`${bytes.length} bytes; at most ${mostBytes} are read`)
  const { kind, width, height, orientation } = readImageHeader(bytes)
  const digest = createHash('sha256').update(bytes).digest('hex')
  const facts = { digest, kind, width, height, orientation, bytes: bytes.length }
  await store.keep(facts, bytes)
  return facts
}

/** Where an image is named, whichever form its part has. */
function addressOf(part: ImagePart): string {
  const address = part.type === 'image_url' ? part.image_url?.url : addressIn(part.source)
  if (typeof address === 'string') return address
  throw new ImageRefusedError('a part that says neither where the image is nor what')
}

function addressIn(source: Extract<ImagePart, { type: 'image' }>['source'] | undefined) {
  if (source?.type !== 'base64') return source?.url
  return `data:${source.media_type};base64,${source.data}`
}

async function bytesAt(
  address: string,
  from: readonly string[],
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (/^data:/i.test(address) && address.length > mostBytes * 1.4)
    throw new ImageRefusedError(`a data URL of ${address.length} characters`)
  const given = dataUrlBytes(address)
  if (given) return given
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === 'file:') return await readWithin(fileURLToPath(url))
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb && from.includes(url.host)) return await fetchWithin(url, signal)
  const allowed = from.length === 0 ? 'none' : from.join(', ')
  throw new ImageRefusedError(
    `${address.slice(0, 120)} is not fetched: images come as data URLs or files, or from hosts that \`--images from=HOST\` allows (${allowed})`,
  )
}

async function readWithin(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r').catch((cause: Error) => {
    throw new ImageRefusedError(`a file that cannot be read: ${cause.message}`, { cause })
  })
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new ImageRefusedError(`${path} is no file`)
    if (stat.size > mostBytes) throw new ImageRefusedError(`${path} has ${stat.size} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** An image from an allowed host; redirects lead elsewhere and are not followed. */
async function fetchWithin(url: URL, signal: AbortSignal): Promise<Uint8Array> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(mostSeconds * 1000)])
  try {
    const answer = await fetch(url, { signal: limit, redirect: 'error' })
    if (!answer.ok) throw new Error(`status ${answer.status}`)
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of answer.body ?? []) {
      parts.push(part)
      size += part.length
      if (size > mostBytes) throw new Error(`more than ${mostBytes} bytes`)
    }
    return Buffer.concat(parts)
  } catch (cause) {
    signal.throwIfAborted()
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ImageRefusedError(`${url.host} gave no image: ${why}`, { cause })
  }
}
