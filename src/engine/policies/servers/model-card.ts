import type { Call } from '../../../base/core/call.ts'
import type { PolicyDescription } from '../../../base/core/policy.ts'
import { asArray, asObject, type Fields } from '../transport/reading.ts'
import { isUnknownPath, ServerError } from '../transport/server-error.ts'
import { getObject } from './ask.ts'
import type { Server } from './server.ts'

/** The entries of a chat server's list of models. */
async function listModels(server: Server, call: Call): Promise<readonly Fields[]> {
  const where = `GET ${server.url}/models`
  const { data } = await getObject(server, ['/models'], call)
  return asArray(data, where, 'data').map((card, index) => asObject(card, where, `data[${index}]`))
}

/** The name of the first model in the list; servers with one model need no name, and may not list any. */
export async function firstModel(server: Server, call: Call): Promise<string> {
  try {
    const [first] = await listModels(server, call)
    return String(asObject(first, `GET ${server.url}/models`, 'data[0]').id)
  } catch (cause) {
    if (isUnknownPath(cause)) return 'default'
    throw cause
  }
}

/** What a chat server says of a model; no more than its name if its list is broken, but for a missing key. */
export async function describeModel(
  server: Server,
  model: string,
  call: Call,
): Promise<PolicyDescription> {
  const cards = await listModels(server, call).catch((cause: unknown) => {
    if (!(cause instanceof ServerError) || cause.status === 401) throw cause
    return []
  })
  const context = contextIn(cards.find(({ id }) => id === model) ?? {})
  return { model, ...(context === undefined ? {} : { context }) }
}

/** vLLM and SGLang, OpenRouter and Together, Groq, Mistral and LM Studio, llama.cpp name it each in their way. */
function contextIn(card: Fields): number | undefined {
  const { meta } = card
  const told = [
    card.max_model_len,
    card.context_length,
    card.context_window,
    card.max_context_length,
    typeof meta === 'object' && meta !== null ? (meta as Fields).n_ctx : undefined,
  ].filter(each => typeof each === 'number' && Number.isSafeInteger(each) && each > 0)
  return told.length === 0 ? undefined : Math.min(...(told as number[]))
}
