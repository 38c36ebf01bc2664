import { type MarkedSourceText, markedSourceOf, moveHole } from '../../jinja/hidden.ts'
import type { BridgeRequest } from '../../renderer.ts'
import {
  anchorOf,
  type BridgeContext,
  bridgeIds,
  encodeBehindText,
  endOf,
  observedOf,
  withoutSampled,
} from '../bridge.ts'
import type { Ending } from '../calibration/ending.ts'
import { shift } from '../ranges.ts'
import { type EncodePart, type HoleEncoder, makeHoleEncoder } from './hole-encoder.ts'
import { makeRecentIds } from './recent-ids.ts'
import { type Fit, makeShapes, type Shape } from './shape.ts'

/** A bridge with holes for contents. */
interface BridgeForm {
  readonly ending: Ending
  readonly read: (texts: readonly string[]) => MarkedSourceText
  readonly encode: HoleEncoder
}

/**
 * Computes bridges. Those of one kind (the same roles, tools and calls) differ by the observed
 * contents only, so the template renders one of them, without seeing the contents, and the others
 * are filled in. They are what `bridgeIds` gives, token by token.
 */
export function makeBridges(context: BridgeContext): (request: BridgeRequest) => Int32Array {
  const { history, tools: needsTools } = context.profile.bridgeNeeds
  if (history) return request => bridgeIds(context, request)
  const recent = makeRecentIds(context.tokenizer)
  const fitOf = makeShapes<BridgeRequest, BridgeForm>({
    chat: context.chat,
    needsTools,
    make: request => makeShape({ ...context, recent }, request),
  })
  return request => {
    const fit = fitOf(request, observedOf(request))
    return fit ? fill(context, request, fit) : bridgeIds(context, request)
  }
}

function makeShape(
  context: BridgeContext & { readonly recent: EncodePart },
  request: BridgeRequest,
): Shape<BridgeForm> {
  const { chat, profile, tokenizer, recent } = context
  const observed = observedOf(request)
  const anchor = anchorOf(profile, observed, request)
  const tools = profile.bridgeNeeds.tools ? request.tools : []
  const messages = [...anchor.before, ...observed]
  const { conditions, outline } = chat.renderOutline(
    { messages, tools, opensTurn: true },
    observed.length,
  )
  if (!outline) return { conditions, moments: [], holes: [], form: undefined }
  const { moments } = outline
  const start = endOf(outline.text, outline.text.indexOf(anchor.mark), anchor)
  // Before the first hole the text is the same for all, and so is the first mark if it is there.
  const isFixed = start !== undefined && outline.holes.every(({ at }) => at >= start)
  if (!isFixed) return { conditions, moments, holes: [], form: undefined }
  const marked = { text: outline.text.slice(start), foreign: shift(outline.foreign, start) }
  const holes = outline.holes.map(hole => moveHole(hole, -start))
  const encode = makeHoleEncoder(tokenizer, { ...marked, holes }, recent)
  return {
    conditions,
    moments,
    holes,
    form: { ending: anchor.ending, read: markedSourceOf(marked, holes), encode },
  }
}

function fill(
  context: BridgeContext,
  request: BridgeRequest,
  { form: { ending, read, encode }, texts }: Fit<BridgeForm>,
): Int32Array {
  if (ending.stop === '') {
    return encodeBehindText(context, request, read(texts))
  }
  return withoutSampled(context, request, { ids: encode(texts), ending })
}
