import type { ServedAttempt } from '../../run/settings/offered.ts'
import { modelName } from './contract.ts'

/** What a harness has asked so far. */
export interface Asking extends ServedAttempt {
  /** Requests that were answered. */
  readonly answered: number
  /** Whether the attempt's own limits refuse whatever is asked now. */
  readonly isOver: boolean
  /** Resolves when they do. */
  readonly over: Promise<void>
  /** What was refused and why, behind other words; empty if nothing was. */
  refusals(): string
  /** How much it asked, for people. */
  tell(): string
}

/** Answers the requests of one attempt by its `fetch`, and counts them. */
export function makeAsking({
  token,
  answer,
}: {
  readonly token: string
  readonly answer: typeof fetch
}): Asking {
  let answered = 0
  let isOver = false
  let finish = (): void => {}
  const over = new Promise<void>(resolve => {
    finish = resolve
  })
  const refused = new Map<string, number>()
  const note = (why: string): void => {
    if (refused.size < 8 || refused.has(why)) refused.set(why, (refused.get(why) ?? 0) + 1)
  }
  return {
    token,
    over,
    get answered() {
      return answered
    },
    get isOver() {
      return isOver
    },
    refused: note,
    async answer(request, body) {
      const model = wantedModel(request, body)
      if (model !== undefined && model !== modelName) {
        note(
          `it asked for the model ${JSON.stringify(model.slice(0, 80))}; the only one is ${modelName}, which ESPALIER_MODEL says`,
        )
        return notThere(model)
      }
      const response = await answer(request)
      if (response.ok && request.method === 'POST') answered++
      if (response.status === gone && !isOver) {
        isOver = true
        finish()
      }
      return response
    },
    refusals: () =>
      [...refused]
        .map(([why, count]) => `; ${why}${count > 1 ? ` (${count} times)` : ''}`)
        .join(''),
    tell: () =>
      answered === 1 ? 'one request was answered' : `${answered} requests were answered`,
  }
}

/** The status of a request in an attempt that is over. */
const gone = 410

/** The model that a request names: in its body, or Google's in its path. */
function wantedModel({ url }: Request, body: unknown): string | undefined {
  const inPath = /\/models\/([^/:]+):/.exec(new URL(url).pathname)?.[1]
  if (inPath !== undefined) return inPath
  const named: unknown = typeof body === 'object' && body !== null && Reflect.get(body, 'model')
  return typeof named === 'string' ? named : undefined
}

/** OpenAI's and Anthropic's clients both read these words. */
function notThere(model: string): Response {
  const message = `there is no model ${JSON.stringify(model.slice(0, 80))} here, only ${modelName}`
  const error = { type: 'not_found_error', code: 'model_not_found', message, param: null }
  return Response.json({ type: 'error', error }, { status: 404 })
}
