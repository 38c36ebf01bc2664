import { formatReference } from '../../images/index.ts'
import type { ImagePart, Message } from '../../message.ts'
import { asked, callingTurn, callsOf, probeResult, probeTool } from '../calibration/probe.ts'
import type { ModelRenderer } from '../renderer.ts'

/** What was found out about how a model is shown images. */
export type ImageDiagnosis =
  | { readonly kind: 'text-only'; readonly reason: string }
  | {
      readonly kind: 'seen'
      readonly family: string
      readonly examples: readonly {
        readonly width: number
        readonly height: number
        /** How many tokens it takes, or why the model takes none of this size. */
        readonly tokens: number | string
      }[]
      /** Why images are not shown in messages of a role; those that show them are left out. */
      readonly refused: readonly { readonly role: 'user' | 'tool'; readonly reason: string }[]
    }

const sizes = [
  [224, 224],
  [1280, 720],
  [720, 1280],
  [2480, 3508],
] as const

/** Shows a renderer images of usual sizes, in every role that shows some. */
export function examineImages(renderer: ModelRenderer): ImageDiagnosis {
  const { images, noImages = 'its model reads text only' } = renderer
  if (!images) return { kind: 'text-only', reason: noImages }
  const examples = sizes.map(([width, height]) => {
    const tokens = tried(() => images.count(imageOf(width, height)))
    return { width, height, tokens }
  })
  const refused = (['user', 'tool'] as const).flatMap(role => {
    const reason = tried(() => show(renderer, role))
    return typeof reason === 'string' ? [{ role, reason }] : []
  })
  return { kind: 'seen', family: images.family, examples, refused }
}

function tried<Value>(work: () => Value): Value | string {
  try {
    return work()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function imageOf(width: number, height: number): ImagePart {
  const facts = { digest: '0'.repeat(64), kind: 'png', width, height, bytes: 1, orientation: 1 }
  return { type: 'image_url', image_url: { url: formatReference({ ...facts, kind: 'png' }) } }
}

/** The number of images found where a message of the role shows one. */
function show(renderer: ModelRenderer, role: 'user' | 'tool'): number {
  const content = [{ type: 'text', text: 'here' } as const, imageOf(224, 224)]
  const result = probeResult()
  const messages: readonly Message[] =
    role === 'user'
      ? [{ role, content }]
      : [asked, callingTurn(callsOf([result])), { ...result, content }]
  const ids = renderer.render(messages, role === 'tool' ? [probeTool] : [])
  return renderer.images!.locate(ids, messages).length
}
