import type { Call } from '../../../base/core/call.ts'
import { collapsed, type ImagePlace, type PromptImages } from '../../../base/core/image.ts'
import type { BodyFrame } from '../transport/prompt-writer.ts'
import { asObject, type Fields, parseJson } from '../transport/reading.ts'
import { ServerError } from '../transport/server-error.ts'
import { ask } from './ask.ts'
import { checkLaidOut, dataUrlOf } from './image-data.ts'
import type { Server, ServerRequest } from './server.ts'
import { vllmPaths } from './vllm-request.ts'

/** Asks `generate` with images; a server keeps what it was sent, under its digest. */
export type AskWithImages = (
  asked: {
    readonly ids: Int32Array
    readonly images: PromptImages
    readonly frame: BodyFrame
    /** Says whose a request is. */
    readonly told: (request: ServerRequest) => ServerRequest
  },
  call: Call,
) => Promise<Fields>

/** Digests that are remembered as sent; a server keeps fewer and says so. */
const mostKnown = 4096

/** Opens the way to a server that is shown images: their bytes go there once, and again only if it forgot them. */
export function makeImageRequests(server: Server): AskWithImages {
  const known = new Set<string>()
  const where = `POST ${server.url}${vllmPaths.generate}`
  return async ({ ids, images, frame, told }, call) => {
    const sent = collapsed(ids, images).join(',')
    const send = async (isKnown: (image: ImagePlace) => boolean): Promise<Fields> => {
      const parts = await partsOf(images, isKnown)
      const rest = frame.rest?.toString('utf8') ?? ''
      const own = `${frame.head}${sent}${frame.tail}${rest}`
      const body = `${own.slice(0, -1)},"return_token_ids":true,"content_parts":${parts}}`
      const answer = await ask(server, told({ path: vllmPaths.generate, body }), call)
      return asObject(parseJson(answer, where), where, 'the answer')
    }
    const answer = await send(({ digest }) => known.has(digest)).catch(cause => {
      if (!isForgotten(cause)) throw explained(cause)
      return send(() => false)
    })
    checkLaidOut(answer, ids, where)
    if (known.size > mostKnown) known.clear()
    for (const { digest } of images.places) known.add(digest)
    return answer
  }
}

async function partsOf(
  images: PromptImages,
  isKnown: (image: ImagePlace) => boolean,
): Promise<string> {
  const sent = new Set<string>()
  const parts: object[] = []
  for (const image of images.places) {
    const { digest } = image
    const isThere = isKnown(image) || sent.has(digest)
    sent.add(digest)
    const url = isThere ? {} : { url: await dataUrlOf(image, images) }
    parts.push({ type: 'image_url', uuid: digest, ...url })
  }
  return JSON.stringify(parts)
}

function isForgotten(cause: unknown): boolean {
  return (
    cause instanceof ServerError && cause.status === 400 && cause.message.includes('Cache miss')
  )
}

function explained(cause: unknown): unknown {
  const isClosed = cause instanceof ServerError && (cause.status === 403 || cause.status === 404)
  if (!isClosed) return cause
  const hint = 'vLLM takes tokens with images only at this door: start it with --enable-scale-out'
  return new Error(`${hint}. ${cause.message}`, { cause })
}
